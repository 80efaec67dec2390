"""Inside one transaction: a vote and its event, and taking a vote back."""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from annotation.domain import (
    Annotator,
    Answer,
    SlotState,
    StudyStatus,
    Task,
    TaskItem,
    VoteReceipt,
    VoteStatus,
)
from annotation.errors import ConflictError, NotAllowedError, NotFoundError
from annotation.store.slots import (
    has_held,
    lock_slots,
    require_active,
    set_slot,
    take,
    task_items,
    touch,
)
from annotation.store.tables import (
    CandidateListRow,
    EventRow,
    SourceRow,
    StimulusRow,
    StudyRow,
    VoteRow,
)
from annotation.tasks.assignment import Slot, slot_for
from annotation.votes.answers import check_answer, is_recognised

VOTED = "vote"
UNDONE = "undo"


def record(tx: Session, annotator: Annotator, answer: Answer, now: datetime) -> VoteReceipt:
    """Store `answer` as counted if the item has a slot for it, else as surplus.

    The same answer under the same id changes nothing and gets the same receipt, also from
    somebody who may no longer vote: their browser then knows that it has arrived.
    """
    status = touch(tx, annotator, now)
    known = tx.get(VoteRow, answer.id)
    if known is not None:
        return _receipt_again(known, annotator, answer)
    require_active(status)
    stimulus, source, study, candidates = _question(tx, annotator, answer.item)
    if not has_held(tx, annotator, answer.item):
        raise NotAllowedError("This item was not given to you; ask for the next one.")
    check_answer(Task(study.task), candidates, answer)
    slot = _slot_to_fill(tx, annotator, study, answer.item, now)
    vote = VoteRow(
        id=answer.id,
        study_id=study.id,
        stimulus_id=stimulus.id,
        slot_id=None if slot is None else slot.id,
        annotator_id=annotator.id,
        answer=answer.answer,
        reason=answer.reason,
        recognised=is_recognised(Task(study.task), source.class_name, answer.answer),
        rt_ms=answer.rt_ms,
        client_ts=answer.client_ts,
        server_ts=now,
        display=dict(answer.display),
        tab=answer.tab,
        status=VoteStatus.SURPLUS if slot is None else VoteStatus.COUNTED,
    )
    tx.add(vote)
    if slot is not None:
        set_slot(tx, slot.id, SlotState.DONE, lease_until=None)
    _log(tx, VOTED, vote, now, answer=answer.answer, reason=answer.reason, status=vote.status)
    return VoteReceipt(id=vote.id, status=VoteStatus(vote.status))


def _receipt_again(known: VoteRow, annotator: Annotator, answer: Answer) -> VoteReceipt:
    if known.annotator_id != annotator.id:
        raise ConflictError(f"The vote id {answer.id} belongs to somebody else.")
    if (known.stimulus_id, known.answer) != (answer.item, answer.answer):
        raise ConflictError(f"The vote id {answer.id} was used for another answer; make a new id.")
    return VoteReceipt(id=known.id, status=VoteStatus(known.status))


def _question(
    tx: Session, annotator: Annotator, item: str
) -> tuple[StimulusRow, SourceRow, StudyRow, list[str]]:
    row = tx.execute(
        select(StimulusRow, SourceRow, StudyRow, CandidateListRow.classes)
        .join(SourceRow, SourceRow.id == StimulusRow.source_id)
        .join(StudyRow, StudyRow.id == StimulusRow.study_id)
        .outerjoin(CandidateListRow, CandidateListRow.source_id == SourceRow.id)
        .where(StimulusRow.id == item, StimulusRow.study_id == annotator.study_id)
    ).one_or_none()
    if row is None:
        raise NotFoundError(f"This study has no item {item!r}.")
    stimulus, source, study, classes = row
    return stimulus, source, study, classes or []


def _slot_to_fill(
    tx: Session, annotator: Annotator, study: StudyRow, item: str, now: datetime
) -> Slot | None:
    if study.status == StudyStatus.CLOSED:
        return None
    slot = slot_for(lock_slots(tx, [item])[item], annotator.id, now)
    if slot is not None:
        take(tx, annotator, item, slot, now)
    return slot


def take_back(tx: Session, annotator: Annotator, vote_id: str, now: datetime) -> TaskItem:
    """Supersede a vote and reserve its item for another answer; once is enough."""
    require_active(touch(tx, annotator, now))
    vote = tx.get(VoteRow, vote_id)
    if vote is None or vote.annotator_id != annotator.id:
        raise NotFoundError(f"You have given no vote {vote_id!r}.")
    study = tx.get_one(StudyRow, vote.study_id)
    if study.status == StudyStatus.CLOSED:
        raise ConflictError("The study is closed; its votes can no longer be taken back.")
    until = now + timedelta(seconds=study.spec["lease_seconds"])
    if vote.status != VoteStatus.SUPERSEDED:
        _supersede(tx, vote, until, now)
    elif _answered_since(tx, vote):
        raise ConflictError("You have answered this item again since; take that answer back.")
    return task_items(tx, [vote.stimulus_id], until)[0]


def _supersede(tx: Session, vote: VoteRow, until: datetime, now: datetime) -> None:
    lock_slots(tx, [vote.stimulus_id])
    was = vote.status
    vote.status = VoteStatus.SUPERSEDED
    tx.flush()
    if was == VoteStatus.COUNTED and vote.slot_id is not None:
        set_slot(tx, vote.slot_id, SlotState.LEASED, lease_until=until, tab=vote.tab)
    _log(tx, UNDONE, vote, now, status_before=was)


def _answered_since(tx: Session, vote: VoteRow) -> bool:
    """Whether the annotator's counted vote on the item came after `vote` was taken back."""
    undone = (
        select(func.max(EventRow.id))
        .where(EventRow.vote_id == vote.id, EventRow.kind == UNDONE)
        .scalar_subquery()
    )
    query = (
        select(VoteRow.id)
        .join(EventRow, (EventRow.vote_id == VoteRow.id) & (EventRow.kind == VOTED))
        .where(
            VoteRow.stimulus_id == vote.stimulus_id,
            VoteRow.annotator_id == vote.annotator_id,
            VoteRow.status == VoteStatus.COUNTED,
            EventRow.id > undone,
        )
    )
    return tx.scalar(query) is not None


def _log(tx: Session, kind: str, vote: VoteRow, now: datetime, **data: Any) -> None:
    tx.flush()  # the event refers to the vote
    tx.add(
        EventRow(
            study_id=vote.study_id,
            kind=kind,
            annotator_id=vote.annotator_id,
            stimulus_id=vote.stimulus_id,
            vote_id=vote.id,
            at=now,
            data=data,
        )
    )
