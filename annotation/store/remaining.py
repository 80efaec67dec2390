"""Inside one transaction: how many items are left for somebody. Nothing here changes anything."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Select,
    Subquery,
    and_,
    bindparam,
    exists,
    func,
    or_,
    select,
    union_all,
)
from sqlalchemy.orm import Session, aliased

from annotation.domain import SlotState
from annotation.store.askers import Asker, full_sources, given_items, unnamed
from annotation.store.openings import FREE, HOLDS, LEASED, quota_left
from annotation.store.tables import SlotRow

_HELD = (SlotState.LEASED, SlotState.DONE)


@dataclass(frozen=True, kw_only=True)
class Left:
    """How many items somebody may still answer.

    waiting: none at this moment, but others hold some that may yet come to this person.
    """

    items: int
    waiting: bool


def left_for(tx: Session, asker: Asker, now: datetime) -> Left:
    """What is left for somebody of all items, whatever the status of the study."""
    quota = quota_left(tx, asker.annotator)
    if quota == 0:
        return Left(items=0, waiting=False)
    items = asker.n_held + _n_to_come(tx, asker, now)
    return Left(
        items=items if quota is None else min(items, quota),
        waiting=items == 0 and _others_hold(tx, asker, now),
    )


def _n_to_come(tx: Session, asker: Asker, now: datetime) -> int:
    """How many of the items with room somebody may see, as many of an original as allowed."""
    most, binds = asker.spec.max_views, asker.binds(now)
    if most is None and asker.originals is None:
        free, mine, run_out = tx.execute(_COUNTS, binds).one()
        return int(free - mine + run_out)
    room = _with_room(asker)
    if most is None:
        return tx.scalar(select(func.count()).select_from(room), binds) or 0
    given = given_items(asker.annotator)
    again = room.c.stimulus_id.in_(select(given.c.stimulus_id)).label("again")
    views = select(given.c.source_id, func.count()).group_by(given.c.source_id)
    seen: dict[str | None, int] = dict(tx.execute(views).all())
    counts = select(room.c.source_id, again, func.count()).group_by(room.c.source_id, "again")
    return sum(
        n if had_before else min(n, max(0, most - seen.get(source, 0)))
        for source, had_before, n in tx.execute(counts, binds)
    )


def _with_room(asker: Asker) -> Subquery:
    """The items not held by somebody that have a free slot, or a lease that has run out."""
    named = _named(asker)
    free = select(SlotRow.stimulus_id, SlotRow.source_id).where(
        *_TO_COME, *named, SlotRow.state == FREE, SlotRow.k.in_(_KS)
    )
    return union_all(free, _RUN_OUT.where(*named)).subquery()


def _named(asker: Asker) -> list[ColumnElement[bool]]:
    """What keeps items from this person because they were asked to name the original."""
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


def _counts() -> Select[*tuple[Any, ...]]:
    """All items with a free slot, those of them this person holds, and those of `_RUN_OUT`.

    The first two are counted in indices alone and tell what is left without looking at each item.
    """
    free = (
        _LAST.study_id == bindparam("study"),
        _LAST.cell.in_(_CELLS),
        _LAST.k.in_(_KS),
        _LAST.state == FREE,
    )
    beside = and_(_LAST.cell == SlotRow.cell, _LAST.stimulus_id == SlotRow.stimulus_id)
    mine = SlotRow.annotator_id == bindparam("me"), SlotRow.state.in_(_HELD)
    n = select(func.count())
    parts = (
        n.select_from(_LAST).where(*free),
        n.select_from(SlotRow).join(_LAST, beside).where(*free, *mine),
        n.select_from(_RUN_OUT.subquery()),
    )
    return select(*(part.scalar_subquery() for part in parts))


_COUNTS = _counts()
