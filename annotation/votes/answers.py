"""Checks of answers: what is offered, the pace and the version of the protocol."""

from collections.abc import Sequence

from annotation.domain import Answer, NoneReason
from annotation.errors import AnswerError, TooQuickError
from annotation.tasks.kind import NONE, Kind


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
