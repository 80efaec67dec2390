"""Steps of an annotator's way through a study, and the questions on the instructions."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from annotation.domain import Step
from annotation.spec import StudySpec
from annotation.tasks.kind import Kind, Question


def questions(kind: Kind, seed: int, person: str) -> tuple[Question, ...]:
    """The questions for one person, in an order of their own, options too; always the same."""
    digest = hashlib.sha256(f"check:{seed}:{person}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
    asked = kind.check
    return tuple(_shuffled(asked[i], rng) for i in rng.permutation(len(asked)))


def _shuffled(question: Question, rng: np.random.Generator) -> Question:
    order = rng.permutation(len(question.options))
    return replace(question, options=tuple(question.options[i] for i in order))


def unanswered(kind: Kind, answers: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the questions that `answers`, question → option, do not answer."""
    return tuple(
        one.name
        for one in kind.check
        if answers.get(one.name) not in {name for name, _ in one.options}
    )


def wrong(kind: Kind, answers: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the questions that `answers`, question → option, get wrong."""
    return tuple(one.name for one in kind.check if answers.get(one.name) != one.right)


# In this order. Those a study leaves out are passed over.
_WAY = (Step.CONSENT, Step.INSTRUCTIONS, Step.PRACTICE, Step.CHECK, Step.MAIN)
AT_WORK = (Step.PRACTICE, Step.MAIN)  # shown items; everybody else reads a page


def steps(spec: StudySpec) -> tuple[Step, ...]:
    """The steps of a study in their order, from the first to the main one.

    Instructions are a step wherever there is another one before the main step, or a text.
    """
    there = {
        Step.CONSENT: bool(spec.consent.strip()),
        Step.PRACTICE: spec.practice > 0,
        Step.CHECK: spec.check,
    }
    there[Step.INSTRUCTIONS] = any(there.values()) or bool(spec.instructions.strip())
    return tuple(step for step in _WAY if there.get(step, True))


def first(spec: StudySpec) -> Step:
    """Return the step at which an annotator who joins begins."""
    return steps(spec)[0]


def after(spec: StudySpec, step: Step) -> Step:
    """Return the step after one an annotator has finished; done follows the main step.

    An annotator who declined begins again; nothing follows done and failed.
    """
    if step is Step.DECLINED:
        return first(spec)
    if step not in _WAY:
        return step
    behind = _WAY[: _WAY.index(step) + 1]
    return next((one for one in steps(spec) if one not in behind), Step.DONE)


def current(spec: StudySpec, step: Step) -> Step:
    """Return the step to go on with: `step`, or a later one where it has been left out since."""
    return step if step not in _WAY or step in steps(spec) else after(spec, step)


def place(spec: StudySpec, step: Step) -> tuple[int, int] | None:
    """(n, m) for "step n of m", None off the way and where there is but one step."""
    way = steps(spec)
    return (way.index(step) + 1, len(way)) if step in way and len(way) > 1 else None
