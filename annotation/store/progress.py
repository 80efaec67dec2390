"""Inside one transaction: how far somebody is, in one statement. Nothing here changes anything."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import bindparam, func, literal_column, select, true, union_all
from sqlalchemy.orm import Session

from annotation.design.assignment import RECENTLY
from annotation.domain import Annotator, AnnotatorProgress, VoteStatus
from annotation.store import trials
from annotation.store.askers import HELD, Asker, asker_with, study_row
from annotation.store.claims import AT_WORK
from annotation.store.openings import ROOMY, left_for
from annotation.store.reports import median_rt_ms
from annotation.store.tables import TrialRow, VoteRow

_GIVEN = (
    VoteRow.annotator_id == bindparam("me"),
    VoteRow.status.in_((VoteStatus.COUNTED, VoteStatus.QUALITY)),
)
_N_TIMED = select(func.count(VoteRow.rt_ms)).where(*_GIVEN).scalar_subquery()
_NUMBERS = select(
    select(func.count())
    .where(VoteRow.annotator_id == bindparam("me"), VoteRow.status == VoteStatus.COUNTED)
    .scalar_subquery()
    .label("done"),
    # Over trials too: as it is told, it would say which answer did not count.
    median_rt_ms(_N_TIMED, *_GIVEN).label("median"),
    ROOMY.label("roomy"),
    AT_WORK.scalar_subquery().label("people"),
).subquery()
_SLOTS, _HELD = "slot", HELD.subquery()
_SHOWN = union_all(
    select(
        literal_column(f"'{_SLOTS}'").label("what"),
        _HELD.c.cell.label("number"),
        _HELD.c.state.label("state"),
        _HELD.c.n.label("n"),
    ),
    select(TrialRow.kind, TrialRow.ordinal, TrialRow.state, literal_column("1")).where(
        TrialRow.annotator_id == bindparam("me"), TrialRow.kind.in_(trials.MIXED)
    ),
).subquery()
# The numbers are there also for somebody who has been shown nothing.
_SO_FAR = select(_NUMBERS, _SHOWN).select_from(_NUMBERS.outerjoin(_SHOWN, true()))


@dataclass(frozen=True, kw_only=True)
class SoFar:
    """How far somebody is, as an asker; people: how many are at work, this one included."""

    asker: Asker
    progress: AnnotatorProgress
    people: int


def so_far(tx: Session, annotator: Annotator, now: datetime) -> SoFar:
    """How many items and trials somebody has answered and may still answer."""
    study = study_row(tx, annotator)
    anew = asker_with(study, annotator, ())
    binds = {**anew.binds(now), "cells": range(anew.n_cells), "since": now - RECENTLY}
    rows = tx.connection().execute(_SO_FAR, binds).all()
    done, median, roomy, people, *_ = rows[0]
    shown = [row[4:] for row in rows if row.what is not None]
    held = [(cell, state, n) for what, cell, state, n in shown if what == _SLOTS]
    asker = asker_with(study, annotator, held)
    left = left_for(tx, asker, now, roomy)
    progress = AnnotatorProgress(
        done=done,
        left=left.items,
        total=done + left.items,
        waiting=left.waiting,
        median_rt_ms=median,
    )
    known = [(kind, number, state) for kind, number, state, _ in shown if kind != _SLOTS]
    progress = trials.with_trials(tx, asker, progress, known)
    return SoFar(asker=asker, progress=progress, people=people or 1)
