"""Inside one transaction: where people are in a study, and their way from step to step."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import exists, func, select
from sqlalchemy.orm import Session

from annotation.design import flow as phases
from annotation.domain import (
    Annotator,
    AnnotatorProgress,
    AnnotatorStatus,
    Step,
    StimulusKind,
    StudyStatus,
    TrialKind,
)
from annotation.errors import ConflictError, NotFoundError
from annotation.spec import StudySpec
from annotation.store.events import CHECKED, note
from annotation.store.people import by_name, locked, value_of
from annotation.store.slots import require_active, touch
from annotation.store.studies import settings_of
from annotation.store.tables import AnnotatorRow, EventRow, StimulusRow, StudyRow, TrialRow

MOVED = "step"
_CODE_SIGNS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # none that is taken for another
_CODE_LENGTH = 10


def belongs(tx: Session, annotator: Annotator, progress: AnnotatorProgress | None = None) -> Step:
    """Return the step that an annotator should be at; changes nothing.

    Steps that the study has left out since they came to them are passed over.

    Args:
        progress: Of an annotator who has asked for items. By it practice and the main step end, or
            go on after all where the study runs.
    """
    person = tx.get_one(AnnotatorRow, annotator.id)
    study = tx.get_one(StudyRow, person.study_id)
    spec, step = settings_of(study), Step(person.step)
    if progress is not None:
        if step is Step.PRACTICE and _practised(tx, person):
            return phases.after(spec, step)
        if step is Step.MAIN and progress.over:
            return Step.DONE
        if step is Step.DONE and progress.left and study.status == StudyStatus.RUNNING:
            return Step.MAIN
    return phases.current(spec, step)


def settle(
    tx: Session, annotator: Annotator, now: datetime, progress: AnnotatorProgress | None = None
) -> Annotator:
    """Move an annotator to where they belong (`belongs`); who is done gets a code and keeps it."""
    person = tx.get_one(AnnotatorRow, annotator.id)
    if belongs(tx, annotator, progress) != person.step:
        status = touch(tx, annotator, now)
        if progress is not None:
            require_active(status)
        tx.refresh(person)
        step = belongs(tx, annotator, progress)
        if step is Step.DONE:
            person.completion_code = person.completion_code or _new_code()
        if step != person.step:
            _move(tx, person, step, now)
    return _told(annotator, person)


def consent(
    tx: Session, annotator: Annotator, now: datetime, *, agreed: bool, keep_votes: bool
) -> Annotator:
    """Note whether an annotator takes part, and whether votes may be kept without their name."""
    person = _at(tx, annotator, Step.CONSENT, now)
    if person is not None and agreed:
        person.consented, person.keep_votes = now, keep_votes
        _move(tx, person, phases.after(_spec(tx, person), Step.CONSENT), now)
    elif person is not None:
        _move(tx, person, Step.DECLINED, now)
    return _now(tx, annotator)


def go_on(tx: Session, annotator: Annotator, step: Step, now: datetime) -> Annotator:
    """Finish a step that asks nothing, or begin again after declining.

    An annotator who is elsewhere by now stays there, so that a form sent twice does no harm.
    """
    person = _at(tx, annotator, step, now)
    if person is not None:
        _move(tx, person, phases.after(_spec(tx, person), step), now)
    return _now(tx, annotator)


def answer_check(
    tx: Session, annotator: Annotator, answers: Mapping[str, str], attempt: int, now: datetime
) -> Annotator:
    """Pass the check or use an attempt up; the last one fails it.

    Args:
        attempt: How many had been used when the questions were shown; answers sent twice count
            once.
    """
    person = _at(tx, annotator, Step.CHECK, now)
    if person is None or person.check_attempts != attempt:
        return _now(tx, annotator)
    spec = _spec(tx, person)
    wrong = phases.wrong(spec.kind, answers)
    person.check_attempts += 1
    told: dict[str, Any] = {"attempt": person.check_attempts, "wrong": list(wrong)}
    note(tx, person.study_id, CHECKED, now, person=person.id, **told)
    if not wrong:
        _move(tx, person, phases.after(spec, Step.CHECK), now)
    elif person.check_attempts >= spec.check_attempts:
        _move(tx, person, Step.FAILED, now)
    return _now(tx, annotator)


def let_in(tx: Session, study_id: str, name: str, now: datetime) -> Annotator:
    """Let an annotator who failed the check take part all the same.

    Raises `NotFoundError` for the name, `ConflictError` unless they failed.
    """
    person = locked(tx, study_id, name)
    if person.step != Step.FAILED:
        raise ConflictError(
            f"{person.name} is at the step {person.step}; only who failed the check can be let in."
        )
    _move(tx, person, phases.after(_spec(tx, person), Step.CHECK), now)
    return value_of(person)


def attempts_used(tx: Session, annotator: Annotator) -> tuple[int, tuple[str, ...]]:
    """Return how many attempts at the check are used up, and what was wrong in the last one."""
    person = tx.get_one(AnnotatorRow, annotator.id)
    query = (
        select(EventRow.data)
        .where(
            EventRow.stimulus_id.is_(None),
            EventRow.annotator_id == person.id,
            EventRow.kind == CHECKED,
        )
        .order_by(EventRow.id.desc())
    )
    last = tx.scalars(query.limit(1)).first() if person.check_attempts else None
    return person.check_attempts, tuple(last["wrong"]) if last else ()


def practice_progress(tx: Session, annotator: Annotator) -> tuple[int, int]:
    """Count the practice items that an annotator has answered, and those there are for them."""
    done, there = tx.execute(
        select(func.count().filter(TrialRow.state == "done"), func.count()).where(
            *_practice_of(annotator.id)
        )
    ).one()
    return done, there or _spec(tx, tx.get_one(AnnotatorRow, annotator.id)).practice


def _practised(tx: Session, person: AnnotatorRow) -> bool:
    states = tx.scalars(select(TrialRow.state).where(*_practice_of(person.id))).all()
    if states:
        return "open" not in states
    items = exists().where(
        StimulusRow.study_id == person.study_id, StimulusRow.kind == StimulusKind.PRACTICE
    )
    return not tx.scalar(select(items))


def _practice_of(person: str) -> Sequence[Any]:
    return TrialRow.annotator_id == person, TrialRow.kind == TrialKind.PRACTICE


def completion_code(tx: Session, study_id: str, name: str) -> str | None:
    """Return the code that an annotator got at the end, None before; raises `NotFoundError`.

    An annotator who goes on after the end keeps it.
    """
    person = tx.scalar(by_name(study_id, name))
    if person is None:
        raise NotFoundError(f"Nobody in this study is called {name!r}.")
    if person.step != Step.DONE and person.completion_code is None:
        return None
    return _spec(tx, person).completion_code or person.completion_code


def keep_external(tx: Session, annotator: Annotator, external: Mapping[str, str]) -> None:
    """Keep the ids a recruiting service sent an annotator with."""
    person = tx.get_one(AnnotatorRow, annotator.id)
    person.external = {**(person.external or {}), **external}


def _at(tx: Session, annotator: Annotator, step: Step, now: datetime) -> AnnotatorRow | None:
    """Return the row of an annotator who is at `step`, locked, None if they are elsewhere."""
    require_active(touch(tx, annotator, now))
    person = tx.get_one(AnnotatorRow, annotator.id)
    return person if person.step == step else None


def _move(tx: Session, person: AnnotatorRow, step: Step, now: datetime) -> None:
    version = tx.get_one(StudyRow, person.study_id).version
    change: dict[str, Any] = {"before": person.step, "after": step.value, "protocol": version}
    note(tx, person.study_id, MOVED, now, person=person.id, **change)
    person.step = step


def _spec(tx: Session, person: AnnotatorRow) -> StudySpec:
    return settings_of(tx.get_one(StudyRow, person.study_id))


def _now(tx: Session, annotator: Annotator) -> Annotator:
    return _told(annotator, tx.get_one(AnnotatorRow, annotator.id))


def _told(annotator: Annotator, person: AnnotatorRow) -> Annotator:
    return replace(annotator, step=Step(person.step), status=AnnotatorStatus(person.status))


def _new_code() -> str:
    return "".join(secrets.choice(_CODE_SIGNS) for _ in range(_CODE_LENGTH))
