"""Inside one transaction: catch trials that an annotator failed, and pausing them for it.

A catch trial is failed by any other answer than the known one and those near to it. Answers taken
back are none.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, and_, func, literal_column, not_, select
from sqlalchemy.orm import Session

from annotation.domain import Annotator, AnnotatorStatus, Study, TrialKind, VoteStatus
from annotation.spec import StudySpec
from annotation.store import people
from annotation.store.events import VOTED
from annotation.store.tables import AnnotatorRow, EventRow, StimulusRow, TrialRow, VoteRow
from annotation.tasks.kind import Kind

AUTOMATIC = "automatic"  # in the event of a pause that nobody asked for
# Spelt out in the SQL: only then do the databases see that a partial index applies.
_QUALITY: ColumnElement[str] = literal_column(f"'{VoteStatus.QUALITY}'")


@dataclass(frozen=True, kw_only=True)
class Caught:
    """Numbers of catch trials that one annotator has answered, and has answered wrongly."""

    answered: int = 0
    failed: int = 0


def _wrong(kind: Kind) -> ColumnElement[bool]:
    """`Kind.passes` turned round, as the database can say it."""
    near = (
        and_(StimulusRow.expected == known, VoteRow.answer.in_(others))
        for known, others in kind.near.items()
    )
    return and_(VoteRow.answer != StimulusRow.expected, *map(not_, near))


def caught(tx: Session, study: Study) -> Mapping[str, Caught]:
    """The answers to catch trials by annotator; left out is who has none, or whose are blanked."""
    if not study.spec.set_aside:  # without originals for them there are none
        return {}
    rows = tx.execute(
        select(TrialRow.annotator_id, func.count(), func.count().filter(_wrong(study.kind)))
        .select_from(AnnotatorRow)
        .join(TrialRow, TrialRow.annotator_id == AnnotatorRow.id)
        .join(VoteRow, VoteRow.trial_id == TrialRow.id)
        .join(StimulusRow, StimulusRow.id == TrialRow.stimulus_id)
        .where(AnnotatorRow.study_id == study.id, *_caught())
        .group_by(TrialRow.annotator_id)
    )
    return {one: Caught(answered=answered, failed=failed) for one, answered, failed in rows}


def _caught() -> tuple[ColumnElement[bool], ...]:
    return (
        TrialRow.kind == TrialKind.CATCH,
        VoteRow.status == _QUALITY,
        VoteRow.answer != "",
    )


def paused_by_itself(tx: Session, persons: Iterable[AnnotatorRow]) -> set[str]:
    """Return the ids of those who are paused, and were so automatically."""
    paused = (one.id for one in persons if one.status == AnnotatorStatus.PAUSED)
    last = {one: _changes(tx, one)[-1:] for one in paused}
    return {one for one, events in last.items() for e in events if e.data.get(AUTOMATIC)}


def pause_if_failed(tx: Session, annotator: Annotator, spec: StudySpec, now: datetime) -> None:
    """Pause `annotator`, who has just failed a catch trial, if that makes too many of them.

    Failures count from when a researcher last let them go on, so that they get as many again.
    """
    if not spec.catch_pause_after:
        return
    tx.flush()  # the answer just given is one of them
    let_go_on = (e.id for e in _changes(tx, annotator.id) if e.data["after"] == "active")
    failed = _n_failed(tx, annotator, spec.kind, after=max(let_go_on, default=0))
    if failed >= spec.catch_pause_after:
        told = {AUTOMATIC: True, "catch_failed": failed}
        people.pause(tx, annotator.study_id, annotator.name, now, **told)


def _n_failed(tx: Session, annotator: Annotator, kind: Kind, after: int) -> int:
    """Count the catch trials that `annotator` failed after the event with the id `after`."""
    query = (
        select(func.count())
        .select_from(VoteRow)
        .join(TrialRow, TrialRow.id == VoteRow.trial_id)
        .join(StimulusRow, StimulusRow.id == VoteRow.stimulus_id)
        .join(EventRow, (EventRow.vote_id == VoteRow.id) & (EventRow.kind == VOTED))
        .where(VoteRow.annotator_id == annotator.id, *_caught(), _wrong(kind), EventRow.id > after)
    )
    return tx.scalar(query) or 0


def _changes(tx: Session, annotator_id: str) -> list[EventRow]:
    """Return the events of an annotator's status, in order."""
    own = (
        EventRow.stimulus_id.is_(None),  # so that an index leads to these few
        EventRow.annotator_id == annotator_id,
        EventRow.kind == people.STATUS,
    )
    return list(tx.scalars(select(EventRow).where(*own).order_by(EventRow.id)))
