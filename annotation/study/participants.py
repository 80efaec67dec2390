"""The use cases about the people of one study: who takes part, and whose votes count.

People are told apart by their name within a study, whose letter case does not matter. Each use
case is one transaction; `by` is the name of the account it is done with, which the event keeps.
"""

import secrets
from datetime import datetime
from pathlib import Path

from annotation.domain import Annotator, AnnotatorRow
from annotation.errors import NotFoundError
from annotation.store import Store, people, phases, reports
from annotation.study import exports
from annotation.votes.exclusion import Effect, effect_of_excluding


def list_people(store: Store, study_id: str) -> list[AnnotatorRow]:
    """Everybody in a study, in the order they joined; raises `NotFoundError`."""
    return store.read(lambda tx: reports.study_progress(tx, study_id)).annotators


def pause(
    store: Store, study_id: str, name: str, now: datetime, *, by: str | None = None
) -> Annotator:
    """Let somebody get and answer no more items for now; their votes go on counting.

    Items they hold become free for others. Raises `NotFoundError` for the name, `ConflictError`
    if they are excluded or erased.
    """
    return store.write(lambda tx: people.pause(tx, study_id, name, now), by)


def resume(
    store: Store, study_id: str, name: str, now: datetime, *, by: str | None = None
) -> Annotator:
    """Let somebody who was paused go on; raises like `pause`."""
    return store.write(lambda tx: people.resume(tx, study_id, name, now), by)


def exclude(
    store: Store, study_id: str, name: str, now: datetime, *, by: str | None = None
) -> Annotator:
    """Let none of somebody's votes count and others fill their slots; nothing is deleted.

    Raises `NotFoundError` for the name, `ConflictError` if they are erased.
    """
    return store.write(lambda tx: people.exclude(tx, study_id, name, now), by)


def include(
    store: Store, study_id: str, name: str, now: datetime, *, by: str | None = None
) -> Annotator:
    """Let somebody who was excluded go on.

    Their votes count again where the item still has room; where others have filled it, or are
    about to, they become surplus. Raises `NotFoundError` for the name, `ConflictError` unless
    they are excluded or active already.
    """
    return store.write(lambda tx: people.include(tx, study_id, name, now), by)


def let_in(
    store: Store, study_id: str, name: str, now: datetime, *, by: str | None = None
) -> Annotator:
    """Let somebody who failed the questions on the instructions take part all the same.

    Raises `NotFoundError` for the name, `ConflictError` unless they failed.
    """
    return store.write(lambda tx: phases.let_in(tx, study_id, name, now), by)


def erase(
    store: Store,
    study_id: str,
    name: str,
    now: datetime,
    *,
    keep_votes: bool,
    by: str | None = None,
) -> Annotator:
    """Replace somebody's name by a pseudonym for good, end their sessions and let them go.

    Their votes go on as they are if `keep_votes`; else none counts, others fill their slots, and
    what they answered is gone. The name is also gone from the database's files when this returns;
    backups and tables taken out before still hold it. Erasing under the pseudonym again is fine,
    also to remove votes that were kept. Raises `NotFoundError` for the name, `ConflictError` for
    votes to keep of somebody who did not agree to that, `StoreError` if the files could not be
    cleaned.
    """
    pseudonym = f"erased-{secrets.token_hex(4)}"
    erased = store.write(
        lambda tx: people.erase(tx, study_id, name, pseudonym, now, keep_votes=keep_votes), by
    )
    store.scrub()
    return erased


def preview_exclusion(store: Store, study_id: str, name: str, images: Path) -> Effect:
    """What excluding somebody would do to the result; changes nothing.

    Raises `NotFoundError` for the study or the name.
    """
    known = {row.name.casefold(): row.name for row in list_people(store, study_id)}
    if name.casefold() not in known:
        raise NotFoundError(f"Nobody in this study is called {name!r}.")
    # Items never change, so it does no harm that votes may come between the two.
    labels = exports.export_labels(store, study_id, images)
    votes = exports.export_votes(store, study_id)
    return effect_of_excluding(known[name.casefold()], votes, labels)
