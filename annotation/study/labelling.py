"""The use cases of a human study. Each is one transaction and returns frozen values.

Pages, the HTTP interface and the command line call these and nothing below them.
"""

import unicodedata
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from annotation.design.assignment import share
from annotation.design.quality import MOST_AHEAD
from annotation.domain import (
    LONGEST_NAME,
    Annotator,
    AnnotatorProgress,
    Answer,
    SignedIn,
    Step,
    Study,
    StudyStatus,
    TaskItem,
    VoteReceipt,
)
from annotation.errors import AnswerError, NameTakenError, NotFoundError, SignInError, StudyError
from annotation.images import Shelf, find
from annotation.store import (
    Store,
    backup,
    eligibility,
    leases,
    passwords,
    people,
    reading,
    reports,
    slots,
    studies,
    trials,
    voting,
    writing,
)
from annotation.store import phases as phase_rows
from annotation.store import progress as rows
from annotation.store.engine import sqlite_file
from annotation.store.next_items import open_items
from annotation.texts import flaw
from semsim.base.errors import StoreError

LONGEST_STUDY_NAME = 200  # letters
MOST_ITEMS = MOST_AHEAD  # a browser never needs more at once: 200, and as many answers under way
MOST_TRIES = 20  # each lost one means that others got items
STAMP = "%Y%m%dT%H%M%SZ"  # in the name of a backup


list_studies = reading(studies.all_studies)
get_study = reading(studies.study_of)
study_by_token = reading(studies.study_of_token)
invited = reading(studies.invited)
progress = reading(reports.study_progress)
events_so_far = reading(reports.events_so_far)
voted = reading(reports.voted)
studies_beside = reading(reports.studies_beside)
some_pictures = reading(reports.some_pictures)
usual_rt_ms = reading(reports.usual_rt_ms)
own_rt_ms = reading(reports.own_rt_ms)
most_each = reading(reports.most_each)
who = reading(people.session_owner)
whose_link = reading(people.link_owner)
is_of_researcher = reading(people.is_of_researcher)
sign_out = writing(people.close_session)
heartbeat = writing(slots.heartbeat)
release = writing(slots.release)


def set_status(store: Store, study_id: str, status: StudyStatus) -> Study:
    """Run, pause or close a study; raises `NotFoundError`.

    Paused: nothing is handed out, votes on items already handed out count. Closed: votes that
    still arrive are kept as surplus. On PostgreSQL a vote whose transaction reads the status just
    before it changes is committed just after, and counts: only if all votes locked the row of their
    study, each waiting for it, would none do so. A table exported later has it.
    """
    now = datetime.now(UTC)
    return store.write(lambda tx: studies.put_status(tx, study_id, StudyStatus(status), now))


def rename(store: Store, study_id: str, name: str) -> Study:
    """The study under another name, which annotators never see; votes and protocol stay.

    Raises `StudyError` for a name no study can have, and `NotFoundError`.
    """
    tidy = " ".join(name.split())
    if wrong := flaw(tidy):
        raise StudyError(f"The name {wrong}")
    if len(tidy) > LONGEST_STUDY_NAME:
        raise StudyError(f"A name has at most {LONGEST_STUDY_NAME} letters; got {len(tidy)}.")
    now = datetime.now(UTC)
    return store.write(lambda tx: studies.rename(tx, study_id, tidy, now))


def delete(store: Store, study_id: str, typed: str, backups: Path) -> Path | None:
    """Delete a study with its items, people, votes and events, once its name has been typed.

    A backup of the database comes first, in the folder `backups`, where none of later pushes it
    out; its path is returned, None for databases that have tools of their own for that. Pictures
    stay in the folder of images, where other studies may show them and the backup looks for them.
    Raises `StudyError` for another name, `NotFoundError`, and `StoreError` if the study is deleted
    but the files could not be cleaned.
    """
    study = store.read(lambda tx: studies.study_of(tx, study_id))
    if typed.split() != study.name.split():  # of several spaces a page shows one
        raise StudyError(f"To delete the study, type its name: {study.name}")
    now, made, file = datetime.now(UTC), None, sqlite_file(store.url)
    if file is not None:
        made = backup.back_up(Path(file), backups / f"before-deleting-{study.id}-{now:{STAMP}}.db")
    store.write(lambda tx: studies.delete_study(tx, study_id, now))
    try:
        store.scrub()
    except StoreError as error:
        raise StoreError(f"The study is deleted. {error}") from error
    return made


def join(
    store: Store,
    to: str | studies.Invited,
    name: str,
    password: str | None = None,
    *,
    external: Mapping[str, str] | None = None,
    session: str = "",
) -> SignedIn:
    """Take part in the study of a join link under a name that no annotator there has yet.

    Args:
        to: The link's token, or what `invited` has found by it.
        external: The ids of a recruiting service that sent them, kept with them; by the same ids
            they come back.
        session: Of the browser, whose owner may come in again by their name.

    Raises:
        NotFoundError: For the link.
        NameTakenError: For another annotator's name.
        SignInError: For an unusable name, a wrong password, or a study for simulated annotators.
    """
    name = _tidy(name)
    link = invited(store, to) if isinstance(to, str) else to
    study = link.study
    if study.spec.simulated:
        raise SignInError(study.spec.wording("join.simulated"))
    # Outside of any transaction: a password takes long to check, on purpose.
    if not passwords.matches(password, link.salt, link.digest):
        raise SignInError.of("password")
    now = datetime.now(UTC)

    def open_session(tx: Any) -> SignedIn:
        spec, known = people.arriving(tx, study.id, name)
        if known is not None and not _is_theirs(tx, known, external or {}, session):
            raise NameTakenError.of("taken", name=known.name)
        if known is None:
            new = people.added(tx, study.id, name, spec, now, external=external)
            opened = people.open_session(tx, new, now)
            return replace(opened, annotator=people.seated(tx, new))
        if external:
            phase_rows.keep_external(tx, known, external)
        return people.open_session(tx, known, now)

    return store.write(open_session)


def _is_theirs(tx: Any, known: Annotator, external: Mapping[str, str], session: str) -> bool:
    """Return whether the caller is `known`: by their session, or by an id of a service."""
    owner = people.session_owner(tx, session) if session else None
    if owner is not None and owner.id == known.id:
        return True
    sent = people.sent_as(tx, known)
    same = [value for name, value in external.items() if sent.get(name) == value]
    return any(_is_name(known.name, value) for value in same)


def _is_name(name: str, given: str) -> bool:
    """Return whether `given` becomes that name."""
    try:
        return _tidy(given) == name
    except SignInError:  # no name at all
        return False


def come_back(store: Store, link: str, study_id: str | None = None) -> SignedIn:
    """Sign in by a personal link, or by its secret alone, to the study it is of.

    Raises `SignInError` for a link of no annotator, or of another study than `study_id`.
    """
    secret = link.strip().rstrip("/").rpartition("/")[2]
    now = datetime.now(UTC)

    def open_session(tx: Any) -> SignedIn:
        annotator = people.link_owner(tx, secret)
        if annotator is None or study_id not in (None, annotator.study_id):
            raise SignInError.of("link")
        return people.open_session(tx, people.note_use(tx, secret, now), now)

    return store.write(open_session)


def new_link(store: Store, annotator: Annotator) -> str:
    """The secret of one more personal link, which is told this once."""
    return store.write(lambda tx: people.new_link(tx, annotator, datetime.now(UTC)))


def _tidy(name: str) -> str:
    words = unicodedata.normalize("NFKC", name).split()
    # What does not print could make one name look like another, also by keeping parts asunder.
    printed = " ".join(filter(None, ("".join(filter(str.isprintable, word)) for word in words)))
    tidy = unicodedata.normalize("NFKC", printed)
    if not tidy or len(tidy) > LONGEST_NAME:
        raise SignInError.of("name", most=LONGEST_NAME, n=len(tidy))
    return tidy


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Whoever is signed in with `token`; `page` is the `key` of whose page it comes from.

    Finding out who that is is part of the transaction of the use case, which saves one of its own.
    """

    token: str = field(repr=False)
    page: str | None = None


def key(annotator: Annotator) -> str:
    """Return the key that tells an annotator from all others of all studies."""
    return f"{annotator.study_id}:{annotator.id}"


def signed_in(store: Store, caller: Caller) -> Annotator:
    """Return the caller; raises `SignInError` for none, and for another than the page's."""
    return store.read(lambda tx: _annotator(tx, caller))


def _annotator(
    tx: Any,
    by: Annotator | Caller,
    owner: Callable[[Any, str], Annotator | None] = people.session_owner,
) -> Annotator:
    """Return the caller; `owner` finds the annotator of a session."""
    if isinstance(by, Annotator):
        return by
    annotator = owner(tx, by.token)
    if annotator is None:
        raise SignInError("You are not signed in. Open the link of your study.")
    # A page left open must not send one person's answers under the name of another who has
    # signed in on the same computer since.
    if by.page not in (None, key(annotator)):
        raise SignInError(
            f"Somebody else has signed in here ({annotator.name}). Open the link of your study."
        )
    return annotator


@dataclass(frozen=True, kw_only=True)
class Ahead:
    """Progress of an annotator, and how many items they may hold: of `wanted`, best first.

    Attributes:
        version: Of the study's protocol.
    """

    annotator: Annotator
    progress: AnnotatorProgress
    n: int
    wanted: Sequence[str]
    version: int


def ahead(store: Store, by: Annotator | Caller, n: int, now: datetime, unsent: int = 0) -> Ahead:
    """Return what `next_items` can give a caller who asks for `n` items; changes nothing.

    In a small study no annotator holds more than a fair share.

    Args:
        unsent: How many answers are under way, whose items are held until they come.
    """

    def look(tx: Any) -> Ahead:
        annotator = _annotator(tx, by, people.owner_asking)
        far = rows.so_far(tx, annotator, now)
        most = share(n, far.progress.left, far.people)
        most = min(most + unsent, MOST_ITEMS)
        wanted = open_items(tx, annotator, most + leases.IN_CASE, now, far.asker)
        version = eligibility.study_row(tx, annotator).version
        return Ahead(
            annotator=annotator, progress=far.progress, n=most, wanted=wanted, version=version
        )

    return store.read(look)


def next_items(
    store: Store,
    annotator: Annotator,
    tab: str,
    n: int,
    now: datetime,
    wanted: Sequence[str] | None = None,
) -> list[TaskItem]:
    """Reserve up to `n` items for `annotator`, the ones `tab` already has first.

    At most `MOST_ITEMS`. Items that count are mixed with the trials that are due, which look the
    same; at the step of practice there are only practice items, at other steps before or after the
    main part none. Each is reserved for the study's `lease_seconds`, or a twentieth less where it
    was before. Empty when nothing is left for them or the study does not run.

    Args:
        wanted: Of `ahead`, where the caller has looked already.
    """
    n = min(n, MOST_ITEMS)
    if annotator.step is Step.PRACTICE:
        practice = partial(trials.practice, annotator=annotator, tab=tab, n=n, now=now)
        return store.write(practice, yields=True)
    if annotator.step is not Step.MAIN:
        return []
    for attempt in range(MOST_TRIES):
        # Choosing reads much and must hold nobody up; claiming is short and checks again.
        if attempt or wanted is None:
            look = partial(open_items, annotator=annotator, n=n + leases.IN_CASE, now=now)
            wanted = store.read(look)
        last_try = attempt > 0 or not wanted
        lease = partial(leases.lease, tab=tab, wanted=wanted, n=n, last_try=last_try)
        reserve = partial(_reserve, lease, annotator=annotator, tab=tab, n=n, now=now)
        items = store.write(reserve, yields=True)  # answers go first
        if items:
            return items
        if not wanted and not (attempt == 0 and _free_ahead(store, annotator, now)):
            return []
    return []


def _free_ahead(store: Store, annotator: Annotator, now: datetime) -> bool:
    """Tell whether leases of a clock that ran ahead held items, and do no more."""
    if not store.read(lambda tx: slots.ahead(tx, annotator, now)):
        return False
    store.write(lambda tx: slots.end_ahead(tx, annotator, now))
    return True


def _reserve(
    lease: Callable[[Any, leases.Claimer], list[TaskItem]],
    tx: Any,
    annotator: Annotator,
    tab: str,
    n: int,
    now: datetime,
) -> list[TaskItem]:
    """Return what `lease` gives, and the trials among it, in one transaction."""
    by = leases.claimer(tx, annotator, now)
    return trials.due(tx, by, tab, lease(tx, by), n, now)


def vote(store: Store, by: Annotator | Caller, answer: Answer, now: datetime) -> VoteReceipt:
    """Store a vote; when this returns it is on disk. The same answer again changes nothing.

    It counts if the item has a slot for this annotator, else it is kept as surplus. Raises
    `AnswerError` for what the item does not offer, `NotFoundError` and `NotAllowedError` for items
    that do not exist or were never given to them, `ConflictError` for an id used otherwise.
    """
    wrong = AnswerError(f"A vote's id must be a UUID made by the browser; got {answer.id!r}.")
    answer = replace(answer, id=_uuid(answer.id, wrong))
    return store.write(lambda tx: voting.record(tx, _here(tx, by, now), answer, now))


def _here(tx: Any, by: Annotator | Caller, now: datetime) -> Annotator:
    """Return the caller, noted as here, with the status they have until the transaction ends."""
    if isinstance(by, Annotator):
        return slots.here(tx, by, now)
    return _annotator(tx, by, partial(people.owner_here, now=now))


def _uuid(text: str, wrong: Exception) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise wrong from None


def undo(store: Store, annotator: Annotator, vote_id: str, now: datetime) -> TaskItem:
    """Take a vote back and reserve its item again; the vote stays on record as superseded.

    Raises `NotFoundError` if this annotator gave no such vote, `ConflictError` if the study is
    closed or the item has been answered again since.
    """
    known = _uuid(vote_id, NotFoundError(f"You have given no vote {vote_id!r}."))
    return store.write(lambda tx: voting.take_back(tx, annotator, known, now))


def progress_of(store: Store, annotator: Annotator) -> AnnotatorProgress:
    """Return how far one annotator is."""
    now = datetime.now(UTC)

    return store.read(lambda tx: rows.so_far(tx, annotator, now).progress)


def image_path(store: Store, annotator: Annotator, image_token: str, images: Shelf) -> Path:
    """The PNG behind an opaque token; `images` is where studies keep theirs.

    Raises `NotFoundError` for an unknown token or a file that is gone, `NotAllowedError` if
    `annotator` was never given its item, `StoreError` where images do not answer.
    """
    path = find(store.read(lambda tx: reports.image_of(tx, annotator, image_token)), images)
    if not path.exists():
        raise NotFoundError(f"The image file {path.name} is gone from {images}.")
    return path


def picture_of(store: Store, study_id: str, digest: str, images: Shelf) -> Path:
    """A picture of a study, by its SHA-256, for researchers.

    Raises `NotFoundError`, or `StoreError` where images do not answer.
    """
    store.read(lambda tx: reports.require_picture(tx, study_id, digest))
    path = find(digest, images)
    if not path.is_file():
        raise NotFoundError(reports.NO_PICTURE)
    return path
