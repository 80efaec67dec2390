"""The pages people see before they are signed in, as plain HTML. Every text given is escaped."""

from html import escape

from annotation.domain import Study, StudyStatus, Task

STATIC = "/static/annotation"

_ASKED = {
    Task.RECOGNITION: (
        "You will see small pictures, many of them damaged, one after the other. For each one, "
        "press one key: the word for what you recognise in it, or none."
    ),
    Task.PAIR: (
        "You will see two pictures side by side, the right one often damaged. For each pair, press "
        "one key: both show the same, or they show different things."
    ),
}
_STANDS = {
    StudyStatus.RUNNING: "",
    StudyStatus.PAUSED: "The study is paused at the moment; you can sign in and wait.",
    StudyStatus.CLOSED: "The study is closed; there is nothing left to answer.",
}


def sign_in_page(
    study: Study, *, signed_in_as: str | None = None, name: str = "", problem: str = ""
) -> str:
    """The page behind a study's link; `problem` is what was wrong with the last attempt."""
    if study.spec.simulated:
        return message_page(
            study.name, "This study is answered by simulated annotators; people cannot join it."
        )
    parts = [
        f"<h1>{escape(study.name)}</h1>",
        f"<p>{escape(_ASKED[study.task])}</p>",
        _paragraph(_STANDS[study.status], "problem"),
        _continue(signed_in_as) if signed_in_as else "",
        _form(study, name, problem),
    ]
    return _page(study.name, "".join(parts))


def message_page(title: str, text: str) -> str:
    """A page that only says something."""
    return _page(title, f"<h1>{escape(title)}</h1><p>{escape(text)}</p>")


def _form(study: Study, name: str, problem: str) -> str:
    wrong = ' aria-invalid="true" aria-describedby="problem"' if problem else ""
    password = (
        '<label for="password">Password</label>'
        '<input id="password" name="password" type="password" autocomplete="current-password"'
        f" required{wrong}>"
        if study.protected
        else ""
    )
    return (
        f"{_paragraph(problem, 'problem', 'problem')}"
        f'<form method="post" action="/join/{escape(study.token)}">'
        '<label for="name">Your name</label>'
        f'<input id="name" name="name" value="{escape(name)}" autocomplete="name" maxlength="80"'
        f' aria-details="name-help" required autofocus{wrong}>'
        '<p class="help" id="name-help">Use the same name when you come back; it finds your '
        "answers again.</p>"
        f'{password}<button type="submit">Start</button></form>'
    )


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


def _page(title: str, body: str) -> str:
    head = (
        '<meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} · SemSim Studio</title>"
        f'<link rel="icon" href="{STATIC}/icon.svg">'
        f'<link rel="stylesheet" href="{STATIC}/signin.css">'
    )
    main = f'<main><p class="product">SemSim Studio</p>{body}</main>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{main}</body></html>'
