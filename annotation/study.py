"""The use cases of a human study. Each is one transaction and returns frozen values.

Pages, the HTTP interface and the command line call these and nothing below them.
"""

import unicodedata
import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from annotation.create import create_study as create_study
from annotation.domain import (
    Annotator,
    AnnotatorProgress,
    Answer,
    SignedIn,
    Study,
    StudyProgress,
    StudyStatus,
    TaskItem,
    VoteReceipt,
)
from annotation.errors import AnswerError, NotFoundError, SignInError
from annotation.exports import export_labels as export_labels
from annotation.exports import export_votes as export_votes
from annotation.simulate import simulate as simulate
from annotation.store import Store, ballots, passwords, people, reports, slots, studies

LONGEST_NAME = 80
MOST_ITEMS = 100  # a browser never needs more at once
SPARE = 12  # more items to choose from than wanted, as others may take some first
MOST_TRIES = 20  # each lost one means that others got items


def list_studies(store: Store) -> list[Study]:
    """All studies, newest first."""
    return store.read(studies.all_studies)


def get_study(store: Store, study_id: str) -> Study:
    """One study; raises `NotFoundError`."""
    return store.read(lambda tx: studies.study_of(tx, study_id))


def study_by_token(store: Store, token: str) -> Study:
    """The study a join link leads to; raises `NotFoundError`."""
    return store.read(lambda tx: studies.study_of_token(tx, token))


def set_status(store: Store, study_id: str, status: StudyStatus) -> Study:
    """Run, pause or close a study; raises `NotFoundError`.

    Paused: nothing is handed out, votes on items already handed out count. Closed: votes that
    still arrive are kept as surplus.
    """
    now = datetime.now(UTC)
    return store.write(lambda tx: studies.put_status(tx, study_id, StudyStatus(status), now))


def join(store: Store, token: str, name: str, password: str | None = None) -> SignedIn:
    """Sign in to the study of a join link; the same name again is the same person.

    Raises `NotFoundError` for the link, `SignInError` for an unusable name, a wrong password, or
    a study for simulated annotators.
    """
    name = _tidy(name)
    study = study_by_token(store, token)
    if study.spec.simulated:
        raise SignInError("This study is answered by simulated annotators; people cannot join it.")
    salt, digest = store.read(lambda tx: studies.secret_of_token(tx, token))
    # Outside of any transaction: a password takes long to check, on purpose.
    if not passwords.matches(password, salt, digest):
        raise SignInError("The password is not the one of this study.")
    now = datetime.now(UTC)
    return store.write(
        lambda tx: people.open_session(tx, people.annotator_named(tx, study.id, name, now), now)
    )


def _tidy(name: str) -> str:
    tidy = " ".join(unicodedata.normalize("NFKC", name).split())
    if not tidy or len(tidy) > LONGEST_NAME:
        raise SignInError(f"Please give a name of 1 to {LONGEST_NAME} letters; got {len(tidy)}.")
    return tidy


def who(store: Store, session_token: str) -> Annotator | None:
    """Who is signed in with that token, None if nobody."""
    return store.read(lambda tx: people.session_owner(tx, session_token))


def sign_out(store: Store, session_token: str) -> None:
    """End a session; ending it twice is fine."""
    store.write(lambda tx: people.close_session(tx, session_token))


def next_items(
    store: Store, annotator: Annotator, tab: str, n: int, now: datetime
) -> list[TaskItem]:
    """Up to `n` items (at most 100) reserved for `annotator`, the ones `tab` already has first.

    Each is reserved for the study's `lease_seconds`. Empty when nothing is left for them or the
    study does not run.
    """
    for attempt in range(MOST_TRIES):
        # Choosing reads much and must hold nobody up; claiming is short and checks again.
        wanted = store.read(partial(slots.open_items, annotator=annotator, n=n + SPARE, now=now))
        items = store.write(
            partial(
                slots.lease,
                annotator=annotator,
                tab=tab,
                wanted=wanted,
                n=min(n, MOST_ITEMS),
                now=now,
                last_try=attempt > 0 or not wanted,
            )
        )
        if items or not wanted:
            return items
    return []


def vote(store: Store, annotator: Annotator, answer: Answer, now: datetime) -> VoteReceipt:
    """Store a vote; when this returns it is on disk. The same answer again changes nothing.

    It counts if the item has a slot for this annotator, else it is kept as surplus. Raises
    `AnswerError` for what the item does not offer, `NotFoundError` and `NotAllowedError` for items
    that do not exist or were never given to them, `ConflictError` for an id used otherwise.
    """
    answer = replace(answer, id=_uuid(answer.id))
    return store.write(lambda tx: ballots.record(tx, annotator, answer, now))


def _uuid(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise AnswerError(
            f"A vote's id must be a UUID made by the browser; got {text!r}."
        ) from None


def undo(store: Store, annotator: Annotator, vote_id: str, now: datetime) -> TaskItem:
    """Take a vote back and reserve its item again; the vote stays on record as superseded.

    Raises `NotFoundError` if this annotator gave no such vote, `ConflictError` if the study is
    closed or the item has been answered again since.
    """
    try:
        known = str(uuid.UUID(vote_id))
    except ValueError:
        raise NotFoundError(f"You have given no vote {vote_id!r}.") from None
    return store.write(lambda tx: ballots.take_back(tx, annotator, known, now))


def heartbeat(
    store: Store, annotator: Annotator, tab: str, items: Sequence[str], now: datetime
) -> None:
    """Keep `items` reserved while `annotator` looks at them; items they lost stay lost."""
    store.write(lambda tx: slots.heartbeat(tx, annotator, tab, items[:MOST_ITEMS], now))


def progress_of(store: Store, annotator: Annotator) -> AnnotatorProgress:
    """How far one annotator is."""
    now = datetime.now(UTC)
    return store.read(lambda tx: reports.annotator_progress(tx, annotator, now))


def image_path(store: Store, annotator: Annotator, image_token: str) -> Path:
    """The PNG behind an opaque token.

    Raises `NotFoundError` for an unknown token or a file that is gone, `NotAllowedError` if
    `annotator` was never given its item.
    """
    path = store.read(lambda tx: reports.image_of(tx, annotator, image_token))
    if not path.exists():
        raise NotFoundError(f"The image file {path.name} is gone from {path.parent}.")
    return path


def progress(store: Store, study_id: str) -> StudyProgress:
    """How far a study is, over its items and annotators; raises `NotFoundError`."""
    return store.read(lambda tx: reports.study_progress(tx, study_id))


def last_event(store: Store, study_id: str) -> int:
    """A number that grows whenever something happens in a study; cheap to ask for."""
    return store.read(lambda tx: reports.last_event(tx, study_id))
