"""The steps of somebody's way through a study, and the texts they read on it."""

from annotation.domain import Step, StudySpec, Task

# In this order. Those a study leaves out are passed over.
_WAY = (Step.CONSENT, Step.INSTRUCTIONS, Step.PRACTICE, Step.CHECK, Step.MAIN)
NAMES = {
    Step.CONSENT: "Consent",
    Step.INSTRUCTIONS: "Instructions",
    Step.PRACTICE: "Practice",
    Step.CHECK: "Questions",
    Step.MAIN: "Study",
}
AT_WORK = (Step.PRACTICE, Step.MAIN)  # shown items; everybody else reads a page

ABOUT = {
    Task.RECOGNITION: (
        "You will see small pictures, many of them damaged, one after the other. For each one, "
        "press one key: the word for what you recognise in it, or none."
    ),
    Task.PAIR: (
        "You will see two pictures side by side, the right one often damaged. For each pair, press "
        "one key: both show the same, or they show different things."
    ),
}
# What everybody is to know before the first answer; `annotation.design.check` asks about it.
RULES = {
    Task.RECOGNITION: (
        "Name what you recognise: press the key on the button with that word, or click it.",
        "If you can make nothing out, answer none with the key 6: I can’t make it out.",
        "If you see something that no word stands for, answer none with the key 7: It is not in "
        "the list. Space is none without a reason. None only means that you do not see any of "
        "these things; it is as good an answer as any word.",
        "You need not be sure. Give a word when something in the picture speaks for it, and none "
        "when you would only guess blindly.",
        "Judge every picture by itself, whatever you answered before. A word may be right often, "
        "or never.",
        "Backspace takes the last answer back.",
    ),
    Task.PAIR: (
        "Compare what the two pictures show: press F if it is the same subject, J if it is "
        "different, or click.",
        "The same subject may be damaged, paler or blurred in one of them; that makes no "
        "difference to the answer.",
        "If you can make nothing out in one of them, answer different: you do not recognise the "
        "subject there.",
        "You need not be sure. Answer what seems more likely from what you see.",
        "Judge every pair by itself, whatever you answered before. Either answer may be right "
        "often, or never.",
        "Backspace takes the last answer back.",
    ),
}


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
    """Where somebody who joins begins."""
    return steps(spec)[0]


def after(spec: StudySpec, step: Step) -> Step:
    """What follows a step somebody has finished; done follows the main step.

    Whoever declined begins again; nothing follows done and failed.
    """
    if step is Step.DECLINED:
        return first(spec)
    if step not in _WAY:
        return step
    behind = _WAY[: _WAY.index(step) + 1]
    return next((one for one in steps(spec) if one not in behind), Step.DONE)


def current(spec: StudySpec, step: Step) -> Step:
    """Where somebody at `step` is to go on: there, or further where it has been left out since."""
    return step if step not in _WAY or step in steps(spec) else after(spec, step)


def place(spec: StudySpec, step: Step) -> tuple[int, int] | None:
    """(n, m) for "step n of m", None off the way and where there is but one step."""
    way = steps(spec)
    return (way.index(step) + 1, len(way)) if step in way and len(way) > 1 else None
