"""Inside one transaction: the items an annotator may be given next, and how many are left.

Nothing here changes anything. Slots of an item are taken in the order of k and never become free
again, so an item is started when its slot 0 is taken, and has room when the last one it has is
free.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Integer,
    Select,
    SelectBase,
    Subquery,
    and_,
    bindparam,
    distinct,
    exists,
    func,
    literal_column,
    or_,
    select,
    union,
    union_all,
)
from sqlalchemy.orm import Session, aliased

from annotation.design.assignment import LEFT_OUT, PRIME
from annotation.domain import Annotator, AnnotatorStatus, SlotState, Step, StudyStatus, VoteStatus
from annotation.spec import StudySpec
from annotation.store.eligibility import (
    Asker,
    asker_of,
    full_sources,
    given_items,
    named_sources,
    near_sources,
    person_row,
    recent_sources,
    study_row,
    unnamed,
    waiting_sources,
)
from annotation.store.tables import SlotRow, VoteRow

# Spelt out in the SQL: only then do the databases see that the partial indices apply.
FREE: ColumnElement[str] = literal_column(f"'{SlotState.FREE}'")
LEASED: ColumnElement[str] = literal_column(f"'{SlotState.LEASED}'")
_ZERO: ColumnElement[int] = literal_column("0")
_ONE: ColumnElement[int] = literal_column("1")
# Items that nobody has had are many, and each annotator's order of them is their own, which no
# index has: of so many of them the first ones in that order are given out.
WINDOW = 1000
# Made once: they cost more than most statements take.
_OWN, _OTHER = (aliased(SlotRow) for _ in range(2))
_ANSWERED = (VoteStatus.COUNTED, VoteStatus.SURPLUS, VoteStatus.EXCLUDED)
_HELD = (SlotState.LEASED, SlotState.DONE)


def open_items(
    tx: Session, annotator: Annotator, n: int, now: datetime, asker: Asker | None = None
) -> list[str]:
    """Up to `n` items to claim, best first: block by block, in each of them interrupted items, then
    started, then fresh ones.

    Read without a lock, so some may be gone when they are claimed. Items of originals met too short
    a time ago are left out as long as there are others. Empty unless the study runs and `annotator`
    is active, at the main step, and has not answered all that was asked of them.

    Args:
        asker: Of `asker_of` in this transaction.
    """
    study, person = study_row(tx, annotator), person_row(tx, annotator)
    running = study.status == StudyStatus.RUNNING
    if person is None or not running or not serves(person.status, person.step):
        return []
    asker = asker or asker_of(tx, annotator)
    if quota_left(tx, annotator, asker.spec) == 0:
        return []
    recent = (*recent_sources(tx, asker), *near_sources(tx, asker))
    return _open(tx, asker, n, now, recent) or (_open(tx, asker, n, now, ()) if recent else [])


def serves(status: str, step: str) -> bool:
    """Return whether an annotator of that status and step is given items that count."""
    return status == AnnotatorStatus.ACTIVE and step == Step.MAIN


def quota_left(tx: Session, annotator: Annotator, spec: StudySpec) -> int | None:
    """Return how many more items are asked of `annotator`, None if as many as there are.

    What they answered counts, whether or not the vote does; what they took back does not.
    """
    most = spec.items_per_person
    if most is None:
        return None
    answered = select(func.count(distinct(VoteRow.stimulus_id))).where(
        VoteRow.annotator_id == annotator.id,
        VoteRow.status.in_(_ANSWERED),
        VoteRow.trial_id.is_(None),  # a second answer to a trial is surplus, and no item
    )
    return max(0, most - (tx.scalar(answered) or 0))


# ------------------------------------------------------------------ the next items


def _open(tx: Session, asker: Asker, n: int, now: datetime, recent: Sequence[str]) -> list[str]:
    found: dict[str, None] = {}  # an interrupted item may be a started one as well
    for cell in asker.cells:
        if len(found) >= n:
            break
        where = _allowed(asker, cell)
        if recent:
            where.append(SlotRow.source_id.not_in(recent))
        query = _in_turn(*where) if where else IN_TURN
        found |= _first(tx, query, {**asker.binds(now), "cell": cell}, n - len(found))
    return list(found)[:n]


def _first(tx: Session, query: Select[str, int], binds: dict[str, Any], n: int) -> dict[str, None]:
    """The `n` first items that `query` finds, or all there are."""
    most = n
    while True:
        rows = tx.connection().execute(query, {**binds, "n": most}).all()
        # A database need not keep the order of the parts.
        found = dict.fromkeys(item for item, _ in sorted(rows, key=lambda row: row[1]))
        if len(found) >= n or len(rows) < most:
            return found
        most *= 2  # some came twice


# Whether somebody has a slot of the item of a slot.
HOLDS: ColumnElement[bool] = exists().where(
    _OWN.stimulus_id == SlotRow.stimulus_id, _OWN.annotator_id == bindparam("me")
)
_FACTOR, _OFFSET = (bindparam(name, type_=BigInteger) for name in ("factor", "offset"))
_N: BindParameter[int] = bindparam("n", type_=Integer)
_SLOTS = select(SlotRow.stimulus_id, SlotRow.salt).where(
    SlotRow.study_id == bindparam("study"), SlotRow.cell == bindparam("cell")
)
# In the order of preference: those whose lease has run out, those others have begun with that have
# room, those nobody has had.
_INTERRUPTED = _SLOTS.where(
    SlotRow.state == LEASED,
    SlotRow.lease_until < bindparam("now"),
    or_(and_(SlotRow.annotator_id == bindparam("me"), SlotRow.lease_until > LEFT_OUT), ~HOLDS),
)
_STARTED = _SLOTS.where(SlotRow.state == FREE, SlotRow.begun == _ONE, ~HOLDS)
_FRESH = _SLOTS.where(SlotRow.state == FREE, SlotRow.k == _ZERO)


def _next(slots: SelectBase) -> Select[str]:
    """The `n` first items of `slots` in the order of an annotator; `Asker.binds` is missing."""
    one = slots.subquery()
    return select(one.c.stimulus_id).order_by((_FACTOR * one.c.salt + _OFFSET) % PRIME).limit(_N)


def _near(slots: Select[str, int]) -> SelectBase:
    """Of `slots` the `WINDOW` next from a place of the annotator's own on, in the order of salts.

    An index has them in that order, so that no more are read; their items are as random.
    """
    slots = slots.order_by(SlotRow.salt).limit(WINDOW)
    parts = (
        slots.where(where).subquery() for where in (SlotRow.salt >= _OFFSET, SlotRow.salt < _OFFSET)
    )
    return union_all(*(select(part) for part in parts)).limit(WINDOW)


def _in_turn(*where: ColumnElement[bool]) -> Select[str, int]:
    """Those three one after the other with their place in that order, `n` in all.

    What comes later is not looked for where there are enough before it.
    """
    interrupted, started, fresh = (
        slots.where(*where) for slots in (_INTERRUPTED, _STARTED, _FRESH)
    )
    parts = [
        select(part.c.stimulus_id, literal_column(str(place)).label("place"))
        for place, slots in enumerate((interrupted, started, _near(fresh)))
        for part in (_next(slots).subquery(),)
    ]
    found = union_all(*parts).subquery()
    return select(found.c.stimulus_id, found.c.place).limit(_N)


# Made once, as making a statement takes longer than carrying it out.
IN_TURN = _in_turn()


def _allowed(asker: Asker, cell: int) -> list[ColumnElement[bool]]:
    """Return the conditions under which `asker` may be given items of `cell` that have room."""
    where: list[ColumnElement[bool]] = []
    if asker.spec.max_views is not None:
        given = given_items(asker.annotator)
        where.append(
            or_(
                SlotRow.source_id.not_in(full_sources(given, asker.spec.max_views)),
                SlotRow.stimulus_id.in_(select(given.c.stimulus_id)),
            )
        )
    if asker.originals is not None and cell != asker.originals:
        where.append(unnamed(asker))
    if cell == asker.originals:
        where.append(SlotRow.source_id.not_in(waiting_sources(asker.annotator)))
    others = [other for other in asker.cells if other != asker.originals]
    if cell == asker.originals and others:
        where.append(SlotRow.source_id.not_in(_still_open(asker, others)))
    return where


def _still_open(asker: Asker, cells: Sequence[int]) -> Select[str]:
    """The originals of which the person may still be given something else."""
    held = exists().where(
        _OWN.stimulus_id == _OTHER.stimulus_id, _OWN.annotator_id == asker.annotator.id
    )
    here = (
        _OTHER.study_id == asker.annotator.study_id,
        _OTHER.cell.in_(cells),
        _OTHER.source_id.not_in(named_sources(asker)),  # nothing else of those comes
        ~held,
    )
    roomy = select(_OTHER.source_id).where(*here, _OTHER.state == FREE, _OTHER.k.in_(asker.last_ks))
    taken = select(_OTHER.source_id).where(*here, _OTHER.state == LEASED)
    return select(union(roomy, taken).subquery().c.source_id)


# ------------------------------------------------------------------ how many are left


@dataclass(frozen=True, kw_only=True)
class Left:
    """Number of items that an annotator may still answer.

    Attributes:
        waiting: None at this moment, but others hold some that may yet come to this person.
    """

    items: int
    waiting: bool


def left_for(tx: Session, asker: Asker, now: datetime, roomy: int) -> Left:
    """Return what is left for `asker` of all items, whatever the status of the study.

    Args:
        roomy: `WITH_FREE_SLOT` less `NOT_THEIRS`.
    """
    quota = quota_left(tx, asker.annotator, asker.spec)
    if quota == 0:
        return Left(items=0, waiting=False)
    items = asker.n_held - _n_left_out(tx, asker) + _n_to_come(tx, asker, now, roomy)
    return Left(
        items=items if quota is None else min(items, quota),
        waiting=items == 0 and _others_hold(tx, asker, now),
    )


def _n_left_out(tx: Session, asker: Asker) -> int:
    """Count those of `n_held` that have been answered by votes that were left out."""
    if asker.annotator.link_by is None:
        return 0
    mine = SlotRow.annotator_id == asker.annotator.id, SlotRow.lease_until == LEFT_OUT
    return tx.scalar(select(func.count()).select_from(SlotRow).where(*mine)) or 0


def _n_to_come(tx: Session, asker: Asker, now: datetime, roomy: int) -> int:
    """Count the items with room that `asker` may see, as many of an original as allowed."""
    most, binds = asker.spec.max_views, asker.binds(now)
    if most is None and asker.originals is None:
        return roomy
    room = _with_room(asker)
    if most is None:
        return tx.scalar(select(func.count()).select_from(room), binds) or 0
    given = given_items(asker.annotator)
    again = room.c.stimulus_id.in_(select(given.c.stimulus_id)).label("again")
    views = select(given.c.source_id, func.count()).group_by(given.c.source_id)
    seen: dict[str, int] = dict(tx.execute(views).all())
    counts = select(room.c.source_id, again, func.count()).group_by(room.c.source_id, "again")
    return sum(
        n if had_before else min(n, max(0, most - seen.get(source, 0)))
        for source, had_before, n in tx.execute(counts, binds)
    )


def _with_room(asker: Asker) -> Subquery:
    """Select the items not held by `asker` that have a free slot, or a lease that has run out."""
    named = _named(asker)
    free = select(SlotRow.stimulus_id, SlotRow.source_id).where(
        *_TO_COME, *named, SlotRow.state == FREE, SlotRow.k.in_(_KS)
    )
    return union_all(free, _RUN_OUT.where(*named)).subquery()


def _named(asker: Asker) -> list[ColumnElement[bool]]:
    """Return the conditions that leave out items whose original `asker` was asked to name."""
    if asker.originals is None:
        return []
    return [or_(SlotRow.cell == asker.originals, unnamed(asker))]


def _others_hold(tx: Session, asker: Asker, now: datetime) -> bool:
    where = [*_TO_COME, *_named(asker), SlotRow.state == LEASED]
    if asker.spec.max_views is not None:
        given = given_items(asker.annotator)
        where.append(SlotRow.source_id.not_in(full_sources(given, asker.spec.max_views)))
    return bool(tx.scalar(select(exists().where(*where)), asker.binds(now)))


# Made once, as making a statement takes longer than most take; `Asker.binds` is missing.
_LAST = aliased(SlotRow)
_KS: BindParameter[int] = bindparam("ks", expanding=True)
_CELLS: BindParameter[int] = bindparam("cells", expanding=True)
_TO_COME = (SlotRow.study_id == bindparam("study"), SlotRow.cell.in_(_CELLS), ~HOLDS)
_HAS_FREE = exists().where(
    _LAST.study_id == SlotRow.study_id,
    _LAST.cell == SlotRow.cell,
    _LAST.stimulus_id == SlotRow.stimulus_id,
    _LAST.k.in_(_KS),
    _LAST.state == FREE,
)
# Items to come that have no free slot but a lease that has run out.
_RUN_OUT = (
    select(SlotRow.stimulus_id, SlotRow.source_id)
    .where(*_TO_COME, SlotRow.state == LEASED, SlotRow.lease_until < bindparam("now"), ~_HAS_FREE)
    .distinct()
)


def _not_theirs() -> ColumnElement[int]:
    """Count those of `WITH_FREE_SLOT` that the annotator holds, less those of `_RUN_OUT`.

    What is left are the items with room for them, in a study that limits nothing.
    """
    beside = and_(_LAST.cell == SlotRow.cell, _LAST.stimulus_id == SlotRow.stimulus_id)
    mine = SlotRow.annotator_id == bindparam("me"), SlotRow.state.in_(_HELD)
    n = select(func.count())
    held = n.select_from(SlotRow).join(_LAST, beside).where(*_FREE_LAST, *mine).scalar_subquery()
    return held - n.select_from(_RUN_OUT.subquery()).scalar_subquery()


_FREE_LAST = (
    _LAST.study_id == bindparam("study"),
    _LAST.cell.in_(_CELLS),
    _LAST.k.in_(_KS),
    _LAST.state == FREE,
)
# How many items of a study have a free slot: in an index alone, item by item.
WITH_FREE_SLOT: ColumnElement[int] = (
    select(func.count()).select_from(_LAST).where(*_FREE_LAST).scalar_subquery()
)
NOT_THEIRS = _not_theirs()
