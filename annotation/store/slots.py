"""Inside one transaction: slots as they are held, answered and given back; `leases` hands them out.

Lock order, the same everywhere so that transactions do not wait in a circle: the annotator's own
row, then the stimuli in the order of their ids, then slots. Slots of one item are taken in the
order of k and never become free again (a lease that runs out is taken over as it is). What a
paused or excluded annotator held is a lease that has run out.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Integer,
    Row,
    Text,
    and_,
    bindparam,
    cast,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session
from sqlalchemy.sql.dml import ReturningUpdate

from annotation.design.assignment import LEFT_OUT, Slot, slot_for, wants_another
from annotation.domain import Annotator, AnnotatorStatus, SlotState, Step, TaskItem, VoteStatus
from annotation.errors import NotAllowedError, NotFoundError
from annotation.spec import StudySpec
from annotation.store.eligibility import LEASE_LOST, study_row
from annotation.store.engine import batches
from annotation.store.events import EXTRA_VOTE, note
from annotation.store.next_items import FREE, LEASED
from annotation.store.studies import settings_of
from annotation.store.tables import (
    CandidateListRow,
    EventRow,
    SlotRow,
    StimulusRow,
    StudyRow,
    Table,
    VoteRow,
)

# Statements on tables cost half of what those on mapped classes do.
SLOT, PERSON = Table.metadata.tables["slot"], Table.metadata.tables["annotator"]
SEEN = update(PERSON).values(last_seen=bindparam("now"))
_SEEN = SEEN.where(PERSON.c.id == bindparam("me")).returning(
    PERSON.c.status, PERSON.c.step, PERSON.c.link_by
)
_ITEMS: BindParameter[str] = bindparam("items", expanding=True)
_LOCK = select(StimulusRow.id).where(StimulusRow.id.in_(_ITEMS)).order_by(StimulusRow.id)
_LOCK_ALL, _LOCK_SOME = (
    _LOCK.with_for_update(key_share=True, skip_locked=skip) for skip in (False, True)
)
_SLOTS_OF = select(
    *(SLOT.c[name] for name in ("stimulus_id", "id", "k", "state", "annotator_id", "lease_until"))
).where(SLOT.c.stimulus_id.in_(_ITEMS))
_SLOTS_LOCKED = _SLOTS_OF.order_by(SLOT.c.id).with_for_update(key_share=True, of=SLOT)
_BEFORE = SLOT.alias("before")
_FIRST_FREE = ~exists().where(
    _BEFORE.c.stimulus_id == SLOT.c.stimulus_id,
    _BEFORE.c.k == SLOT.c.k - 1,
    _BEFORE.c.state == FREE,
)
# Of each item only those that `slot_for` may choose: few of very many.
_ROOM = _SLOTS_OF.where(
    or_(
        and_(SLOT.c.state == FREE, _FIRST_FREE),
        and_(SLOT.c.state == LEASED, SLOT.c.lease_until < bindparam("now")),
        SLOT.c.annotator_id == bindparam("me"),
    )
    # One that is locked is being extended by whoever holds it, without a lock on its stimulus.
).with_for_update(key_share=True, of=SLOT, skip_locked=True)
# No equality, by which PostgreSQL would look through the leases of everybody wherever it last saw
# few of them.
MY_LEASES = and_(
    SLOT.c.annotator_id == bindparam("me"),
    SLOT.c.state.between(LEASED, LEASED),
    SLOT.c.lease_until > LEFT_OUT,
)
SHOWN = (
    select(
        StimulusRow.id,
        StimulusRow.original_token,
        StimulusRow.token,
        cast(CandidateListRow.classes, Text).label("classes"),
    )
    .outerjoin(CandidateListRow, CandidateListRow.id == StimulusRow.list_id)
    .where(StimulusRow.id.in_(_ITEMS))
)
_PUT = update(SLOT).where(SLOT.c.id == bindparam("slot"))
_EXTEND = (
    update(SLOT)
    .where(
        MY_LEASES,
        SLOT.c.stimulus_id.in_(_ITEMS),
        or_(
            SLOT.c.tab != bindparam("for_tab"),
            ~SLOT.c.lease_until.between(bindparam("enough"), bindparam("until")),
        ),
    )
    .values(lease_until=bindparam("until"), tab=bindparam("for_tab"))
    .returning(SLOT.c.stimulus_id)
)
_ANSWERED = (
    update(SLOT)
    .where(MY_LEASES, SLOT.c.stimulus_id == bindparam("item"))
    .values(state=SlotState.DONE, lease_until=None)
    .returning(SLOT.c.id)
)
_HAND_OUT = (
    update(SLOT)
    .where(
        SLOT.c.stimulus_id == bindparam("item"),
        SLOT.c.k == bindparam("place"),
        SLOT.c.state != SlotState.DONE,  # an answer keeps its slot, whatever else is wrong
    )
    .values(
        state=bindparam("becomes"),
        annotator_id=bindparam("holder"),
        given=bindparam("number"),
        lease_until=bindparam("until"),
        tab=bindparam("for_tab"),
        begun=bindparam("mark"),
    )
)
_BEGUN = {
    "becomes": SlotState.FREE,
    "holder": None,
    "number": None,
    "until": None,
    "for_tab": "",
    "mark": 1,
}
# A page asks for its two hundred items again and again, and says that it is still there: their
# reservations are written anew only once this part of them has passed.
EXTENDED_AFTER = 1 / 20
# By how much more than a lease one may end after now: servers have clocks of their own, and a
# writer waits for its turn (`engine.LONGEST`).
CLOCKS_DIFFER = timedelta(seconds=60)
# A lease is over once its end has passed, so that of a released one lies just before now.
MOMENT = timedelta(microseconds=1)
_REFUSED = {  # by the name of the error
    AnnotatorStatus.PAUSED: "paused",
    AnnotatorStatus.EXCLUDED: "excluded",
    AnnotatorStatus.ERASED: "gone",
}


def lock_slots(tx: Session, items: Sequence[str]) -> dict[str, list[Slot]]:
    """Return the slots of `items`, which no other transaction can change until this one ends."""
    return slots_of(tx, _locked(tx, items, skip_locked=False))


def lock_room(
    tx: Session, items: Sequence[str], me: Annotator, now: datetime, *, skip_locked: bool
) -> dict[str, Slot]:
    """As `lock_slots`, of each of `items` the slot that `me` may hold now, where there is one.

    Args:
        skip_locked: Leave out what others have locked, in place of waiting for them.
    """
    binds = {"items": _locked(tx, items, skip_locked=skip_locked), "me": me.id, "now": now}
    found = _by_item(tx.connection().execute(_ROOM, binds).all())
    room = {item: slot_for(slots, me.id, now) for item, slots in found.items()}
    return {item: slot for item, slot in room.items() if slot is not None}


def _locked(tx: Session, items: Sequence[str], *, skip_locked: bool) -> Sequence[str]:
    if tx.get_bind().dialect.name == "sqlite":  # there, whoever writes is alone
        return items
    return tx.scalars(_LOCK_SOME if skip_locked else _LOCK_ALL, {"items": items}).all()


def slots_of(tx: Session, items: Sequence[str]) -> dict[str, list[Slot]]:
    """Return the slots of `items`, which no other transaction extends until this one ends.

    Others may answer or take over those of an item whose stimulus is not locked.
    """
    return _by_item(tx.connection().execute(_SLOTS_LOCKED, {"items": items}).all())


def _by_item(rows: Sequence[Any]) -> dict[str, list[Slot]]:
    slots: dict[str, list[Slot]] = defaultdict(list)
    for item, slot_id, k, state, holder, until in rows:
        slots[item].append(
            Slot(id=slot_id, k=k, state=SlotState(state), annotator=holder, lease_until=until)
        )
    return slots


def take(tx: Session, annotator: Annotator, item: str, slot: Slot, now: datetime) -> None:
    """Give `slot` of an item that is not shown to `annotator` now to them."""
    if slot.annotator != annotator.id:
        votes_per_item = study_row(tx, annotator).votes_per_item
        hand_out(tx, annotator, {item: slot}, votes_per_item, now, until=now)


def hand_out(
    tx: Session,
    annotator: Annotator,
    slots: Mapping[str, Slot],
    votes_per_item: int,
    now: datetime,
    *,
    until: datetime,
    tab: str = "",
    after: int | None = None,
) -> None:
    """Give `annotator` these slots, by item; the items are locked.

    Args:
        after: The number of the last item they were given, None for items that are not shown to
            them. Whoever let a lease expire is on record as having seen the item, and the last slot
            of an item whose first one goes says that it is begun.
    """
    same = {"becomes": SlotState.LEASED, "holder": annotator.id, "until": until, "for_tab": tab}
    rows: list[dict[str, Any]] = []
    for number, (item, slot) in enumerate(slots.items(), 1):
        given = None if after is None else after + number
        rows.append({"item": item, "place": slot.k, "number": given, "mark": 0, **same})
        if slot.k == 0 and slot.state is SlotState.FREE and votes_per_item > 1:
            rows.append({"item": item, "place": votes_per_item - 1, **_BEGUN})
        if slot.annotator not in (None, annotator.id):
            lost = {"person": slot.annotator, "item": item, "taken_by": annotator.id}
            note(tx, annotator.study_id, LEASE_LOST, now, **lost)
    tx.connection().execute(_HAND_OUT, rows)


def set_slot(tx: Session, slot_id: int, state: SlotState, **values: object) -> None:
    """Put one slot into `state`."""
    tx.connection().execute(_PUT, {"slot": slot_id, "state": state, **values})


def good_ends(now: datetime, spec: StudySpec) -> tuple[datetime, datetime]:
    """The first and the last end of a reservation that need not be written anew."""
    lasts = timedelta(seconds=spec.lease_seconds)
    return now + lasts * (1 - EXTENDED_AFTER), now + lasts


def extend(
    tx: Session,
    annotator: Annotator,
    tab: str,
    items: Sequence[str],
    ends: tuple[datetime, datetime],
) -> Sequence[str]:
    """Reserve those of `items` that `annotator` still holds for `tab`, until the last of `ends`.

    Those of `tab` that have one of the `good_ends` keep it; returns the others.
    """
    enough, until = ends
    binds = {"me": annotator.id, "items": items, "until": until, "for_tab": tab, "enough": enough}
    return tx.connection().execute(_EXTEND, binds).scalars().all()


def answered(tx: Session, annotator: Annotator, item: str) -> int | None:
    """The slot of `item`, which is locked, that `annotator` holds: done from now on. Else None."""
    binds = {"me": annotator.id, "item": item}
    return tx.connection().execute(_ANSWERED, binds).scalar_one_or_none()


def heartbeat(
    tx: Session, annotator: Annotator, tab: str, items: Sequence[str], now: datetime
) -> None:
    """Say that `annotator` is still looking at `items`; `NotAllowedError` if they may not."""
    require_active(touch(tx, annotator, now))
    extend(tx, annotator, tab, items, good_ends(now, settings_of(study_row(tx, annotator))))


def touch(tx: Session, annotator: Annotator, now: datetime) -> AnnotatorStatus:
    """Note that `annotator` was here; their other requests wait until this one is done.

    Returns the status they have until this transaction ends, whatever `annotator` says.
    """
    return here(tx, annotator, now).status


def here(tx: Session, annotator: Annotator, now: datetime) -> Annotator:
    """As `touch`: `annotator` with all that may change, as it is until this transaction ends."""
    row = touched(tx, _SEEN, {"me": annotator.id, "now": now})
    if row is None:
        raise NotFoundError("You are not part of this study (any more). Open its link again.")
    status, step = AnnotatorStatus(row.status), Step(row.step)
    return replace(annotator, status=status, step=step, link_by=row.link_by)


def touched(tx: Session, seen: ReturningUpdate[Any], binds: Mapping[str, Any]) -> Row[Any] | None:
    """Return the row of `seen`, a kind of `SEEN`, of the annotator who was here; None for none."""
    tx.flush()  # what follows goes past the session
    return tx.connection().execute(seen, binds).one_or_none()


def require_active(status: AnnotatorStatus) -> None:
    """Raise `NotAllowedError` with what an annotator of that status is to be told."""
    if status is not AnnotatorStatus.ACTIVE:
        raise NotAllowedError.of(_REFUSED[status])


def task_items(tx: Session, items: Sequence[str], until: datetime) -> list[TaskItem]:
    """Return what a browser is sent about `items`, in their order."""
    rows = tx.connection().execute(SHOWN, {"items": items}).all()
    found = {
        item: TaskItem(
            item=item,
            images=(shown,) if original is None else (original, shown),
            candidates=classes_in(offered),
            lease_until=until,
        )
        for item, original, shown, offered in rows
    }
    return [found[item] for item in items]


@lru_cache(maxsize=20_000)  # a page asks for its two hundred items again and again
def classes_in(written: str | None) -> tuple[str, ...]:
    """The classes that `SHOWN` gives of an item; none where it offers none."""
    return () if written is None else tuple(map(sys.intern, json.loads(written)))


def end_ahead(tx: Session, annotator: Annotator, now: datetime) -> None:
    """End the leases of `ahead` in the study of `annotator`."""
    lock_slots(tx, ahead(tx, annotator, now))
    ends = update(SLOT).where(*_ahead(tx, annotator, now)).values(lease_until=now - MOMENT)
    tx.connection().execute(ends)


def ahead(tx: Session, annotator: Annotator, now: datetime) -> Sequence[str]:
    """Items with a lease that ends later than one given now: a clock had run ahead."""
    where = _ahead(tx, annotator, now)
    return tx.scalars(select(SLOT.c.stimulus_id).where(*where).distinct()).all()


def _ahead(tx: Session, annotator: Annotator, now: datetime) -> tuple[ColumnElement[bool], ...]:
    lasts = timedelta(seconds=settings_of(study_row(tx, annotator)).lease_seconds)
    mine = SLOT.c.study_id == annotator.study_id, SLOT.c.state == LEASED
    return *mine, SLOT.c.lease_until > now + lasts + CLOCKS_DIFFER


def has_held(tx: Session, annotator: Annotator, item: str) -> bool:
    """Return whether `annotator` holds `item`, answered it, or lost it when a lease ran out."""
    holds = exists().where(SlotRow.stimulus_id == item, SlotRow.annotator_id == annotator.id)
    lost = exists().where(
        and_(
            EventRow.stimulus_id == item,
            EventRow.annotator_id == annotator.id,
            EventRow.kind == LEASE_LOST,
        )
    )
    return bool(tx.scalar(select(or_(holds, lost))))


def release(
    tx: Session, annotator: Annotator, tab: str, items: Sequence[str], now: datetime
) -> None:
    """Turn what `annotator` holds of `items` in `tab` into leases that have run out."""
    touch(tx, annotator, now)
    lock_slots(tx, items)
    tx.execute(
        update(SlotRow)
        .where(
            SlotRow.annotator_id == annotator.id,
            SlotRow.state == SlotState.LEASED,
            SlotRow.lease_until > LEFT_OUT,
            SlotRow.tab == tab,
            SlotRow.stimulus_id.in_(items),
        )
        .values(lease_until=now - MOMENT)
    )


# ------------------------------------------------------------------ one vote more where K are split


def settle_tie_breaks(tx: Session, study_id: str, items: Sequence[str], now: datetime) -> None:
    """Give each of `items`, whose stimuli the caller has locked, the extra slot it needs or none.

    A split item gets a slot K in the transaction that splits it. When that is no longer so (a vote
    was taken back, an annotator excluded) and the slot has not been given, it is withdrawn. One
    that has been given stays, and the vote in it counts. Nothing in a study without extra votes.
    """
    study = tx.get_one(StudyRow, study_id)
    if not settings_of(study).extra_vote:
        return
    for batch in batches(list(dict.fromkeys(items))):
        _settle(tx, study, batch, now)


def settle_tie_breaks_of(tx: Session, study_id: str, votes: Sequence[str], now: datetime) -> None:
    """`settle_tie_breaks` of the items of these votes."""
    for batch in batches(votes):
        of = select(VoteRow.stimulus_id).where(VoteRow.id.in_(batch))
        settle_tie_breaks(tx, study_id, tx.scalars(of).all(), now)


def _settle(tx: Session, study: StudyRow, items: Sequence[str], now: datetime) -> None:
    k = study.votes_per_item
    votes = _counted(tx, items)
    extra = select(SlotRow.stimulus_id, SlotRow.state).where(
        SlotRow.stimulus_id.in_(items), SlotRow.k == k
    )
    there = dict(tx.execute(extra).all())
    split = {item for item in items if wants_another(*votes.get(item, (0, 0)), k)}
    free = {item for item, state in there.items() if state == SlotState.FREE}
    opened, withdrawn = sorted(split - set(there)), sorted(free - split)
    if opened:
        _open(tx, opened, k)
    if withdrawn:
        tx.execute(delete(SlotRow).where(SlotRow.stimulus_id.in_(withdrawn), SlotRow.k == k))
    for item in (*opened, *withdrawn):
        note(tx, study.id, EXTRA_VOTE, now, item=item, wanted=item in split)


def _counted(tx: Session, items: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Count for each item the counted votes that recognised it, and all counted votes."""
    rows = tx.execute(
        select(VoteRow.stimulus_id, func.sum(cast(VoteRow.recognised, Integer)), func.count())
        .where(VoteRow.stimulus_id.in_(items), VoteRow.status == VoteStatus.COUNTED)
        .group_by(VoteRow.stimulus_id)
    )
    return {item: (int(recognised), n) for item, recognised, n in rows}


def _open(tx: Session, items: Sequence[str], k: int) -> None:
    first = tx.execute(
        select(
            SlotRow.study_id, SlotRow.stimulus_id, SlotRow.source_id, SlotRow.salt, SlotRow.cell
        ).where(SlotRow.stimulus_id.in_(items), SlotRow.k == 0)
    )
    slots: list[dict[str, Any]] = [
        {**row, "k": k, "begun": 1, "state": SlotState.FREE, "tab": ""} for row in first.mappings()
    ]
    tx.execute(insert(SlotRow), slots)
