"""Steps of an annotator's way through a study."""

from annotation.domain import Step
from annotation.spec import StudySpec

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
