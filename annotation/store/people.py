"""Inside one transaction: annotators, their sessions, and whether they take part.

Lock order as in `slots`: the annotator's own row, the stimuli by id, then slots. An excluded
annotator keeps their slots as leases that have run out. Another annotator takes one over like any
other; as long as none does, the vote can count again.
"""

import secrets
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, bindparam, delete, func, insert, select, update
from sqlalchemy.orm import Session

from annotation.design import flow as phases
from annotation.design.assignment import LEFT_OUT, slot_for
from annotation.domain import (
    SESSION_LASTS,
    Annotator,
    AnnotatorStatus,
    SignedIn,
    SlotState,
    Step,
    VoteStatus,
)
from annotation.errors import ConflictError, NotFoundError, SignInError
from annotation.spec import StudySpec
from annotation.store.eligibility import NO_STUDY
from annotation.store.engine import author, batches
from annotation.store.events import CHECKED, VOTED, note
from annotation.store.passwords import digest
from annotation.store.slots import (
    MOMENT,
    PERSON,
    SEEN,
    lock_slots,
    set_slot,
    settle_tie_breaks_of,
    take,
    touched,
)
from annotation.store.studies import DELETED, WRITTEN, settings_in
from annotation.store.tables import (
    AnnotatorRow,
    EventRow,
    PersonalLinkRow,
    SessionRow,
    SlotRow,
    StimulusRow,
    StudyRow,
    Table,
    TrialRow,
    VoteRow,
    same_fields,
)

JOINED = "joined"
LINKED = "link_made"  # by a researcher, who could come in by it
CAME_IN = "link_used"  # one that a researcher made
MOST_LINKS = 20  # of one person, who asks for one on each device
STATUS = "annotator_status"
_SESSION = (
    SessionRow.token_sha256 == bindparam("token"),
    SessionRow.created > bindparam("since"),
)
# Every request asks this.
_OWNER = (
    select(*(getattr(AnnotatorRow, field.name) for field in fields(Annotator)))
    .join(SessionRow, SessionRow.annotator_id == AnnotatorRow.id)
    .where(*_SESSION)
)
_OWNER_AND_STUDY = (
    select(AnnotatorRow, StudyRow)
    .join(SessionRow, SessionRow.annotator_id == AnnotatorRow.id)
    .join(StudyRow, StudyRow.id == AnnotatorRow.study_id)
    .where(*_SESSION)
)
_HERE = SEEN.where(
    PERSON.c.id == select(SessionRow.annotator_id).where(*_SESSION).scalar_subquery()
).returning(*(PERSON.c[field.name] for field in fields(Annotator)))
_NEXT_SEAT_IS_MINE = (
    select(StudyRow.id)
    .where(StudyRow.id == bindparam("study"), StudyRow.status != DELETED)
    .with_for_update(key_share=True)
)
_SEAT = PERSON.alias("seat")
_TAKE_SEAT = (
    update(PERSON)
    .where(PERSON.c.id == bindparam("me"))
    .values(
        seat=select(func.coalesce(func.max(_SEAT.c.seat) + 1, 0))
        .where(_SEAT.c.study_id == bindparam("study"), _SEAT.c.seat >= 0)
        .scalar_subquery()
    )
    .returning(PERSON.c.seat)
)
_ARRIVING = (
    select(
        StudyRow.status.label("study_status"),
        WRITTEN.label("written"),
        *(PERSON.c[field.name] for field in fields(Annotator)),
    )
    .select_from(StudyRow)
    .outerjoin(PERSON, (PERSON.c.study_id == StudyRow.id) & (PERSON.c.name_key == bindparam("key")))
    .where(StudyRow.id == bindparam("study"))
)
_ADD, _SESSIONS = insert(PERSON), Table.metadata.tables["session"]
_OPEN = insert(_SESSIONS)
_ENDED = delete(_SESSIONS).where(_SESSIONS.c.created <= bindparam("since"))


def annotator_named(
    tx: Session, study_id: str, name: str, now: datetime, *, simulated: bool = False
) -> Annotator:
    """Return the annotator of that name in the study, made if new; letter case does not matter.

    Raises `NotFoundError` for the study, `SignInError` for the pseudonym of an erased annotator.
    """
    spec, known = arriving(tx, study_id, name)
    return known or seated(tx, added(tx, study_id, name, spec, now, simulated=simulated))


def arriving(tx: Session, study_id: str, name: str) -> tuple[StudySpec, Annotator | None]:
    """The settings of a study, and the annotator of that name if there is one.

    Raises `NotFoundError` for the study, `SignInError` for an erased person's name.
    """
    binds = {"study": study_id, "key": name.casefold()}
    row = tx.connection().execute(_ARRIVING, binds).one_or_none()
    if row is None or row.study_status == DELETED:
        raise NotFoundError(NO_STUDY.format(study_id))
    if row.status == AnnotatorStatus.ERASED:
        raise SignInError.of("erased")
    return settings_in(row.written, study_id), None if row.id is None else value_of(row)


def sent_as(tx: Session, annotator: Annotator) -> Mapping[str, str]:
    """Return the ids of the recruiting service that sent `annotator`; none where none did."""
    return tx.get_one(AnnotatorRow, annotator.id).external or {}


def by_name(study_id: str, name: str) -> Select[AnnotatorRow]:
    """Select the annotator of that name in a study; letter case does not matter."""
    return select(AnnotatorRow).where(
        AnnotatorRow.study_id == study_id, AnnotatorRow.name_key == name.casefold()
    )


def added(
    tx: Session,
    study_id: str,
    name: str,
    spec: StudySpec,
    now: datetime,
    *,
    simulated: bool = False,
    external: Mapping[str, str] | None = None,
) -> Annotator:
    """A new annotator, for whom `seated` has to be called before the transaction ends.

    Where another takes the name at the same time, this one is run anew and finds them.

    Args:
        external: The ids of a recruiting service that sent them.
    """
    new = Annotator(
        id=str(uuid.uuid4()),
        study_id=study_id,
        name=name,
        simulated=simulated,
        step=Step.MAIN if simulated else phases.first(spec),
        seat=-1 - secrets.randbelow(2**31 - 1),  # nobody else's, for now
    )
    times = {"created": now, "last_seen": now}
    sent = {"external": dict(external)} if external else {}
    row = {**asdict(new), "name_key": name.casefold(), "check_attempts": 0, **times, **sent}
    tx.connection().execute(_ADD, row)
    note(tx, study_id, JOINED, now, person=new.id, name=name, simulated=simulated)
    return new


def seated(tx: Session, annotator: Annotator) -> Annotator:
    """Return `annotator` with the next seat of the study; the last thing that a transaction does.

    From here to its end no other annotator is given a seat, so that others wait only for what it
    takes to end it. Raises `NotFoundError` for a study that has been deleted meanwhile.
    """
    own, connection = {"study": annotator.study_id, "me": annotator.id}, tx.connection()
    if connection.scalar(_NEXT_SEAT_IS_MINE, own) is None:
        raise NotFoundError(NO_STUDY.format(annotator.study_id))
    return replace(annotator, seat=connection.scalars(_TAKE_SEAT, own).one())


def open_session(tx: Session, annotator: Annotator, now: datetime) -> SignedIn:
    """A new session; its token is told once and kept only as a hash."""
    token = secrets.token_urlsafe(32)
    tx.connection().execute(_ENDED, {"since": now - SESSION_LASTS})
    row = {"token_sha256": digest(token), "annotator_id": annotator.id, "created": now}
    tx.connection().execute(_OPEN, row)
    return SignedIn(session_token=token, annotator=annotator)


def session_owner(tx: Session, token: str) -> Annotator | None:
    """Return the annotator of the session `token`; None if it is of none or has ended."""
    row = tx.connection().execute(_OWNER, _binds(token)).one_or_none()
    return None if row is None else value_of(row)


def owner_asking(tx: Session, token: str) -> Annotator | None:
    """As `session_owner`, of one who asks for items: `eligibility` need not read them again."""
    rows = tx.execute(_OWNER_AND_STUDY, _binds(token)).one_or_none()
    if rows is None:
        return None
    tx.info["person"], tx.info["study"] = rows
    return value_of(rows[0])


def owner_here(tx: Session, token: str, now: datetime) -> Annotator | None:
    """As `session_owner`, and notes that they were here as `slots.here` does."""
    row = touched(tx, _HERE, {**_binds(token), "now": now})
    return None if row is None else value_of(row)


def _binds(token: str) -> dict[str, Any]:
    return {"token": digest(token), "since": datetime.now(UTC) - SESSION_LASTS}


def value_of(row: Row[Any] | AnnotatorRow) -> Annotator:
    """The annotator whose columns a row has."""
    told = same_fields(row, Annotator)
    return Annotator(**told | {"status": AnnotatorStatus(row.status), "step": Step(row.step)})


def close_session(tx: Session, token: str) -> None:
    """Forget a session."""
    tx.execute(delete(SessionRow).where(SessionRow.token_sha256 == digest(token)))


def new_link(tx: Session, annotator: Annotator, now: datetime, made_by: str | None = None) -> str:
    """Return the secret of one more link of the annotator's own, given once, kept only as a hash.

    Args:
        made_by: The account that made it, None for the annotator. The `MOST_LINKS` of a person that
            were made or used last work.
    """
    secret = secrets.token_urlsafe(24)
    mine = PersonalLinkRow.annotator_id == annotator.id
    latest = select(PersonalLinkRow.token_sha256).where(mine)
    order = (PersonalLinkRow.created.desc(), PersonalLinkRow.token_sha256)
    kept = tx.scalars(latest.order_by(*order).limit(MOST_LINKS - 1)).all()
    tx.execute(delete(PersonalLinkRow).where(mine, PersonalLinkRow.token_sha256.not_in(kept)))
    row = {"token_sha256": digest(secret), "annotator_id": annotator.id, "created": now}
    tx.add(PersonalLinkRow(**row, made_by=made_by))
    return secret


def new_link_of(tx: Session, study_id: str, name: str, now: datetime) -> str:
    """As `new_link`, by name; raises `NotFoundError`, and `ConflictError` if they are erased."""
    person = locked(tx, study_id, name)
    _require(person, AnnotatorStatus.ACTIVE, AnnotatorStatus.PAUSED, AnnotatorStatus.EXCLUDED)
    note(tx, study_id, LINKED, now, person=person.id)
    return new_link(tx, value_of(person), now, author(tx).get("by"))


def note_use(tx: Session, secret: str, now: datetime) -> Annotator:
    """Count a personal link as made now: one that is in use is not to make room for others.

    The holder of a link that a researcher made is unknown: from its use on, the votes of its
    annotator are left out until `include`. Returns that annotator.
    """
    link = tx.get_one(PersonalLinkRow, digest(secret))
    link.created = now
    person = tx.get_one(AnnotatorRow, link.annotator_id)
    if link.made_by is not None and person.link_by is None:
        person.link_by = link.made_by
        note(tx, person.study_id, CAME_IN, now, person=person.id, made_by=link.made_by)
    return value_of(person)


def link_owner(tx: Session, secret: str) -> Annotator | None:
    """Return the annotator of a personal link, None if it is of none (any more)."""
    link = tx.get(PersonalLinkRow, digest(secret))
    return None if link is None else value_of(tx.get_one(AnnotatorRow, link.annotator_id))


def is_of_researcher(tx: Session, secret: str) -> bool:
    """Tell whether a researcher made a personal link; False where there is no such link."""
    link = tx.get(PersonalLinkRow, digest(secret))
    return link is not None and link.made_by is not None


def pause(tx: Session, /, study_id: str, name: str, now: datetime, **data: Any) -> Annotator:
    """Let an annotator vote no more for now; what they hold becomes free for others.

    Args:
        data: What the event says besides.

    Raises:
        NotFoundError: For the name.
        ConflictError: If they are excluded or erased.
    """
    person = locked(tx, study_id, name)
    _require(person, AnnotatorStatus.ACTIVE, AnnotatorStatus.PAUSED)
    if person.status == AnnotatorStatus.ACTIVE:
        _release(tx, person, (SlotState.LEASED,), now)
        _put(tx, person, AnnotatorStatus.PAUSED, now, **data)
    return value_of(person)


def resume(tx: Session, study_id: str, name: str, now: datetime) -> Annotator:
    """Let an annotator who was paused go on.

    Raises `NotFoundError` for the name, `ConflictError` if they are excluded or erased.
    """
    person = locked(tx, study_id, name)
    _require(person, AnnotatorStatus.ACTIVE, AnnotatorStatus.PAUSED)
    if person.status == AnnotatorStatus.PAUSED:
        _put(tx, person, AnnotatorStatus.ACTIVE, now)
    return value_of(person)


def exclude(tx: Session, study_id: str, name: str, now: datetime) -> Annotator:
    """Let none of an annotator's votes count; each slot they filled is another's to fill.

    Raises `NotFoundError` for the name, `ConflictError` if they are erased.
    """
    person = locked(tx, study_id, name)
    _require(person, AnnotatorStatus.ACTIVE, AnnotatorStatus.PAUSED, AnnotatorStatus.EXCLUDED)
    if person.status != AnnotatorStatus.EXCLUDED:
        votes = _discount(tx, person, now)
        _put(tx, person, AnnotatorStatus.EXCLUDED, now, votes=votes)
    return value_of(person)


def include(tx: Session, study_id: str, name: str, now: datetime) -> Annotator:
    """Let an excluded annotator go on, and their votes count where there is still room.

    Also one whom a researcher's link let in: the votes are their own, and that link and
    others made for them leave none out any more. Votes without room become surplus. Raises
    `NotFoundError` for the name, `ConflictError` unless they are excluded or active already.
    """
    person = locked(tx, study_id, name)
    _require(person, AnnotatorStatus.ACTIVE, AnnotatorStatus.EXCLUDED)
    if person.status == AnnotatorStatus.EXCLUDED or person.link_by is not None:
        votes = _recount(tx, person, now)
        links = PersonalLinkRow.annotator_id == person.id
        tx.execute(update(PersonalLinkRow).where(links).values(made_by=None))
        vouched, person.link_by = person.link_by, None
        told: dict[str, Any] = {**votes, **({} if vouched is None else {"link_by": vouched})}
        _put(tx, person, AnnotatorStatus.ACTIVE, now, **told)
    return value_of(person)


def erase(
    tx: Session, study_id: str, name: str, pseudonym: str, now: datetime, *, keep_votes: bool
) -> Annotator:
    """Call an annotator `pseudonym` from now on and end their sessions; erasing again is fine.

    What their browser called its tabs goes, too. Unless `keep_votes`, none of their votes counts
    and what they answered is blanked, in the votes and in the events, those of the check too.
    `annotation.store.Store.scrub` takes care of the files. Raises `NotFoundError` for the name,
    `ConflictError` for votes to keep of an annotator who refused that.
    """
    person = locked(tx, study_id, name)
    if keep_votes and person.keep_votes is False:
        raise ConflictError(
            f"{person.name} did not agree that their answers are kept. Remove their votes."
        )
    votes = [] if keep_votes else _discount(tx, person, now)
    _release(tx, person, (SlotState.LEASED,), now)
    erased = person.status == AnnotatorStatus.ERASED
    _put(tx, person, AnnotatorStatus.ERASED, now, votes=votes)
    tx.flush()  # only what an erased person said may be blanked
    _blank_events(tx, person, JOINED)
    _blank_tabs(tx, person)
    if not keep_votes:
        _blank_events(tx, person, VOTED, CHECKED)
        _blank_votes(tx, person)
    for table in (SessionRow, PersonalLinkRow):
        tx.execute(delete(table).where(table.annotator_id == person.id))
    person.external = person.completion_code = None
    if not erased:
        # Last, since others who refer to this person wait from here on.
        person.name, person.name_key = pseudonym, pseudonym.casefold()
    return value_of(person)


def _blank_events(tx: Session, person: AnnotatorRow, *kinds: str) -> None:
    told = update(EventRow).where(EventRow.annotator_id == person.id, EventRow.kind.in_(kinds))
    tx.execute(told.values(data={}))


def _blank_tabs(tx: Session, person: AnnotatorRow) -> None:
    # The browser made them up, so nobody knows what they say.
    _lock_items(tx, select(SlotRow.stimulus_id).where(SlotRow.annotator_id == person.id))
    for table in (SlotRow, TrialRow, VoteRow):
        tx.execute(update(table).where(table.annotator_id == person.id).values(tab=""))


def _blank_votes(tx: Session, person: AnnotatorRow) -> None:
    given = update(VoteRow).where(VoteRow.annotator_id == person.id)
    nothing = {"reason": None, "rt_ms": None, "client_ts": None, "recognised": False}
    tx.execute(given.values(answer="", display={}, views=[], **nothing))


def locked(tx: Session, study_id: str, name: str) -> AnnotatorRow:
    """Return an annotator's row, which only this transaction can change; raises `NotFoundError`."""
    # Not the key: others may refer to this person meanwhile, who may hold what comes next.
    person = tx.scalar(by_name(study_id, name).with_for_update(key_share=True))
    if person is None:
        raise NotFoundError(f"Nobody in this study is called {name!r}.")
    return person


def _require(person: AnnotatorRow, *expected: AnnotatorStatus) -> None:
    if person.status not in expected:
        raise ConflictError(
            f"{person.name} is {person.status}; this can be done only with somebody who is "
            f"{' or '.join(expected)}."
        )


def _put(
    tx: Session, person: AnnotatorRow, status: AnnotatorStatus, now: datetime, **data: Any
) -> None:
    change: dict[str, Any] = {"before": person.status, "after": status, **data}
    note(tx, person.study_id, STATUS, now, person=person.id, **change)
    person.status = status


def _release(tx: Session, person: AnnotatorRow, states: Sequence[SlotState], now: datetime) -> None:
    """Turn the slots that `person` holds in `states` into leases that have run out."""
    waits = (SlotRow.state != SlotState.LEASED) | (SlotRow.lease_until > LEFT_OUT)
    held = (SlotRow.annotator_id == person.id, SlotRow.state.in_(states), waits)
    _lock_items(tx, select(SlotRow.stimulus_id).where(*held))
    tx.execute(
        update(SlotRow).where(*held).values(state=SlotState.LEASED, lease_until=now - MOMENT)
    )


def _lock_items(tx: Session, items: Select[str]) -> None:
    lock = select(StimulusRow.id).where(StimulusRow.id.in_(items)).order_by(StimulusRow.id)
    tx.execute(lock.with_for_update(key_share=True))


def _discount(tx: Session, person: AnnotatorRow, now: datetime) -> list[str]:
    """Exclude all counted votes of `person`; returns their ids."""
    _release(tx, person, (SlotState.LEASED, SlotState.DONE), now)
    counted = _votes(person, VoteStatus.COUNTED)
    votes = tx.scalars(select(VoteRow.id).where(*counted).order_by(VoteRow.id)).all()
    tx.execute(update(VoteRow).where(*counted).values(status=VoteStatus.EXCLUDED))
    settle_tie_breaks_of(tx, person.study_id, votes, now)
    return list(votes)


def _recount(tx: Session, person: AnnotatorRow, now: datetime) -> dict[str, list[str]]:
    """Give the excluded votes of `person` slots where there are any; ids by what they became."""
    excluded = _votes(person, VoteStatus.EXCLUDED)
    _lock_items(tx, select(VoteRow.stimulus_id).where(*excluded))
    became = {VoteStatus.COUNTED: _refill_own(tx, person), VoteStatus.SURPLUS: []}
    displaced = tx.scalars(select(VoteRow).where(*excluded).order_by(VoteRow.stimulus_id)).all()
    for batch in batches(displaced):
        slots = lock_slots(tx, [vote.stimulus_id for vote in batch])
        for vote in batch:
            slot = slot_for(slots[vote.stimulus_id], person.id, now)
            if slot is None:
                vote.status = VoteStatus.SURPLUS
            else:
                take(tx, value_of(person), vote.stimulus_id, slot, now)
                set_slot(tx, slot.id, SlotState.DONE, lease_until=None)
                vote.status, vote.slot_id = VoteStatus.COUNTED, slot.id
            became[VoteStatus(vote.status)].append(vote.id)
    tx.flush()
    settle_tie_breaks_of(tx, person.study_id, became[VoteStatus.COUNTED], now)
    return {status.value: votes for status, votes in became.items()}


def _refill_own(tx: Session, person: AnnotatorRow) -> list[str]:
    """Count the excluded votes whose slots were not taken over: usually all, so in one go."""
    held = (SlotRow.annotator_id == person.id, SlotRow.state == SlotState.LEASED)
    own = (
        *_votes(person, VoteStatus.EXCLUDED),
        VoteRow.slot_id.in_(select(SlotRow.id).where(*held)),
    )
    votes = tx.scalars(select(VoteRow.id).where(*own).order_by(VoteRow.id)).all()
    tx.execute(update(VoteRow).where(*own).values(status=VoteStatus.COUNTED))
    counted = select(VoteRow.slot_id).where(*_votes(person, VoteStatus.COUNTED))
    filled = update(SlotRow).where(*held, SlotRow.id.in_(counted))
    tx.execute(filled.values(state=SlotState.DONE, lease_until=None))
    return list(votes)


def _votes(person: AnnotatorRow, status: VoteStatus) -> tuple[ColumnElement[bool], ...]:
    return VoteRow.annotator_id == person.id, VoteRow.status == status
