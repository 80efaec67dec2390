"""Inside one transaction: handing out slots, taking votes, taking them back.

Lock order, the same everywhere so that nobody waits in a circle: the annotator's own row, then
the stimuli in the order of their ids, then slots. Slots of one item are taken in the order of k
and never become free again (a lease that runs out is taken over as it is). What somebody who is
paused or excluded held is a lease that has run out.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import BindParameter, Row, and_, bindparam, exists, func, or_, select, update
from sqlalchemy.orm import Session

from annotation.design.assignment import Slot, slot_for
from annotation.design.exposure import choose
from annotation.domain import (
    Annotator,
    AnnotatorStatus,
    SlotState,
    StudyStatus,
    TaskItem,
)
from annotation.errors import NotAllowedError, NotFoundError
from annotation.store.askers import (
    LEASE_LOST,
    asker_of,
    candidates_of,
    has_limits,
    seen_of,
    study_row,
)
from annotation.store.events import note
from annotation.store.openings import LEASED, quota_left, serves
from annotation.store.specs import settings_of
from annotation.store.tables import (
    AnnotatorRow,
    CandidateListRow,
    EventRow,
    SlotRow,
    StimulusRow,
    Table,
)

# Statements on tables cost half of what those on mapped classes do.
_SLOT, _PERSON = Table.metadata.tables["slot"], Table.metadata.tables["annotator"]
_SEEN = (
    update(_PERSON)
    .where(_PERSON.c.id == bindparam("me"))
    .values(last_seen=bindparam("now"))
    .returning(_PERSON.c.status, _PERSON.c.step)
)
_ITEMS: BindParameter[str] = bindparam("items", expanding=True)
_LOCK = select(StimulusRow.id).where(StimulusRow.id.in_(_ITEMS)).order_by(StimulusRow.id)
_LOCK_ALL, _LOCK_SOME = (
    _LOCK.with_for_update(key_share=True, skip_locked=skip) for skip in (False, True)
)
_SLOTS_OF = select(
    *(_SLOT.c[name] for name in ("stimulus_id", "id", "k", "state", "annotator_id", "lease_until"))
).where(_SLOT.c.stimulus_id.in_(_ITEMS))
_OWN_LEASES = (
    select(_SLOT.c.stimulus_id, _SLOT.c.tab)
    .where(_SLOT.c.annotator_id == bindparam("me"), _SLOT.c.state == LEASED)
    .order_by(_SLOT.c.given, _SLOT.c.id)
)
_SHOWN = (
    select(StimulusRow.id, StimulusRow.original_token, StimulusRow.token, CandidateListRow.classes)
    .outerjoin(CandidateListRow, CandidateListRow.id == StimulusRow.list_id)
    .where(StimulusRow.id.in_(_ITEMS))
)
_OWN = _SLOT.alias("own")
_N_GIVEN = select(func.coalesce(func.max(_OWN.c.given), 0)).where(
    _OWN.c.annotator_id == bindparam("holder"), _OWN.c.given.is_not(None)
)
_GIVE = (
    update(_SLOT)
    .where(_SLOT.c.id == bindparam("slot"))
    .values(
        state=SlotState.LEASED,
        annotator_id=bindparam("holder"),
        given=_N_GIVEN.scalar_subquery() + 1,
        lease_until=bindparam("until"),
        tab=bindparam("for_tab"),
    )
)
_PUT = update(_SLOT).where(_SLOT.c.id == bindparam("slot"))
SPARE = 2  # held beyond a fair share, so that the next picture is there already
IN_CASE = 12  # more items to choose from than wanted, as others may take some first
AT_HAND = 20  # as many a page shows without waiting for the network
RECENTLY = timedelta(minutes=5)  # whoever was here is still at work
# A lease is over once its end has passed, so that of a released one lies just before now.
MOMENT = timedelta(microseconds=1)
_BEGUN = exists().where(SlotRow.annotator_id == AnnotatorRow.id)
_AT_WORK = (
    select(func.count())
    .select_from(AnnotatorRow)
    .where(
        AnnotatorRow.study_id == bindparam("study"),
        AnnotatorRow.status == AnnotatorStatus.ACTIVE,
        or_(
            AnnotatorRow.id == bindparam("me"),
            (AnnotatorRow.last_seen >= bindparam("since")) & _BEGUN,
        ),
    )
)
_REFUSED = {  # by the name of the error
    AnnotatorStatus.PAUSED: "paused",
    AnnotatorStatus.EXCLUDED: "excluded",
    AnnotatorStatus.ERASED: "gone",
}


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
    person, study = _touch(tx, annotator, now), study_row(tx, annotator)
    if study.status != StudyStatus.RUNNING or not serves(person.status, person.step):
        return []
    until = now + timedelta(seconds=settings_of(study).lease_seconds)
    quota = quota_left(tx, annotator)
    n = n if quota is None else min(n, quota)
    held = _own_leases(tx, annotator)
    items = [item for item, where in held.items() if where == tab][:n]
    new = [item for item in wanted if item not in items]
    free = n - len(items) if quota is None else min(n - len(items), quota - len(held))
    taken = _claim(tx, annotator, new, free, now, skip_locked=not last_try)
    if last_try and not items and not taken:
        items = [item for item, where in held.items() if where != tab][:n]
    if items:
        extend(tx, annotator, tab, items, until)
    if taken:
        given = {"holder": annotator.id, "until": until, "for_tab": tab}
        tx.connection().execute(_GIVE, [{**given, "slot": slot} for slot in taken.values()])
    items += taken
    return task_items(tx, items, until) if items else []


def _own_leases(tx: Session, annotator: Annotator) -> dict[str, str]:
    """The items somebody holds, in the order they were given, and in which tab."""
    return dict(tx.connection().execute(_OWN_LEASES, {"me": annotator.id}).all())


def _claim(
    tx: Session,
    annotator: Annotator,
    wanted: Sequence[str],
    n: int,
    now: datetime,
    *,
    skip_locked: bool,
) -> dict[str, int]:
    """Up to `n` of `wanted` that have room and may be shown to `annotator`, each with its slot."""
    limited = has_limits(settings_of(study_row(tx, annotator)))
    if not limited:  # else what is chosen depends on all there is to choose from
        wanted = wanted[: n + IN_CASE]
    if n <= 0 or not wanted:
        return {}
    locked = lock_slots(tx, wanted, skip_locked=skip_locked)
    room = {item: slot_for(slots, annotator.id, now) for item, slots in locked.items()}
    left = [item for item in wanted if room.get(item)]
    chosen = _choose(tx, annotator, left, n) if limited else left[:n]
    taken = {item: slot for item in chosen if (slot := room[item]) is not None}
    _note_lost(tx, annotator, taken, now)
    return {item: slot.id for item, slot in taken.items()}


def _choose(tx: Session, annotator: Annotator, items: Sequence[str], n: int) -> list[str]:
    """Asked again here, where other requests of the same person wait: limits hold in every tab."""
    asker = asker_of(tx, annotator)
    candidates = candidates_of(tx, asker, items)
    return choose(candidates, n, asker.limits, seen_of(tx, asker, candidates))


def lock_slots(
    tx: Session, items: Sequence[str], *, skip_locked: bool = False
) -> dict[str, list[Slot]]:
    """The slots of `items`, which nobody else can change until this transaction ends."""
    locked = items
    if tx.get_bind().dialect.name != "sqlite":  # there, whoever writes is alone
        lock = _LOCK_SOME if skip_locked else _LOCK_ALL
        locked = tx.scalars(lock, {"items": items}).all()
    return slots_of(tx, locked)


def slots_of(tx: Session, items: Sequence[str]) -> dict[str, list[Slot]]:
    """The slots of `items` as they are now; others may change those of an item without a lock."""
    rows = tx.connection().execute(_SLOTS_OF, {"items": items})
    slots: dict[str, list[Slot]] = defaultdict(list)
    for item, slot_id, k, state, holder, until in rows:
        slots[item].append(
            Slot(id=slot_id, k=k, state=SlotState(state), annotator=holder, lease_until=until)
        )
    return slots


def take(tx: Session, annotator: Annotator, item: str, slot: Slot, now: datetime) -> None:
    """Give `slot` of an item that is not shown to `annotator` now to them.

    Whoever let it expire is on record as having seen the item.
    """
    if slot.annotator == annotator.id:
        return
    _note_lost(tx, annotator, {item: slot}, now)
    held = {"annotator_id": annotator.id, "lease_until": now, "given": None}
    set_slot(tx, slot.id, SlotState.LEASED, **held)


def _note_lost(tx: Session, annotator: Annotator, taken: Mapping[str, Slot], now: datetime) -> None:
    """Say in events who loses the items `taken` to `annotator`."""
    for item, slot in taken.items():
        if slot.annotator not in (None, annotator.id):
            lost = {"person": slot.annotator, "item": item, "taken_by": annotator.id}
            note(tx, annotator.study_id, LEASE_LOST, now, **lost)


def set_slot(tx: Session, slot_id: int, state: SlotState, **values: object) -> None:
    """Put one slot into `state`."""
    tx.connection().execute(_PUT, {"slot": slot_id, "state": state, **values})


def extend(
    tx: Session, annotator: Annotator, tab: str, items: Sequence[str], until: datetime
) -> None:
    """Reserve those of `items` that `annotator` still holds until `until`, for `tab`."""
    held = _SLOT.c.annotator_id == annotator.id, _SLOT.c.state == LEASED
    where = (*held, _SLOT.c.stimulus_id.in_(items))
    tx.connection().execute(update(_SLOT).where(*where).values(lease_until=until, tab=tab))


def heartbeat(
    tx: Session, annotator: Annotator, tab: str, items: Sequence[str], now: datetime
) -> None:
    """Say that `annotator` is still looking at `items`; `NotAllowedError` if they may not."""
    require_active(touch(tx, annotator, now))
    settings = settings_of(study_row(tx, annotator))
    until = now + timedelta(seconds=settings.lease_seconds)
    extend(tx, annotator, tab, items, until)


def touch(tx: Session, annotator: Annotator, now: datetime) -> AnnotatorStatus:
    """Note that `annotator` was here; their other requests wait until this one is done.

    Returns the status they have until this transaction ends, whatever `annotator` says.
    """
    return AnnotatorStatus(_touch(tx, annotator, now).status)


def _touch(tx: Session, annotator: Annotator, now: datetime) -> Row[tuple[str, str]]:
    tx.flush()  # what follows goes past the session
    row = tx.connection().execute(_SEEN, {"me": annotator.id, "now": now}).one_or_none()
    if row is None:
        raise NotFoundError("You are not part of this study (any more). Open its link again.")
    return row


def require_active(status: AnnotatorStatus) -> None:
    """Raise `NotAllowedError` with what an annotator of that status is to be told."""
    if status is not AnnotatorStatus.ACTIVE:
        raise NotAllowedError.of(_REFUSED[status])


def task_items(tx: Session, items: Sequence[str], until: datetime) -> list[TaskItem]:
    """What a browser is told about `items`, in their order."""
    rows = tx.execute(_SHOWN, {"items": items})
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


def share(tx: Session, annotator: Annotator, n: int, left: int, now: datetime) -> int:
    """How many of the `n` items asked for `annotator` may hold, of `left` there are for them.

    A fair share if others are at work. Of more than `AT_HAND`, which are for when the network is
    gone, half of it, so that something is left for whoever joins later or is faster.
    """
    people = _at_work(tx, annotator, now - RECENTLY)
    fair = n if people == 1 else -(-left // people) + SPARE
    return min(n, fair, max(AT_HAND, left // (2 * people)))


def _at_work(tx: Session, annotator: Annotator, since: datetime) -> int:
    """How many people have answered or hold an item and were seen `since`, this one included."""
    binds = {"study": annotator.study_id, "me": annotator.id, "since": since}
    return tx.scalar(_AT_WORK, binds) or 1


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
            SlotRow.tab == tab,
            SlotRow.stimulus_id.in_(items),
        )
        .values(lease_until=now - MOMENT)
    )
