"""Inside one transaction: which items somebody may be given next.

Nothing here changes anything. Slots of an item are taken in the order of k and never become free
again, so an item is started when its slot 0 is taken, and has room when the last one it has is
free. An item *given* to somebody is one whose slot they hold or held, whether or not they answered.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    Select,
    Subquery,
    bindparam,
    distinct,
    exists,
    func,
    literal_column,
    or_,
    select,
    union,
)
from sqlalchemy.orm import Session, aliased

from annotation.domain import (
    Annotator,
    AnnotatorStatus,
    SlotState,
    Step,
    StudySpec,
    StudyStatus,
    VoteStatus,
)
from annotation.errors import NotFoundError
from annotation.store.tables import AnnotatorRow, EventRow, SlotRow, StudyRow, VoteRow
from annotation.tasks.assignment import PRIME, order_of
from annotation.tasks.exposure import Candidate, Limits, Seen, cells_in_order

# Spelt out in the SQL: only then do the databases see that the partial indices apply.
FREE: ColumnElement[str] = literal_column(f"'{SlotState.FREE}'")
LEASED: ColumnElement[str] = literal_column(f"'{SlotState.LEASED}'")
LEASE_LOST = "lease_lost"
_LOST: ColumnElement[str] = literal_column(f"'{LEASE_LOST}'")
# Made once: they cost more than most statements take.
_FIRST, _OWN, _OTHER = (aliased(SlotRow) for _ in range(3))
_HELD = (
    select(SlotRow.cell, SlotRow.state, func.count())
    .where(SlotRow.annotator_id == bindparam("me"))
    .group_by(SlotRow.cell, SlotRow.state)
)
_ANSWERED = (VoteStatus.COUNTED, VoteStatus.SURPLUS, VoteStatus.EXCLUDED)


@dataclass(frozen=True, kw_only=True)
class Asker:
    """Somebody who asks for items, and what decides which ones they may be given.

    cells: of the Latin square, in this person's order, without those they have answered wholly.
    """

    annotator: Annotator
    spec: StudySpec
    cells: tuple[int, ...]
    n_cells: int
    n_held: int  # items that wait for their answer

    @property
    def last_ks(self) -> tuple[int, ...]:
        """Which k the last slot of an item may have."""
        k = self.spec.votes_per_item
        return (k - 1, k) if self.spec.extra_vote else (k - 1,)

    def binds(self, now: datetime) -> dict[str, Any]:
        """What the prepared statements ask for."""
        order = order_of(self.spec.seed, self.annotator.name.casefold())
        return {
            "study": self.annotator.study_id,
            "me": self.annotator.id,
            "cells": self.cells,
            "ks": self.last_ks,
            "now": now,
            "factor": order.factor,
            "offset": order.offset,
        }

    @property
    def limits(self) -> Limits:
        """What the study allows one person to see of one original."""
        return Limits(max_views=self.spec.max_views, min_lag=self.spec.min_lag)

    @property
    def originals(self) -> int | None:
        """The cell of the originals, None where they are no items."""
        return self.n_cells - 1 if self.spec.label_originals else None


def study_row(tx: Session, annotator: Annotator) -> StudyRow:
    """The study of `annotator`; raises `NotFoundError`."""
    study = tx.get(StudyRow, annotator.study_id)
    if study is None:
        raise NotFoundError(f"There is no study {annotator.study_id!r}.")
    # The session forgets rows that nobody keeps, and would read this one many times.
    tx.info["study"] = study
    return study


def person_row(tx: Session, annotator: Annotator) -> AnnotatorRow | None:
    """The row of `annotator`, None if they are gone."""
    tx.info["person"] = tx.get(AnnotatorRow, annotator.id)
    return tx.info["person"]


def asker_of(tx: Session, annotator: Annotator) -> Asker:
    """`annotator` as somebody who asks for items."""
    study = study_row(tx, annotator)
    spec = StudySpec(**study.spec)
    n_of = {(cell, state): n for cell, state, n in tx.execute(_HELD, {"me": annotator.id})}
    order = cells_in_order(annotator.seat, len(study.cells), originals=spec.label_originals)
    return Asker(
        annotator=annotator,
        spec=spec,
        cells=tuple(c for c in order if n_of.get((c, SlotState.DONE), 0) < study.cells[c]),
        n_cells=len(study.cells),
        n_held=sum(n for (_, state), n in n_of.items() if state == SlotState.LEASED),
    )


def open_items(
    tx: Session, annotator: Annotator, n: int, now: datetime, asker: Asker | None = None
) -> list[str]:
    """Up to `n` items to claim, best first: block by block, in each of them interrupted items, then
    started, then fresh ones.

    Read without a lock, so some may be gone when they are claimed. Items of originals met too short
    a time ago are left out as long as there are others. Empty unless the study runs and `annotator`
    is active, at the main step, and has not answered all that was asked of them. asker: of
    `asker_of` in this transaction.
    """
    study, person = study_row(tx, annotator), person_row(tx, annotator)
    running = study.status == StudyStatus.RUNNING
    if person is None or not running or not serves(person.status, person.step):
        return []
    if quota_left(tx, annotator) == 0:
        return []
    asker = asker or asker_of(tx, annotator)
    recent = recent_sources(tx, asker)
    return _open(tx, asker, n, now, recent) or (_open(tx, asker, n, now, ()) if recent else [])


def serves(status: str, step: str) -> bool:
    """Whether somebody of that status and step is given items that count."""
    return status == AnnotatorStatus.ACTIVE and step == Step.MAIN


def quota_left(tx: Session, annotator: Annotator) -> int | None:
    """How many more items are asked of `annotator`, None if as many as there are.

    What they answered counts, whether or not the vote does; what they took back does not.
    """
    most = StudySpec(**study_row(tx, annotator).spec).items_per_person
    if most is None:
        return None
    answered = select(func.count(distinct(VoteRow.stimulus_id))).where(
        VoteRow.annotator_id == annotator.id, VoteRow.status.in_(_ANSWERED)
    )
    return max(0, most - (tx.scalar(answered) or 0))


# ------------------------------------------------------------------ the next items


def _open(tx: Session, asker: Asker, n: int, now: datetime, recent: Sequence[str]) -> list[str]:
    found: dict[str, None] = {}  # an interrupted item may be a started one as well
    for cell in asker.cells:
        where = _allowed(asker, cell)
        if recent:
            where.append(SlotRow.source_id.not_in(recent))
        for query in (INTERRUPTED, STARTED, FRESH):
            if len(found) >= n:
                break
            limited = query.where(*where) if where else query
            rows = tx.scalars(limited, {**asker.binds(now), "cell": cell, "n": n})
            found |= dict.fromkeys(rows)
    return list(found)[:n]


def _prepared(*where: ColumnElement[bool]) -> Select[str]:
    """`n` items of a cell in the order of an annotator; `Asker.binds` and these two are missing."""
    here = SlotRow.study_id == bindparam("study"), SlotRow.cell == bindparam("cell")
    factor, offset = (bindparam(name, type_=BigInteger) for name in ("factor", "offset"))
    query = select(SlotRow.stimulus_id).where(*here, *where)
    order = (factor * SlotRow.salt + offset) % PRIME
    return query.order_by(order).limit(bindparam("n", type_=Integer))


# Whether somebody has a slot of the item of a slot.
HOLDS: ColumnElement[bool] = exists().where(
    _OWN.stimulus_id == SlotRow.stimulus_id, _OWN.annotator_id == bindparam("me")
)
_IS_FRESH: ColumnElement[bool] = exists().where(
    _FIRST.study_id == SlotRow.study_id,
    _FIRST.cell == SlotRow.cell,
    _FIRST.stimulus_id == SlotRow.stimulus_id,
    _FIRST.k == 0,
    _FIRST.state == FREE,
)
# Made once, as making a statement takes longer than carrying it out. In the order of preference:
# those whose lease has run out, those others have begun with that have room, those nobody has had.
INTERRUPTED = _prepared(
    SlotRow.state == LEASED,
    SlotRow.lease_until < bindparam("now"),
    or_(SlotRow.annotator_id == bindparam("me"), ~HOLDS),
)
STARTED = _prepared(
    SlotRow.state == FREE, SlotRow.k.in_(bindparam("ks", expanding=True)), ~_IS_FRESH, ~HOLDS
)
FRESH = _prepared(SlotRow.state == FREE, SlotRow.k == 0)


def _allowed(asker: Asker, cell: int) -> list[ColumnElement[bool]]:
    """What keeps items of `cell` from this person though they have room."""
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
    others = [other for other in asker.cells if other != asker.originals]
    if cell == asker.originals and others:
        where.append(SlotRow.source_id.not_in(_still_open(asker, others)))
    return where


def given_items(annotator: Annotator) -> Subquery:
    """Every item `annotator` was ever given, with its original and cell."""
    columns = SlotRow.stimulus_id, SlotRow.source_id, SlotRow.cell
    held = select(*columns).where(
        SlotRow.annotator_id == annotator.id, SlotRow.source_id.is_not(None)
    )
    lost = (
        select(*columns)
        .join(EventRow, EventRow.stimulus_id == SlotRow.stimulus_id)
        .where(
            EventRow.annotator_id == annotator.id,
            EventRow.kind == _LOST,
            SlotRow.k == 0,
            SlotRow.source_id.is_not(None),
        )
    )
    return union(held, lost).subquery()


def full_sources(given: Subquery, max_views: int) -> Select[str]:
    """The originals of which somebody has seen as much as they may."""
    views = select(given.c.source_id).group_by(given.c.source_id)
    return views.having(func.count() >= max_views)


def unnamed(asker: Asker) -> ColumnElement[bool]:
    """That the person has not been asked to name the original itself, which gives it away."""
    given = given_items(asker.annotator)
    named = select(given.c.source_id).where(given.c.cell == asker.originals)
    return SlotRow.source_id.not_in(named)


def _still_open(asker: Asker, cells: Sequence[int]) -> Select[str]:
    """The originals of which the person may still be given something else."""
    held = exists().where(
        _OWN.stimulus_id == _OTHER.stimulus_id, _OWN.annotator_id == asker.annotator.id
    )
    here = (
        _OTHER.study_id == asker.annotator.study_id,
        _OTHER.cell.in_(cells),
        _OTHER.source_id.is_not(None),
        ~held,
    )
    roomy = select(_OTHER.source_id).where(*here, _OTHER.state == FREE, _OTHER.k.in_(asker.last_ks))
    taken = select(_OTHER.source_id).where(*here, _OTHER.state == LEASED)
    return select(union(roomy, taken).subquery().c.source_id)


# ------------------------------------------------------------------ what somebody has seen


def recent_sources(tx: Session, asker: Asker) -> tuple[str, ...]:
    """The originals of the last items given to somebody, as many as the lag, the latest _LAST."""
    if asker.spec.min_lag == 0:
        return ()
    query = select(SlotRow.source_id).where(
        SlotRow.annotator_id == asker.annotator.id,
        SlotRow.given.is_not(None),
        SlotRow.source_id.is_not(None),
    )
    found = tx.scalars(query.order_by(SlotRow.given.desc()).limit(asker.spec.min_lag)).all()
    return tuple(source for source in reversed(found) if source is not None)


def candidates_of(tx: Session, asker: Asker, items: Sequence[str]) -> list[Candidate]:
    """`items` with their originals, in their order."""
    rows = tx.execute(
        select(SlotRow.stimulus_id, SlotRow.source_id, SlotRow.cell).where(
            SlotRow.stimulus_id.in_(items), SlotRow.k == 0
        )
    )
    found = {
        item: Candidate(item=item, source=source or "", is_original=cell == asker.originals)
        for item, source, cell in rows
    }
    return [found[item] for item in items if item in found]


def seen_of(tx: Session, asker: Asker, candidates: Sequence[Candidate]) -> Seen:
    """What somebody has seen of the originals of `candidates`."""
    given = given_items(asker.annotator)
    rows = tx.execute(
        select(given.c.stimulus_id, given.c.source_id, given.c.cell).where(
            given.c.source_id.in_({one.source for one in candidates})
        )
    ).all()
    views: dict[str, int] = {}
    for _, source, _ in rows:
        views[source] = views.get(source, 0) + 1
    return Seen(
        views=views,
        again=frozenset(item for item, _, _ in rows),
        named=frozenset(source for _, source, cell in rows if cell == asker.originals),
        recent=recent_sources(tx, asker),
    )
