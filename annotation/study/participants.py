"""The use cases about the people of one study: who takes part, and whose votes count.

People are told apart by their name within a study, whose letter case does not matter. Each use
case is one transaction.
"""

import secrets
from datetime import datetime

from annotation.domain import Annotator, AnnotatorRow
from annotation.errors import NotFoundError
from annotation.images import Shelf, here
from annotation.store import Store, people, phases, reports, writing
from annotation.study import exports
from annotation.votes.exclusion import Effect, effect_of_excluding
from semsim.base.errors import StoreError

pause, resume = writing(people.pause), writing(people.resume)
exclude, include = writing(people.exclude), writing(people.include)
let_in, new_link = writing(phases.let_in), writing(people.new_link_of)


def list_people(store: Store, study_id: str) -> list[AnnotatorRow]:
    """Return all annotators of a study, in the order they joined; raises `NotFoundError`."""
    return store.read(lambda tx: reports.study_progress(tx, study_id)).annotators


def erase(store: Store, study_id: str, name: str, now: datetime, *, keep_votes: bool) -> Annotator:
    """Replace an annotator's name by a pseudonym for good, end their sessions and let them go.

    Their votes go on as they are if `keep_votes`; else none counts, others fill their slots, and
    what they answered is gone. The name is also gone from the database's files when this returns;
    backups and tables taken out before still hold it. Erasing under the pseudonym again is fine,
    also to remove votes that were kept. Raises `NotFoundError` for the name, `ConflictError` for
    votes to keep of one who did not agree to that, `StoreError` if the files could not be cleaned,
    which names the pseudonym under which erasing again does it.
    """
    pseudonym = f"erased-{secrets.token_hex(4)}"
    erased = store.write(
        lambda tx: people.erase(tx, study_id, name, pseudonym, now, keep_votes=keep_votes)
    )
    try:
        store.scrub()
    except StoreError as error:
        raise StoreError(
            f"The name is gone from all tables, {erased.name} is in its place. {error} Erase "
            f"{erased.name} to try again."
        ) from error
    return erased


def preview_exclusion(store: Store, study_id: str, name: str, images: Shelf) -> Effect:
    """Return what excluding an annotator would do to the result; changes nothing.

    Raises `NotFoundError` for the study or the name.
    """
    known = {row.name.casefold(): row.name for row in list_people(store, study_id)}
    if name.casefold() not in known:
        raise NotFoundError(f"Nobody in this study is called {name!r}.")
    # Items never change, so it does no harm that votes may come between the two.
    labels = exports.export_labels(store, study_id, here(images))  # no picture is looked at
    votes = exports.export_votes(store, study_id)
    return effect_of_excluding(known[name.casefold()], votes, labels)
