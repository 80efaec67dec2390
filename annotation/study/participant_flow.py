"""Use cases: an annotator's way through a study, from consent to the code at the end."""

from collections.abc import Mapping
from datetime import UTC, datetime

from annotation.design import flow
from annotation.domain import Annotator, AnnotatorProgress, Step
from annotation.errors import AnswerError
from annotation.spec import StudySpec
from annotation.store import Store, reading, studies
from annotation.store import phases as rows

YES, NO = "yes", "no"
LONGEST_NUMBER = 9  # digits

belongs = reading(rows.belongs)
attempts_used = reading(rows.attempts_used)
practice_progress = reading(rows.practice_progress)
completion_code_of = reading(rows.completion_code)


def advance(store: Store, annotator: Annotator, step: Step, data: Mapping[str, str]) -> Annotator:
    """Finish `step` with what was sent in `data`; returns where `annotator` is now.

    Nothing changes for an annotator who is elsewhere by now.

    Args:
        data: For consent "agree" ("yes" or "no") and "keep_votes" ("yes" or absent); for the check
            each question's option and "attempt", how many attempts had been used when the questions
            were shown; else nothing.

    Raises:
        AnswerError: For a form that was not filled in.
        NotAllowedError: For an annotator who is paused or excluded.
    """
    now = datetime.now(UTC)
    if step is Step.CONSENT:
        return _consent(store, annotator, data, now)
    if step is Step.CHECK:
        return _check(store, annotator, data, now)
    if step in (Step.INSTRUCTIONS, Step.DECLINED):
        return store.write(lambda tx: rows.go_on(tx, annotator, step, now))
    raise AnswerError(f"Nobody can finish the step {step} by a form.")


def _consent(
    store: Store, annotator: Annotator, data: Mapping[str, str], now: datetime
) -> Annotator:
    choice = data.get("agree")
    if choice not in (YES, NO):
        raise AnswerError.of("choose")
    keep = data.get("keep_votes") == YES
    return store.write(
        lambda tx: rows.consent(tx, annotator, now, agreed=choice == YES, keep_votes=keep)
    )


def _check(store: Store, annotator: Annotator, data: Mapping[str, str], now: datetime) -> Annotator:
    kind = spec_of(store, annotator).kind
    left = len(flow.unanswered(kind, data))
    if left:
        raise AnswerError.of("open", n=left)
    attempt = data.get("attempt", "")
    # Of no attempt: changes nothing. Python refuses to read very many digits.
    used = int(attempt) if attempt.isdecimal() and len(attempt) <= LONGEST_NUMBER else -1
    return store.write(lambda tx: rows.answer_check(tx, annotator, data, used, now))


def spec_of(store: Store, annotator: Annotator) -> StudySpec:
    """Return the settings of the study an annotator is in."""
    return store.read(lambda tx: studies.study_of(tx, annotator.study_id)).spec


def settle(
    store: Store, annotator: Annotator, progress: AnnotatorProgress | None = None
) -> Annotator:
    """Move an annotator to the step where they belong, which no form does; `progress` as there.

    Raises `NotAllowedError` for one who is paused or excluded and has asked for items.
    """
    return store.write(lambda tx: rows.settle(tx, annotator, datetime.now(UTC), progress))
