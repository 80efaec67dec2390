"""Inside one transaction: the answers to trials, and taking them back. None ever counts."""

from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from annotation.domain import (
    Annotator,
    Answer,
    StudyStatus,
    TaskItem,
    TrialKind,
    VoteReceipt,
    VoteStatus,
)
from annotation.errors import ConflictError, NotAllowedError, NotFoundError
from annotation.store import attention
from annotation.store.events import UNDONE, VOTED, log
from annotation.store.specs import settings_of
from annotation.store.tables import (
    CandidateListRow,
    SourceRow,
    StimulusRow,
    StudyRow,
    TrialRow,
    VoteRow,
)
from annotation.store.trials import DONE, OPEN, task_items
from annotation.votes.answers import check_answer, check_pace, shown_under

NOT_GIVEN = "This item was not given to you; ask for the next one."


def find(tx: Session, annotator: Annotator, item: str) -> TrialRow:
    """The trial called `item`; `NotFoundError` if it is none, `NotAllowedError` if another's."""
    trial = tx.get(TrialRow, item)
    if trial is None or trial.study_id != annotator.study_id:
        raise NotFoundError(f"This study has no item {item!r}.")
    if trial.annotator_id != annotator.id:
        raise NotAllowedError(NOT_GIVEN)
    return trial


def record(
    tx: Session, annotator: Annotator, trial: TrialRow, answer: Answer, now: datetime
) -> VoteReceipt:
    """Store the answer to a trial, as surplus where it has one or the study is closed."""
    study = tx.get_one(StudyRow, trial.study_id)
    true_class, classes, expected = tx.execute(
        select(SourceRow.class_name, CandidateListRow.classes, StimulusRow.expected)
        .join(StimulusRow, StimulusRow.source_id == SourceRow.id)
        .outerjoin(CandidateListRow, CandidateListRow.source_id == SourceRow.id)
        .where(StimulusRow.id == trial.stimulus_id)
    ).one()
    spec = settings_of(study)
    check_answer(spec.kind, classes, answer)
    check_pace(answer, study.version, spec.min_rt_ms)
    late = trial.state == DONE or study.status == StudyStatus.CLOSED
    status = VoteStatus.SURPLUS if late else VoteStatus.QUALITY
    given = {"stimulus_id": trial.stimulus_id, "trial_id": trial.id}
    vote = add_vote(tx, study, annotator, answer, true_class, now, status, **given)
    if not late:
        trial.state = DONE
    if trial.kind == TrialKind.CATCH and not late and answer.answer != expected:
        attention.pause_if_failed(tx, annotator, spec, now)
    return receipt(tx, vote)


def add_vote(
    tx: Session,
    study: StudyRow,
    annotator: Annotator,
    answer: Answer,
    true_class: str,
    now: datetime,
    status: VoteStatus,
    **given: Any,
) -> VoteRow:
    """Store what somebody answered, on a trial or not, and that it happened.

    given: the columns that say which stimulus, and which slot or trial, it is an answer to.
    """
    vote = VoteRow(
        id=answer.id,
        study_id=study.id,
        annotator_id=annotator.id,
        answer=answer.answer,
        reason=answer.reason,
        recognised=settings_of(study).kind.recognised(true_class, answer.answer),
        rt_ms=answer.rt_ms,
        client_ts=answer.client_ts,
        server_ts=now,
        display=dict(answer.display),
        tab=answer.tab,
        status=status,
        protocol=shown_under(answer, study.version),
        **given,
    )
    tx.add(vote)
    log(tx, VOTED, vote, now, answer=answer.answer, reason=answer.reason, status=status)
    return vote


def receipt(tx: Session, vote: VoteRow) -> VoteReceipt:
    """What the browser is told of a vote, on a trial or not.

    Of practice, also the answer. Any other trial counts as far as a browser can see, or its status
    would tell it from an item.
    """
    if vote.trial_id is None:
        return VoteReceipt(id=vote.id, status=VoteStatus(vote.status))
    feedback = select(StimulusRow.expected).join(TrialRow, TrialRow.stimulus_id == StimulusRow.id)
    told = tx.scalar(
        feedback.where(TrialRow.id == vote.trial_id, TrialRow.kind == TrialKind.PRACTICE)
    )
    hidden = told is None and vote.status == VoteStatus.QUALITY
    status = VoteStatus.COUNTED if hidden else VoteStatus(vote.status)
    return VoteReceipt(id=vote.id, status=status, feedback=told)


def take_back(tx: Session, vote: VoteRow, until: datetime, now: datetime) -> TaskItem:
    """Supersede the answer to a trial, which then waits for another; once is enough."""
    trial = tx.get_one(TrialRow, vote.trial_id)
    if vote.status != VoteStatus.SUPERSEDED:
        was = vote.status
        vote.status = VoteStatus.SUPERSEDED
        if was == VoteStatus.QUALITY:
            trial.state, trial.tab = OPEN, vote.tab
        log(tx, UNDONE, vote, now, status_before=was)
    elif trial.state == DONE:
        raise ConflictError("You have answered this item again since; take that answer back.")
    return task_items(tx, [trial], until)[0]
