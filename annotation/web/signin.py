"""The pages people see before they are signed in, as plain HTML. Every text given is escaped."""

from html import escape

from annotation.domain import Study, StudyStatus
from annotation.web.recruiting import Recruit

STATIC = "/static/annotation"

_STANDS = {
    StudyStatus.RUNNING: "",
    StudyStatus.PAUSED: "The study is paused at the moment; you can sign in and wait.",
    StudyStatus.CLOSED: "The study is closed; there is nothing left to answer.",
}


def sign_in_page(
    study: Study, *, signed_in_as: str | None = None, name: str = "", problem: str = ""
) -> str:
    """The page behind a study's link; `problem` is what was wrong with the last attempt."""
    goes_on = _continue(signed_in_as) if signed_in_as else ""
    return _join_page(study, problem, goes_on + _form(study, _name_field(name, problem), problem))


def recruit_page(study: Study, recruit: Recruit, *, problem: str = "") -> str:
    """The same page for somebody whom a recruiting service has sent: it has given the name."""
    told = "".join(
        f'<input type="hidden" name="{escape(key)}" value="{escape(value)}">'
        for key, value in recruit.ids.items()
    )
    note = _paragraph(f"You take part as {recruit.pseudonym}.", "help")
    return _join_page(study, problem, note + _form(study, told, problem))


def _join_page(study: Study, problem: str, form: str) -> str:
    title = study.spec.shown_title
    if study.spec.simulated:
        return message_page(
            title, "This study is answered by simulated annotators; people cannot join it."
        )
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(study.kind.about)}</p>",
        _paragraph(_STANDS[study.status], "problem"),
        form,
    ]
    return page(title, "".join(parts))


def message_page(title: str, text: str) -> str:
    """A page that only says something."""
    return page(title, f"<h1>{escape(title)}</h1><p>{escape(text)}</p>")


def _name_field(name: str, problem: str) -> str:
    return (
        '<label for="name">Your name</label>'
        f'<input id="name" name="name" value="{escape(name)}" autocomplete="name" maxlength="80"'
        f' aria-details="name-help" required autofocus{_invalid(problem)}>'
        '<p class="help" id="name-help">Use the same name when you come back; it finds your '
        "answers again.</p>"
    )


def _form(study: Study, who: str, problem: str) -> str:
    password = (
        '<label for="password">Password</label>'
        '<input id="password" name="password" type="password" autocomplete="current-password"'
        f" required{_invalid(problem)}>"
        if study.protected
        else ""
    )
    return (
        f"{_paragraph(problem, 'problem', 'problem')}"
        f'<form method="post" action="/join/{escape(study.token)}">'
        f'{who}{password}<button type="submit">Start</button></form>'
    )


def _invalid(problem: str) -> str:
    return ' aria-invalid="true" aria-describedby="problem"' if problem else ""


def _continue(name: str) -> str:
    return (
        f'<p><a class="button" href="/label">Continue as {escape(name)}</a></p>'
        '<p class="or">Or sign in under another name:</p>'
    )


def _paragraph(text: str, kind: str, identifier: str = "") -> str:
    if not text:
        return ""
    mark = f' id="{identifier}" role="alert"' if identifier else ""
    return f'<p class="{kind}"{mark}>{escape(text)}</p>'


def page(title: str, body: str, *, wide: bool = False) -> str:
    """A whole page; `body` is HTML. `wide` is for pages with much to read."""
    head = (
        '<meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} · SemSim Studio</title>"
        f'<link rel="icon" href="{STATIC}/icon.svg">'
        f'<link rel="stylesheet" href="{STATIC}/signin.css">'
    )
    kind = ' class="wide"' if wide else ""
    main = f'<main{kind}><p class="product">SemSim Studio</p>{body}</main>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{main}</body></html>'
