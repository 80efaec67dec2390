"""The pages before and after the labelling itself, as plain HTML. Every text given is escaped."""

from collections.abc import Sequence
from html import escape

from annotation.design.way import NAMES, place
from annotation.domain import Step, Study, StudySpec, StudyStatus
from annotation.study.passage import NO, YES
from annotation.tasks.kind import Question
from annotation.web.recruiting import code_address
from annotation.web.signin import STATIC, page

BEGIN = "/begin"  # the address of all pages before the labelling
DONE = "/done"


def consent_page(study: Study, *, problem: str = "") -> str:
    """What taking part means, and the choice."""
    keep = (
        '<p class="tick"><input type="checkbox" id="keep" name="keep_votes" '
        f'value="{YES}"><label for="keep">If I ask to be erased later, my answers may be kept '
        "without my name.</label></p>"
    )
    choices = (
        f'<button name="agree" value="{YES}">I agree and take part</button>'
        f'<button name="agree" value="{NO}" class="plain">I do not take part</button>'
    )
    body = f"{_text(study.spec.consent)}{_alert(problem)}{_form(Step.CONSENT, keep + choices)}"
    return _step_page(study, Step.CONSENT, "Before you take part", body)


def instructions_page(study: Study) -> str:
    """What to do, with what everybody is to know."""
    button = '<button type="submit">Go on</button>'
    body = f"{_instructions(study.spec)}{_form(Step.INSTRUCTIONS, button)}"
    return _step_page(study, Step.INSTRUCTIONS, "What to do", body)


def check_page(
    study: Study,
    questions: Sequence[Question],
    used: int,
    *,
    reminders: Sequence[str] = (),
    problem: str = "",
) -> str:
    """The questions on the instructions. After a wrong attempt the instructions come again.

    used: attempts used up.
    """
    left = study.spec.check_attempts - used
    times = "once" if left == 1 else f"{left} times"
    told = f"Answer the questions as the instructions say. You can try {times}."
    fields = "".join(_question(number, one) for number, one in enumerate(questions, 1))
    hidden = f'<input type="hidden" name="attempt" value="{used}">'
    button = '<button type="submit">Send my answers</button>'
    body = (
        f"{_again(study.spec, reminders)}{_alert(problem)}<h2>The questions</h2><p>{told}</p>"
        f"{_form(Step.CHECK, hidden + fields + button)}"
    )
    return _step_page(study, Step.CHECK, "A few questions", body)


def _again(spec: StudySpec, reminders: Sequence[str]) -> str:
    if not reminders:
        return ""
    wrong = "Something was" if len(reminders) == 1 else f"{len(reminders)} answers were"
    return (
        f'<div class="problem" role="alert"><p>{wrong} not as the instructions say. Please read '
        f"them again and try once more.</p>{_list(reminders)}</div>"
        f"<h2>The instructions</h2>{_instructions(spec)}"
    )


def _question(number: int, question: Question) -> str:
    options = "".join(
        f'<p class="tick"><input type="radio" id="{question.name}-{name}" '
        f'name="{question.name}" value="{name}" required>'
        f'<label for="{question.name}-{name}">{escape(text)}</label></p>'
        for name, text in question.options
    )
    return f"<fieldset><legend>{number}. {escape(question.text)}</legend>{options}</fieldset>"


def declined_page(study: Study) -> str:
    """For somebody who does not take part; they may think again."""
    button = '<button type="submit" class="plain">I have changed my mind</button>'
    body = (
        "<p>You have chosen not to take part, and nothing is asked of you. You can close this "
        f"page. Thank you for reading.</p>{_form(Step.DECLINED, button)}"
    )
    return _titled(study, "That is all right", body)


def failed_page(study: Study) -> str:
    """For somebody who did not pass the questions."""
    body = (
        "<p>Your answers to the questions were not as the instructions say, so the study ends here "
        "for you. This says nothing about you: the instructions may have been unclear. If you "
        "think so, tell the researcher who gave you the link. Thank you for your time.</p>"
    )
    return _titled(study, "Thank you for trying", body)


def stopped_page(study: Study, title: str, text: str) -> str:
    """For somebody who cannot go on for now, with the reason."""
    return _titled(study, title, f"<p>{escape(text)}</p>")


def thanks_page(study: Study, code: str) -> str:
    """The end, with the code that shows it."""
    url = study.spec.completion_url
    on = (
        f'<p><a class="button" href="{escape(code_address(url, code))}" rel="noreferrer">'
        "Go on to finish</a></p>"
        if url
        else ""
    )
    body = (
        "<p>All asked of you has been answered, and every answer is saved. This is your code, in "
        "case somebody asks you for it:</p>"
        f'<p class="code" id="code">{escape(code)}</p>'
        '<p><button type="button" class="plain" data-copy="code">Copy the code</button>'
        f'<span class="copied" role="status"></span></p>{on}'
        f'<script type="module" src="{STATIC}/copy.js"></script>'
    )
    return _titled(study, "All done, thank you!", body)


def _step_page(study: Study, step: Step, title: str, body: str) -> str:
    return _titled(study, title, body, _strip(study.spec, step))


def _titled(study: Study, title: str, body: str, strip: str = "") -> str:
    paused = study.status is StudyStatus.PAUSED
    stands = "The study is paused at the moment; you can read on and wait." if paused else ""
    shown = study.spec.shown_title
    head = f'{strip}<p class="study">{escape(shown)}</p><h1>{escape(title)}</h1>'
    note = f'<p class="help">{stands}</p>' if stands else ""
    return page(f"{title} · {shown}", head + note + body, wide=True)


def _strip(spec: StudySpec, step: Step) -> str:
    where = place(spec, step)
    if where is None:
        return ""
    number, of = where
    marks = "".join(f"<i{' class=past' if i < number else ''}></i>" for i in range(of))
    return (
        f'<p class="steps"><span>Step {number} of {of}: {NAMES[step]}</span>'
        f'<span class="marks" aria-hidden="true">{marks}</span></p>'
    )


def _instructions(spec: StudySpec) -> str:
    text = _text(spec.instructions or spec.kind.about)
    return f"{text}<h2>How to answer</h2>{_list(spec.kind.rules)}"


def _text(text: str) -> str:
    """Paragraphs, which empty lines part; other line breaks stay."""
    parts = [part.strip() for part in text.replace("\r\n", "\n").split("\n\n")]
    return "".join(f'<p class="text">{escape(part)}</p>' for part in parts if part)


def _list(texts: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"


def _alert(problem: str) -> str:
    return f'<p class="problem" role="alert">{escape(problem)}</p>' if problem else ""


def _form(step: Step, fields: str) -> str:
    return (
        f'<form method="post" action="{BEGIN}">'
        f'<input type="hidden" name="step" value="{step.value}">{fields}</form>'
    )
