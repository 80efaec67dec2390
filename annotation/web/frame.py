"""The frame of the studio's pages: side bar, study in hand, what runs; and its plain pages.

`static/frame.js` asks for the side bar beside every page of the studio, drawn by Gradio or not, and
again every few seconds for what changes in it. With it comes whether anything has happened since.
Then `static/part.js` fetches the page again and puts in what differs, wherever a page has
data-live. `Framed` puts that script on pages that Gradio drew.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from time import time
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from annotation.accounts.access import ACCOUNT_COOKIE, Who
from annotation.store import Store
from annotation.study import labelling
from annotation.study.labelling import events_so_far
from annotation.web.api import routes
from annotation.web.guard import OTHER_PROCESS, PROCESS, Cookie, keep, process_name
from annotation.web.root_path import bare, rooted
from annotation.web.templates import STATIC_URL, fill, page, trouble

STUDY_COOKIE = "studio_study"
NEWS = "x-studio-news"  # with the side bar: another value once a page may have changed
Groups = Mapping[str, Sequence[tuple[str, str]]]  # by title: pages' titles and addresses
_STUDY = ("Overview", "Pictures", "Items", "People", "Results")
STUDY: Groups = {"Study": [(one, one.lower()) for one in _STUDY]}


GONE = (
    "The study of this address is not here: it was deleted, or the address is of another studio. "
    "Home and the side bar lead to those that are here."
)
# Pages that can show votes which were collected elsewhere, too.
SHOW_IMPORTS = ("", "people", "results", "compare")


@dataclass(frozen=True, kw_only=True)
class FrameContext:
    """Content of the side bar.

    Attributes:
        running: The jobs of the other half, with words, share, left and address.
        changed: A number that is another one after each change of the other half's files.
        groups: Pages of others, by the title above them; addresses are below /studio/.
        imports: What `imported.choices` says of those from elsewhere.
        words: What every term means that a student cannot know, in a sentence or two.
        who: Whose account a session is; None without accounts.
    """

    store: Store
    running: Callable[[], list[Any]] = list
    changed: Callable[[], int] = int
    groups: Groups = field(default_factory=dict)
    imports: Callable[[], Mapping[str, tuple[str, str]]] = dict
    words: Callable[[], Mapping[str, str]] = dict
    who: Who | None = None


def chosen(store: Store) -> Callable[[Any], str]:
    """Return the function that finds the study which a request's address or cookie names, or ""."""

    def of(request: Any) -> str:
        ids = {study.id for study in labelling.list_studies(store)}
        named = request.query_params.get("study"), request.cookies.get(STUDY_COOKIE)
        return next((str(one) for one in named if one in ids), "")

    return of


def in_hand(store: Store) -> Callable[[Any], str]:
    """The function that says which study a request (of Gradio or Starlette) is about: its id.

    The one in the address, else the one chosen last, else the one that a page about votes should
    open with; "" where there is none.
    """

    by_request = chosen(store)

    def of(request: Any) -> str:
        ids = (study.id for study in labelling.list_studies(store))
        return by_request(request) or next(iter([*labelling.voted(store), *ids]), "")

    return of


def there(context: FrameContext) -> Callable[[Request], None]:
    """Return the check that raises `HTTPException` (410) for the address of a study that is gone.

    Without it such an address would show a page of another study.
    """

    def check(request: Request) -> None:
        wanted = set(filter(None, request.query_params.getlist("study")))
        if not wanted or "text/html" not in request.headers.get("accept", ""):
            return
        known = {study.id for study in labelling.list_studies(context.store)}
        if known and not wanted <= known | context.imports().keys():
            raise HTTPException(410, GONE)

    return check


def router(context: FrameContext) -> APIRouter:
    """The side bar, the words it explains, and the page that explains all of them."""
    of = in_hand(context.store)

    def side_bar(request: Request, at: str = "") -> Response:
        chosen = of(request)
        answer = HTMLResponse(_side_bar(context, request, chosen, at))
        answer.headers[PROCESS] = process_name()
        # Minutes, too: pages say how long ago something was.
        news = (*events_so_far(context.store), context.changed(), int(time() / 60))
        answer.headers[NEWS] = "-".join(map(str, news))
        if chosen and request.query_params.get("study") == chosen:
            keep(answer, request, Cookie(STUDY_COOKIE, chosen, 2**25, "/studio"))
        return answer

    def glossary_page() -> Response:
        return JSONResponse(dict(context.words()))

    def help_page(request: Request) -> Response:
        words = sorted(context.words().items(), key=lambda one: one[0].lower())
        return page("help.html", glossary=words, link=str(request.base_url))

    pages: dict[str, Callable[..., Response]] = {
        "frame": side_bar,
        "glossary": glossary_page,
        "help": help_page,
    }
    return routes(get={f"/studio/{path}": answer for path, answer in pages.items()})


def framed(title: str, body: str) -> str:
    """A plain page of the studio around HTML made elsewhere."""
    return fill("framed.html", title=title, content=body)


def _side_bar(context: FrameContext, request: Request, study_id: str, at: str) -> str:
    studies = labelling.list_studies(context.store)
    study = next((one for one in studies if one.id == study_id), None)
    account = context.who and context.who(request.cookies.get(ACCOUNT_COOKIE, ""))
    imports = context.imports() if at.split("/")[0] in SHOW_IMPORTS else {}
    wanted = request.query_params.get("study", "")
    # Where nobody has chosen, Home has people in hand, as Compare has; the demo is not named.
    if at == "" and (study is None or study.spec.simulated) and not chosen(context.store)(request):
        study, wanted = None, wanted or next(iter(imports), "")
    return fill(
        "frame.html",
        groups={**STUDY, **context.groups}.items(),
        studies=studies,
        study=study,
        imports=imports,
        brought=wanted if wanted in imports else "",
        show_imports=SHOW_IMPORTS,
        progress=study and labelling.progress(context.store, study.id),
        at=at,
        running=context.running(),
        account=account,
    )


# ------------------------------------------------------------------ pages on their way out

_BEGIN = b"<head>"
_MANIFEST = b'<link rel="manifest" href="/manifest.json" />'  # Gradio's; there is none


def head() -> bytes:
    """In front of all else on a page, so that the frame stands before the page does."""
    static = rooted(STATIC_URL)
    return (
        f'<link rel="stylesheet" href="{static}/tokens.css">'
        f'<link rel="stylesheet" href="{static}/studio.css">'
        f'<link rel="stylesheet" href="{static}/frame.css">'
        f'<meta name="studio-process" content="{process_name()}"'
        f' data-other="{escape(OTHER_PROCESS)}">'
        f'<script src="{static}/frame.js"></script>'
    ).encode()


class Framed:
    """ASGI: gives pages of the studio their frame, and says what is wrong with a page on one.

    What is not asked for as a page passes as it is, event streams too.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asks = scope["type"] == "http" and scope["method"] in {"GET", "POST"}
        if not asks or "text/html" not in Headers(scope=scope).get("accept", ""):
            await self._app(scope, receive, send)
            return
        held: list[Message] = []  # the start of an answer, until its body says how long it is

        async def framing(message: Message) -> None:
            if message["type"] == "http.response.start":
                held.append(message)
            elif message["type"] == "http.response.body" and held:
                await _send(held.pop(), message, scope, receive, send)
            else:
                await send(message)

        await self._app(scope, receive, framing)


async def _send(
    start: Message, message: Message, scope: Scope, receive: Receive, send: Send
) -> None:
    path, body = bare(scope), message.get("body", b"")
    wrong = _wrong(start, path, body, sent=scope["method"] == "POST")
    if wrong is not None:
        await wrong(scope, receive, send)
        return
    if _is_drawn_by_gradio(start, path, body):
        body = body.replace(_BEGIN, _BEGIN + head(), 1)
        body = body.replace(_MANIFEST, b"", 1)
        start["headers"] = _with_length(start["headers"], len(body))
    await send(start)
    await send({**message, "body": body})


def _kind(start: Message) -> bytes:
    kinds = [value for name, value in start["headers"] if name.lower() == b"content-type"]
    return bytes(kinds[0]) if kinds else b""


def _wrong(start: Message, path: str, body: bytes, *, sent: bool) -> Response | None:
    """The page in place of what only a script can read: that there is none, or what went wrong.

    Args:
        sent: Whether a form was, of which the answer says what is not there.
    """
    if start["status"] < 400 or _kind(start).startswith(b"text/html"):
        return None
    if start["status"] in {404, 405} and not sent:
        return page("missing.html", start["status"], path=path)
    said = _error(body)
    gone = start["status"] == 410  # and will not come back
    return trouble(path, start["status"], said, again=not sent and not gone) if said else None


def _error(body: bytes) -> str:
    """Return the text of {"error": …}, or of a library's {"detail": …}; "" of anything else."""
    try:
        found = json.loads(body)
    except ValueError:
        return ""
    said = found.get("error", found.get("detail")) if isinstance(found, dict) else None
    return said if isinstance(said, str) else ""


def _is_drawn_by_gradio(start: Message, path: str, body: bytes) -> bool:
    studio = path.split("/")[1:2] == ["studio"] and _kind(start).startswith(b"text/html")
    return studio and start["status"] == 200 and b"<gradio-app" in body


def _with_length(headers: list[tuple[bytes, bytes]], n: int) -> list[tuple[bytes, bytes]]:
    others = [(name, value) for name, value in headers if name.lower() != b"content-length"]
    return [*others, (b"content-length", str(n).encode())]
