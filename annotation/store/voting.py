"""Inside one transaction: a vote and its event, and taking a vote back; on items and on trials.

An answer to a trial never counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, bindparam, func, insert, select, update
from sqlalchemy.orm import Session

from annotation.design.assignment import LEFT_OUT, Slot, slot_for
from annotation.domain import (
    Annotator,
    Answer,
    NoneReason,
    SlotState,
    StudyStatus,
    TaskItem,
    TrialKind,
    VoteReceipt,
    VoteStatus,
)
from annotation.errors import (
    AnswerError,
    ConflictError,
    NotAllowedError,
    NotFoundError,
    TooQuickError,
)
from annotation.spec import StudySpec
from annotation.store import catch_trials, trials
from annotation.store.events import UNDONE, VOTED, log
from annotation.store.slots import (
    answered,
    has_held,
    lock_slots,
    require_active,
    set_slot,
    settle_tie_breaks,
    slots_of,
    take,
    task_items,
    touch,
)
from annotation.store.studies import WRITTEN, settings_in, settings_of
from annotation.store.tables import (
    CandidateListRow,
    EventRow,
    SlotRow,
    SourceRow,
    StimulusRow,
    StudyRow,
    Table,
    TrialRow,
    VoteRow,
)
from annotation.tasks.kind import NONE, Kind

# Made once, as making a statement takes longer than carrying it out.
_QUESTION = (
    select(
        StudyRow.status,
        StudyRow.version,
        WRITTEN,
        SourceRow.class_name,
        CandidateListRow.classes,
        VoteRow.id,
    )
    .select_from(StimulusRow)
    .join(SourceRow, SourceRow.id == StimulusRow.source_id)
    .join(StudyRow, StudyRow.id == StimulusRow.study_id)
    .outerjoin(CandidateListRow, CandidateListRow.id == StimulusRow.list_id)
    .outerjoin(VoteRow, VoteRow.id == bindparam("vote"))
    .where(StimulusRow.id == bindparam("item"), StimulusRow.study_id == bindparam("study"))
    .with_for_update(key_share=True, of=StimulusRow)
)
_ADD = insert(Table.metadata.tables["vote"])


def record(tx: Session, annotator: Annotator, answer: Answer, now: datetime) -> VoteReceipt:
    """Store `answer` as counted if the item has a slot for it, else as surplus.

    Of an annotator whom a researcher's link let in it is left out, as if they were excluded, until
    `people.include`: the holder of such a link is unknown, and the slot is others' to fill.

    Args:
        annotator: As `slots.here` found them in this transaction. The same answer under the same id
            changes nothing and gets the same receipt, also from an annotator who may no longer
            vote: it confirms to their browser that the answer has arrived.
    """
    question = _question(tx, annotator, answer)
    if question is None or question[-1] is not None:
        known = tx.get(VoteRow, answer.id)
        if known is not None:
            return _receipt_again(tx, known, annotator, answer)
    require_active(annotator.status)
    if question is None:
        trial = _trial(tx, annotator, answer.item)
        return _record_on_trial(tx, annotator, trial, answer, now)
    status, version, written, true_class, classes, _ = question
    slot = None if status == StudyStatus.CLOSED else answered(tx, annotator, answer.item)
    slots = [] if slot else _slots_for(tx, annotator, answer.item)
    spec = settings_in(written, annotator.study_id)
    check_answer(spec.kind, classes, answer)
    check_pace(answer, version, spec.min_rt_ms)
    if slot is None and status != StudyStatus.CLOSED:
        slot = _taken(tx, annotator, answer.item, slots, now)
    became = VoteStatus.SURPLUS if slot is None else VoteStatus.COUNTED
    if slot is not None and annotator.link_by is not None:
        became = VoteStatus.EXCLUDED
        set_slot(tx, slot, SlotState.LEASED, lease_until=LEFT_OUT)
    given = {"stimulus_id": answer.item, "slot_id": slot, "status": became}
    shown = _Shown(spec=spec, version=version, true_class=true_class)
    vote = _add_vote(tx, annotator, answer, shown, now, **given)
    if spec.extra_vote:
        settle_tie_breaks(tx, annotator.study_id, [answer.item], now)
    return _receipt(tx, vote, annotator)


def _slots_for(tx: Session, annotator: Annotator, item: str) -> list[Slot]:
    """The slots of an item; raises `NotAllowedError` for one that `annotator` was never given."""
    slots = slots_of(tx, [item])[item]
    holds = annotator.id in {slot.annotator for slot in slots}
    if not holds and not has_held(tx, annotator, item):
        raise NotAllowedError.of("not_given")
    return slots


def _taken(
    tx: Session, annotator: Annotator, item: str, slots: Sequence[Slot], now: datetime
) -> int | None:
    """The slot that a late answer gets, None if there is no room for it."""
    slot = slot_for(slots, annotator.id, now)
    if slot is None:
        return None
    take(tx, annotator, item, slot, now)
    set_slot(tx, slot.id, SlotState.DONE, lease_until=None)
    return slot.id


def _trial(tx: Session, annotator: Annotator, item: str) -> TrialRow:
    """The trial called `item`; `NotFoundError` if it is none, `NotAllowedError` if another's."""
    trial = tx.get(TrialRow, item)
    if trial is None or trial.study_id != annotator.study_id:
        raise NotFoundError(f"This study has no item {item!r}.")
    if trial.annotator_id != annotator.id:
        raise NotAllowedError.of("not_given")
    return trial


def _record_on_trial(
    tx: Session, annotator: Annotator, trial: TrialRow, answer: Answer, now: datetime
) -> VoteReceipt:
    """Store the answer to a trial, as surplus where it has one or the study is closed.

    Also where a researcher's link let them in: what was answered then says nothing of them.
    """
    study = tx.get_one(StudyRow, trial.study_id)
    true_class, classes, expected = tx.execute(
        select(SourceRow.class_name, CandidateListRow.classes, StimulusRow.expected)
        .join(StimulusRow, StimulusRow.source_id == SourceRow.id)
        .outerjoin(CandidateListRow, CandidateListRow.id == StimulusRow.list_id)
        .where(StimulusRow.id == trial.stimulus_id)
    ).one()
    spec = settings_of(study)
    check_answer(spec.kind, classes, answer)
    check_pace(answer, study.version, spec.min_rt_ms)
    late = trial.state == trials.DONE or study.status == StudyStatus.CLOSED
    left_out = late or annotator.link_by is not None
    status = VoteStatus.SURPLUS if left_out else VoteStatus.QUALITY
    given = {"stimulus_id": trial.stimulus_id, "trial_id": trial.id, "status": status}
    shown = _Shown(spec=spec, version=study.version, true_class=true_class)
    vote = _add_vote(tx, annotator, answer, shown, now, **given)
    if not late:
        trial.state = trials.DONE
    passed = expected is None or spec.kind.passes(expected, answer.answer)
    if trial.kind == TrialKind.CATCH and not left_out and not passed:
        catch_trials.pause_if_failed(tx, annotator, spec, now)
    return _receipt(tx, vote, annotator)


@dataclass(frozen=True, kw_only=True)
class _Shown:
    """Subject of an answer: a picture of `true_class`, in a study with these settings."""

    spec: StudySpec
    version: int
    true_class: str


def _add_vote(
    tx: Session, annotator: Annotator, answer: Answer, shown: _Shown, now: datetime, **given: Any
) -> VoteRow:
    """Store what an annotator answered, on a trial or not, and that it happened.

    Args:
        given: The status, and the columns that say which stimulus, and which slot or trial, it is
            an answer to. The row that it returns is none of the session's.
    """
    row: dict[str, Any] = {
        **{name: one for name, one in vars(answer).items() if name not in ("item", "version")},
        "study_id": annotator.study_id,
        "annotator_id": annotator.id,
        "recognised": shown.spec.kind.recognised(shown.true_class, answer.answer),
        "server_ts": now,
        "display": dict(answer.display),
        "protocol": shown_under(answer, shown.version),
        **given,
    }
    tx.flush()  # what follows goes past the session
    tx.connection().execute(_ADD, row)
    vote = VoteRow(**row)
    via = {} if annotator.link_by is None else {"link_by": annotator.link_by}
    log(tx, VOTED, vote, now, answer=vote.answer, reason=vote.reason, status=vote.status, **via)
    return vote


def _receipt(tx: Session, vote: VoteRow, annotator: Annotator) -> VoteReceipt:
    """Return what the browser is sent of a vote, on a trial or not.

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
    if annotator.link_by is not None and status == VoteStatus.SURPLUS:
        status = VoteStatus.EXCLUDED  # as of an item
    return VoteReceipt(id=vote.id, status=status, feedback=told)


def _receipt_again(
    tx: Session, known: VoteRow, annotator: Annotator, answer: Answer
) -> VoteReceipt:
    if known.annotator_id != annotator.id:
        raise ConflictError(f"The vote id {answer.id} belongs to somebody else.")
    if (known.trial_id or known.stimulus_id, known.answer) != (answer.item, answer.answer):
        raise ConflictError(f"The vote id {answer.id} was used for another answer; make a new id.")
    return _receipt(tx, known, annotator)


def _question(
    tx: Session, annotator: Annotator, answer: Answer
) -> Row[str, int, str, str, list[str] | None, str | None] | None:
    """The study's status, version and settings, the true class, the classes offered, and the id if
    a vote has it already.

    Locks the item as `lock_slots` does; None if it is none that has slots.
    """
    binds = {"item": answer.item, "study": annotator.study_id, "vote": answer.id}
    return tx.connection().execute(_QUESTION, binds).one_or_none()


def take_back(tx: Session, annotator: Annotator, vote_id: str, now: datetime) -> TaskItem:
    """Supersede a vote and reserve its item for another answer; once is enough."""
    require_active(touch(tx, annotator, now))
    vote = tx.get(VoteRow, vote_id)
    if vote is None or vote.annotator_id != annotator.id:
        raise NotFoundError(f"You have given no vote {vote_id!r}.")
    study = tx.get_one(StudyRow, vote.study_id)
    if study.status == StudyStatus.CLOSED:
        raise ConflictError.of("closed")
    until = now + timedelta(seconds=settings_of(study).lease_seconds)
    if vote.trial_id is not None:
        return _take_back_from_trial(tx, vote, until, now)
    if vote.status != VoteStatus.SUPERSEDED:
        _supersede(tx, vote, until, now)
    elif _answered_since(tx, vote):
        raise ConflictError.of("answered_again")
    return task_items(tx, [vote.stimulus_id], until)[0]


def _supersede(tx: Session, vote: VoteRow, until: datetime, now: datetime) -> None:
    lock_slots(tx, [vote.stimulus_id])
    was = vote.status
    vote.status = VoteStatus.SUPERSEDED
    tx.flush()
    if was == VoteStatus.COUNTED and vote.slot_id is not None:
        set_slot(tx, vote.slot_id, SlotState.LEASED, lease_until=until, tab=vote.tab)
    elif was == VoteStatus.EXCLUDED:  # left out; others may have taken over since
        mine = SlotRow.id == vote.slot_id, SlotRow.annotator_id == vote.annotator_id
        tx.execute(update(SlotRow).where(*mine).values(lease_until=until, tab=vote.tab))
    log(tx, UNDONE, vote, now, status_before=was)
    settle_tie_breaks(tx, vote.study_id, [vote.stimulus_id], now)


def _answered_since(tx: Session, vote: VoteRow) -> bool:
    """Return whether the annotator's counted vote on the item came after `vote` was taken back."""
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


def _take_back_from_trial(tx: Session, vote: VoteRow, until: datetime, now: datetime) -> TaskItem:
    """Supersede the answer to a trial, which then waits for another; once is enough."""
    trial = tx.get_one(TrialRow, vote.trial_id)
    if vote.status != VoteStatus.SUPERSEDED:
        was = vote.status
        vote.status = VoteStatus.SUPERSEDED
        if was == VoteStatus.QUALITY:
            trial.state, trial.tab = trials.OPEN, vote.tab
        log(tx, UNDONE, vote, now, status_before=was)
    elif trial.state == trials.DONE:
        raise ConflictError.of("answered_again")
    return trials.task_items(tx, [trial], until)[0]


def check_answer(kind: Kind, candidates: Sequence[str] | None, answer: Answer) -> None:
    """Raise `AnswerError` unless the item offers `answer`."""
    allowed = kind.offered(candidates)
    if answer.answer not in allowed:
        raise AnswerError(
            f"The answer {answer.answer!r} is not offered; expected one of {allowed}."
        )
    if answer.reason is not None and answer.answer != NONE:
        raise AnswerError(f"Only the answer {NONE!r} has a reason; got one with {answer.answer!r}.")
    if answer.reason is not None and answer.reason not in set(NoneReason):
        raise AnswerError(f"Unknown reason {answer.reason!r}; expected {', '.join(NoneReason)}.")
    if answer.rt_ms is not None and not 0 <= answer.rt_ms < float("inf"):
        raise AnswerError(f"A response time cannot be {answer.rt_ms} ms; expected 0 or more.")


def check_pace(answer: Answer, version: int, least_ms: float) -> None:
    """Raise `TooQuickError` for an answer sooner than `least_ms`, which is that of `version`.

    One that was shown under an earlier version is taken, and so is one without a time.
    """
    late_enough = answer.rt_ms is None or answer.rt_ms >= least_ms
    if not late_enough and shown_under(answer, version) == version:
        raise TooQuickError.of("too_quick", rt=f"{answer.rt_ms:g}", least=f"{least_ms:g}")


def shown_under(answer: Answer, version: int) -> int:
    """The version of the protocol that `answer` was given under; `version` is the latest one.

    A vote may come long after its item was shown. Raises `AnswerError` for one that never was.
    """
    if not 1 <= answer.version <= version:
        raise AnswerError(
            f"The study has versions 1 to {version} of its settings; got {answer.version}. "
            "Load the page again."
        )
    return answer.version
