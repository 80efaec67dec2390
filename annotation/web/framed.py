"""Frame of every page on its way out, and a page where there is none."""

import json
from html import escape

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from annotation.web import this_process
from annotation.web.root_path import bare, rooted
from annotation.web.templates import STATIC_URL, page

_BEGIN = b"<head>"
_MANIFEST = b'<link rel="manifest" href="/manifest.json" />'  # Gradio's; there is none


def head() -> bytes:
    """In front of all else on a page, so that the frame stands before the page does."""
    static = rooted(STATIC_URL)
    return (
        f'<link rel="stylesheet" href="{static}/tokens.css">'
        f'<link rel="stylesheet" href="{static}/studio.css">'
        f'<link rel="stylesheet" href="{static}/frame.css">'
        f'<meta name="studio-process" content="{this_process.name()}"'
        f' data-other="{escape(this_process.OTHER)}">'
        f'<script src="{static}/frame.js"></script>'
    ).encode()


def trouble(path: str, status: int, text: str, *, again: bool = True) -> Response:
    """A page that says what went wrong with `path`; with the studio around it where it is one.

    again: whether to offer the same address once more.
    """
    if path.split("/")[1:2] == ["studio"]:
        return page("trouble.html", status, text=text, again=again)
    return page("message.html", status, title="That did not work", text=text)


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

    sent: whether a form was, of which the answer says what is not there.
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
