"""Inside one transaction: how far an annotator is, in one statement. Changes nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    Row,
    Select,
    bindparam,
    func,
    literal_column,
    select,
    true,
    union_all,
)
from sqlalchemy.orm import Session

from annotation.design.assignment import RECENTLY
from annotation.domain import Annotator, AnnotatorProgress, VoteStatus
from annotation.store import trials
from annotation.store.eligibility import HELD, Asker, asker_with, study_row
from annotation.store.leases import AT_WORK
from annotation.store.next_items import NOT_THEIRS, WITH_FREE_SLOT, left_for
from annotation.store.reports import median_rt_ms
from annotation.store.tables import TrialRow, VoteRow
from annotation.store.trials import MIXED

_GIVEN = (
    VoteRow.annotator_id == bindparam("me"),
    VoteRow.status.in_((VoteStatus.COUNTED, VoteStatus.QUALITY)),
)
_N_TIMED = select(func.count(VoteRow.rt_ms)).where(*_GIVEN).scalar_subquery()
_N_DONE = select(func.count()).where(
    VoteRow.annotator_id == bindparam("me"), VoteRow.status == VoteStatus.COUNTED
)
_SLOTS, _HELD = "slot", HELD.subquery()
_SHOWN = union_all(
    select(
        literal_column(f"'{_SLOTS}'").label("what"),
        _HELD.c.cell.label("number"),
        _HELD.c.state.label("state"),
        _HELD.c.n.label("n"),
    ),
    select(TrialRow.kind, TrialRow.ordinal, TrialRow.state, literal_column("1")).where(
        TrialRow.annotator_id == bindparam("me"), TrialRow.kind.in_(MIXED)
    ),
).subquery()


def _so_far(free: ColumnElement[int], people: ColumnElement[int]) -> Select[Any]:
    """Select what an annotator has been shown, and with each row the same numbers.

    They are there also for one who has been shown nothing.

    Args:
        free, people: `WITH_FREE_SLOT` and how many are at work, counted or known.
    """
    numbers = select(
        _N_DONE.scalar_subquery().label("done"),
        # Over trials too: as it is told, it would say which answer did not count.
        median_rt_ms(_N_TIMED, *_GIVEN).label("median"),
        NOT_THEIRS.label("not_theirs"),
        free.label("free"),
        people.label("people"),
    ).subquery()
    return select(numbers, _SHOWN).select_from(numbers.outerjoin(_SHOWN, true()))


# Made once, as making a statement takes longer than most take.
_COUNTED = _so_far(WITH_FREE_SLOT, AT_WORK.scalar_subquery())
_KNOWN = _so_far(*(bindparam(name, type_=Integer) for name in ("free", "people")))
# Counting all items takes most of the time there are very many of. While so many are left for
# somebody, what was counted for anybody is good for a moment, the longer the more there are (300
# votes a second change it by two in a hundred); below it is exact.
EXACT_BELOW = 1000
GOOD_FOR = timedelta(seconds=5)
GOOD_FOR_AN_ITEM = timedelta(microseconds=300)
_counting = Lock()  # meanwhile others of this server take what was counted before
_counted: dict[str, tuple[datetime, int, int]] = {}  # by study: when, and the two numbers


@dataclass(frozen=True, kw_only=True)
class SoFar:
    """Progress of an annotator, as an asker;

    Attributes:
        people: How many are at work, this one included.
    """

    asker: Asker
    progress: AnnotatorProgress
    people: int


def so_far(tx: Session, annotator: Annotator, now: datetime) -> SoFar:
    """Count the items and trials that an annotator has answered and may still answer.

    Where very many are left, so many as there were `GOOD_FOR` ago at the earliest.
    """
    study = study_row(tx, annotator)
    anew = asker_with(study, annotator, ())
    binds = {**anew.binds(now), "cells": range(anew.n_cells), "since": now - RECENTLY}
    rows = _rows(tx, study.id, binds, now)
    first: Any = rows[0]
    shown = [(row.what, row.number, row.state, row.n) for row in rows if row.what is not None]
    held = [(cell, state, n) for what, cell, state, n in shown if what == _SLOTS]
    asker = asker_with(study, annotator, held)
    left = left_for(tx, asker, now, _roomy(first))
    progress = AnnotatorProgress(
        done=first.done,
        left=left.items,
        total=first.done + left.items,
        waiting=left.waiting,
        median_rt_ms=first.median,
    )
    known = [(kind, number, state) for kind, number, state, _ in shown if kind != _SLOTS]
    progress = trials.with_trials(tx, asker, progress, known)
    return SoFar(asker=asker, progress=progress, people=first.people or 1)


def _rows(tx: Session, study: str, binds: Mapping[str, Any], now: datetime) -> Sequence[Row[Any]]:
    """The rows of `_KNOWN` where what was counted last is good enough, else of `_COUNTED`."""
    connection = tx.connection()
    at, free, people = _counted.get(study, (now, 0, 0))
    good_for, mine = max(GOOD_FOR, free * GOOD_FOR_AN_ITEM), False
    if free >= EXACT_BELOW and abs(now - at) <= 2 * good_for:
        mine = abs(now - at) > good_for and _counting.acquire(blocking=False)
        if not mine:
            rows = connection.execute(_KNOWN, {**binds, "free": free, "people": people}).all()
            if _roomy(rows[0]) >= EXACT_BELOW:
                return rows
    try:
        rows = connection.execute(_COUNTED, binds).all()
        _counted[study] = now, rows[0].free, rows[0].people
        return rows
    finally:
        if mine:
            _counting.release()


def _roomy(row: Row[Any]) -> int:
    return int(row.free - row.not_theirs)
