"""Inside one transaction: handing out slots, taking votes, taking them back.

Lock order, the same everywhere so that nobody waits in a circle: the annotator's own row, then
the stimuli in the order of their ids, then slots. Slots of one item are taken in the order of k
and never become free again (a lease that runs out is taken over as it is), so an item is started
when its slot 0 is taken and has room when its last slot is free. What somebody who is paused or
excluded held is a lease that has run out.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Select, and_, exists, literal_column, or_, select, update
from sqlalchemy.orm import Session, aliased

from annotation.domain import Annotator, AnnotatorStatus, SlotState, StudyStatus, TaskItem
from annotation.errors import NotAllowedError, NotFoundError
from annotation.store.tables import (
    AnnotatorRow,
    CandidateListRow,
    EventRow,
    SlotRow,
    StimulusRow,
    StudyRow,
)
from annotation.tasks.assignment import PRIME, Order, Slot, order_of, slot_for

LEASE_LOST = "lease_lost"
_REFUSED = {
    AnnotatorStatus.PAUSED: (
        "The researcher has paused your part in this study, so this was not taken. "
        "You can send it again once you may continue."
    ),
    AnnotatorStatus.EXCLUDED: (
        "The researcher has ended your part in this study, so this was not taken."
    ),
    AnnotatorStatus.ERASED: "You have been erased from this study, so this was not taken.",
}

# Spelt out in the SQL: only then do the databases see that the partial indices apply.
FREE: ColumnElement[str] = literal_column(f"'{SlotState.FREE}'")
LEASED: ColumnElement[str] = literal_column(f"'{SlotState.LEASED}'")


def open_items(tx: Session, annotator: Annotator, n: int, now: datetime) -> list[str]:
    """Up to `n` items to claim, best first: interrupted, then started, then fresh ones.

    Read without a lock, so some may be gone when they are claimed. Empty unless the study runs
    and `annotator` is active.
    """
    study = _study(tx, annotator)
    person = tx.get(AnnotatorRow, annotator.id)
    active = person is not None and person.status == AnnotatorStatus.ACTIVE
    if study.status != StudyStatus.RUNNING or not active:
        return []
    order = order_of(study.seed, annotator.name.casefold())
    found: list[str] = []
    for query in (
        _interrupted(annotator, now),
        _started(annotator, study.votes_per_item),
        _fresh(annotator),
    ):
        if len(found) < n:
            found += tx.scalars(_in_order(query, order).limit(n))
    # An interrupted item may be a started one as well.
    return list(dict.fromkeys(found))[:n]


def _interrupted(annotator: Annotator, now: datetime) -> Select[str]:
    return select(SlotRow.stimulus_id).where(
        SlotRow.study_id == annotator.study_id,
        SlotRow.state == LEASED,
        SlotRow.lease_until < now,
        or_(SlotRow.annotator_id == annotator.id, ~_holds(annotator)),
    )


def _started(annotator: Annotator, votes_per_item: int) -> Select[str]:
    first = aliased(SlotRow)
    fresh = exists().where(
        first.study_id == SlotRow.study_id,
        first.stimulus_id == SlotRow.stimulus_id,
        first.k == 0,
        first.state == FREE,
    )
    return select(SlotRow.stimulus_id).where(
        SlotRow.study_id == annotator.study_id,
        SlotRow.state == FREE,
        SlotRow.k == votes_per_item - 1,
        ~fresh,
        ~_holds(annotator),
    )


def _fresh(annotator: Annotator) -> Select[str]:
    return select(SlotRow.stimulus_id).where(
        SlotRow.study_id == annotator.study_id, SlotRow.state == FREE, SlotRow.k == 0
    )


def _holds(annotator: Annotator) -> ColumnElement[bool]:
    own = aliased(SlotRow)
    return exists().where(own.stimulus_id == SlotRow.stimulus_id, own.annotator_id == annotator.id)


def _in_order(query: Select[str], order: Order) -> Select[str]:
    return query.order_by((order.factor * SlotRow.salt + order.offset) % PRIME)


def lease(
    tx: Session,
    annotator: Annotator,
    tab: str,
    wanted: Sequence[str],
    n: int,
    now: datetime,
    *,
    last_try: bool,
) -> list[TaskItem]:
    """Up to `n` items reserved for `annotator` in `tab`: those it has, then of `wanted`.

    Items that somebody else is claiming at this moment are skipped; the `last_try` waits to see
    whether they still have room, and if nothing else is left moves items here from other tabs.
    """
    status = touch(tx, annotator, now)
    study = _study(tx, annotator)
    if study.status != StudyStatus.RUNNING or status is not AnnotatorStatus.ACTIVE:
        return []
    until = now + timedelta(seconds=study.spec["lease_seconds"])
    items = _own_leases(tx, annotator, SlotRow.tab == tab, n)
    new = [item for item in wanted if item not in items]
    slots = lock_slots(tx, new, skip_locked=not last_try) if len(items) < n else {}
    items += _claim(tx, annotator, new, slots, n - len(items), now)
    if last_try and not items:
        items = _own_leases(tx, annotator, SlotRow.tab != tab, n)
    extend(tx, annotator, tab, items, until)
    return task_items(tx, items, until)


def _own_leases(tx: Session, annotator: Annotator, where: ColumnElement[bool], n: int) -> list[str]:
    query = select(SlotRow.stimulus_id).where(
        SlotRow.annotator_id == annotator.id, SlotRow.state == LEASED, where
    )
    return list(tx.scalars(query.order_by(SlotRow.id).limit(n)))


def _claim(
    tx: Session,
    annotator: Annotator,
    wanted: Sequence[str],
    slots: Mapping[str, Sequence[Slot]],
    n: int,
    now: datetime,
) -> list[str]:
    claimed: list[str] = []
    for item in wanted:
        slot = slot_for(slots.get(item, ()), annotator.id, now) if len(claimed) < n else None
        if slot is not None:
            take(tx, annotator, item, slot, now)
            claimed.append(item)
    return claimed


def lock_slots(
    tx: Session, items: Sequence[str], *, skip_locked: bool = False
) -> dict[str, list[Slot]]:
    """The slots of `items`, which nobody else can change until this transaction ends."""
    lock = select(StimulusRow.id).where(StimulusRow.id.in_(items)).order_by(StimulusRow.id)
    locked = tx.scalars(lock.with_for_update(key_share=True, skip_locked=skip_locked)).all()
    rows = tx.execute(
        select(
            SlotRow.stimulus_id,
            SlotRow.id,
            SlotRow.k,
            SlotRow.state,
            SlotRow.annotator_id,
            SlotRow.lease_until,
        ).where(SlotRow.stimulus_id.in_(locked))
    )
    slots: dict[str, list[Slot]] = defaultdict(list)
    for item, slot_id, k, state, holder, until in rows:
        slots[item].append(
            Slot(id=slot_id, k=k, state=SlotState(state), annotator=holder, lease_until=until)
        )
    return slots


def take(tx: Session, annotator: Annotator, item: str, slot: Slot, now: datetime) -> None:
    """Give `slot` to `annotator`; whoever let it expire is on record as having seen the item."""
    if slot.annotator == annotator.id:
        return
    if slot.annotator is not None:
        tx.add(
            EventRow(
                study_id=annotator.study_id,
                kind=LEASE_LOST,
                annotator_id=slot.annotator,
                stimulus_id=item,
                at=now,
                data={"taken_by": annotator.id},
            )
        )
    set_slot(tx, slot.id, SlotState.LEASED, annotator_id=annotator.id, lease_until=now)


def set_slot(tx: Session, slot_id: int, state: SlotState, **values: object) -> None:
    """Put one slot into `state`."""
    tx.execute(update(SlotRow).where(SlotRow.id == slot_id).values(state=state, **values))


def extend(
    tx: Session, annotator: Annotator, tab: str, items: Sequence[str], until: datetime
) -> None:
    """Reserve those of `items` that `annotator` still holds until `until`, for `tab`."""
    tx.execute(
        update(SlotRow)
        .where(
            SlotRow.annotator_id == annotator.id,
            SlotRow.state == LEASED,
            SlotRow.stimulus_id.in_(items),
        )
        .values(lease_until=until, tab=tab)
    )


def heartbeat(
    tx: Session, annotator: Annotator, tab: str, items: Sequence[str], now: datetime
) -> None:
    """Say that `annotator` is still looking at `items`; `NotAllowedError` if they may not."""
    require_active(touch(tx, annotator, now))
    until = now + timedelta(seconds=_study(tx, annotator).spec["lease_seconds"])
    extend(tx, annotator, tab, items, until)


def touch(tx: Session, annotator: Annotator, now: datetime) -> AnnotatorStatus:
    """Note that `annotator` was here; their other requests wait until this one is done.

    Returns the status they have until this transaction ends, whatever `annotator` says.
    """
    seen = update(AnnotatorRow).where(AnnotatorRow.id == annotator.id).values(last_seen=now)
    status = tx.scalar(seen.returning(AnnotatorRow.status))
    if status is None:
        raise NotFoundError("You are not part of this study (any more). Open its link again.")
    return AnnotatorStatus(status)


def require_active(status: AnnotatorStatus) -> None:
    """Raise `NotAllowedError` with what an annotator of that status is to be told."""
    if status is not AnnotatorStatus.ACTIVE:
        raise NotAllowedError(_REFUSED[status])


def task_items(tx: Session, items: Sequence[str], until: datetime) -> list[TaskItem]:
    """What a browser is told about `items`, in their order."""
    rows = tx.execute(
        select(
            StimulusRow.id, StimulusRow.original_token, StimulusRow.token, CandidateListRow.classes
        )
        .outerjoin(CandidateListRow, CandidateListRow.source_id == StimulusRow.source_id)
        .where(StimulusRow.id.in_(items))
    )
    found = {
        item: TaskItem(
            item=item,
            images=(shown,) if original is None else (original, shown),
            candidates=tuple(classes or ()),
            lease_until=until,
        )
        for item, original, shown, classes in rows
    }
    return [found[item] for item in items]


def has_held(tx: Session, annotator: Annotator, item: str) -> bool:
    """Whether `annotator` holds `item`, has answered it, or lost it when a lease ran out."""
    holds = exists().where(SlotRow.stimulus_id == item, SlotRow.annotator_id == annotator.id)
    lost = exists().where(
        and_(
            EventRow.stimulus_id == item,
            EventRow.annotator_id == annotator.id,
            EventRow.kind == LEASE_LOST,
        )
    )
    return bool(tx.scalar(select(or_(holds, lost))))


def _study(tx: Session, annotator: Annotator) -> StudyRow:
    study = tx.get(StudyRow, annotator.study_id)
    if study is None:
        raise NotFoundError(f"There is no study {annotator.study_id!r}.")
    return study
