"""In front of everything: who may reach which part of the server, and with what headers.

Plain ASGI and not `@app.middleware`, which would hold back Gradio's event streams.
"""

import hmac
import secrets
from collections.abc import Mapping
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from annotation.signin import message_page

ANNOTATOR_COOKIE = "semsim_session"
RESEARCHER_COOKIE = "semsim_researcher"
COOKIE_SECONDS = 30 * 24 * 3600  # a study may take weeks; people should not sign in daily
SIGNED_OUT = "/signed-out"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
SMALL_BODY = 64 * 1024  # bytes; more than any annotation route needs
SMALL_BODY_PATHS = ("api", "join", "sign-out")

# Gradio serves these whether a page needs them or not: fetching any address, handing the access
# token to scripts, proxying, monitoring. No page here needs them.
CLOSED = ("file=http", "proxy=", "token", "vibe", "monitoring", "upload")
CLOSED_ON_LABEL = ("file=", "call", "run", "queue/join")  # that page has no event at all

# Gradio's HTML templates need 'unsafe-eval'. Everything comes from this server, which also works
# without any other network.
POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # links to studies are secrets
}


class Guard:
    """ASGI middleware. Raises nothing: what may not pass is answered here.

    researcher_key: what researchers must present once, as /studio?key=…; None lets everybody who
        reaches the server in, which is right on a loopback address only.
    """

    def __init__(self, app: ASGIApp, researcher_key: str | None) -> None:
        self._app = app
        self._key = researcher_key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})  # no page uses one
        else:
            answer = self._refusal(scope) or self._app
            await answer(scope, receive, _with_headers(send, _headers_for(scope["path"])))

    def _refusal(self, scope: Scope) -> Response | None:
        """What to answer instead of passing the request on."""
        headers = Headers(scope=scope)
        # Whole segments: /labels is not below /label.
        parts = [part for part in scope["path"].split("/") if part]
        if scope["method"] not in SAFE_METHODS:
            if not is_same_origin(headers):
                return _problem(403, "This request comes from another site.")
            if parts and parts[0] in SMALL_BODY_PATHS and _too_long(headers):
                return _problem(413, f"Expected a body of at most {SMALL_BODY} bytes.")
        if parts[:1] == ["studio"]:
            if self._key is not None:
                refusal = self._researcher_refusal(scope, headers, self._key)
                if refusal is not None:
                    return refusal
            return _closed_route(parts[1:], CLOSED)
        if parts[:1] == ["label"]:
            return _annotator_refusal(headers, parts[1:])
        return None

    def _researcher_refusal(self, scope: Scope, headers: Headers, key: str) -> Response | None:
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        offered = dict(query).get("key")
        if offered is not None and scope["method"] == "GET":
            if not _equal(offered, key):
                return _closed_page(403, "That is not the key of this server.")
            return _let_in(scope, [pair for pair in query if pair[0] != "key"], key)
        if _equal(_cookies(headers).get(RESEARCHER_COOKIE, ""), _proof(key)):
            return None
        if "text/html" in headers.get("accept", ""):
            return _closed_page(401, "These pages are for the researchers.")
        return _problem(401, "This is for the researchers; open /studio with the key first.")


def researcher_key(folder: Path, host: str) -> str | None:
    """The secret that opens the researchers' pages from other machines, made once in `folder`.

    None where `host` is a loopback address: whoever reaches the server is on this machine.
    """
    if host in LOOPBACK:
        return None
    path = folder / "researcher.key"
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(24))
    return path.read_text().strip()


def is_same_origin(headers: Mapping[str, str]) -> bool:
    """Whether a request that changes something comes from a page of this very server.

    Both what the browser says itself (Sec-Fetch-Site) and Origin must agree where they are given.
    Neither is for programs other than browsers, which carry nobody's cookies.
    """
    if headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        return False
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc == headers.get("host")


def _annotator_refusal(headers: Headers, rest: list[str]) -> Response | None:
    # Whether the session is still good is for the annotation routes to say.
    if not _cookies(headers).get(ANNOTATOR_COOKIE):
        if rest:
            return _problem(401, "You are not signed in. Open the link of your study.")
        return RedirectResponse(SIGNED_OUT, 303)
    return _closed_route(rest, (*CLOSED, *CLOSED_ON_LABEL))


def _closed_route(rest: list[str], closed: tuple[str, ...]) -> Response | None:
    # Gradio answers at the root of a page as well as below gradio_api.
    if "gradio_api" in rest:
        rest = rest[rest.index("gradio_api") + 1 :]
    return _problem(404, "Not found.") if "/".join(rest).startswith(closed) else None


def _let_in(scope: Scope, query: list[tuple[str, str]], key: str) -> Response:
    # The address without the key, so that it stays out of bookmarks and histories.
    rest = f"?{urlencode(query)}" if query else ""
    response = RedirectResponse("/" + scope["path"].lstrip("/") + rest, 303)
    response.set_cookie(
        RESEARCHER_COOKIE,
        _proof(key),
        max_age=COOKIE_SECONDS,
        path="/studio",
        httponly=True,
        samesite="lax",
        secure=scope["scheme"] == "https",
    )
    return response


def _too_long(headers: Headers) -> bool:
    length = headers.get("content-length")
    if length is None:
        return "transfer-encoding" in headers
    return not length.isdecimal() or int(length) > SMALL_BODY


def _cookies(headers: Headers) -> dict[str, str]:
    try:
        jar: SimpleCookie = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return {}
    return {name: morsel.value for name, morsel in jar.items()}


def _proof(key: str) -> str:
    # Shows that its owner knew the key without being the key.
    return hmac.new(key.encode(), b"researcher", sha256).hexdigest()


def _equal(offered: str, expected: str) -> bool:
    return hmac.compare_digest(offered.encode(), expected.encode())


def _problem(status: int, message: str) -> Response:
    return JSONResponse({"error": message}, status)


def _closed_page(status: int, why: str) -> Response:
    advice = "Open the address with ?key= that the server printed when it started."
    return HTMLResponse(message_page("Researchers only", f"{why} {advice}"), status)


def _headers_for(path: str) -> dict[str, str]:
    # Asked anew each time (and mostly answered "not modified"), so that after an update no browser
    # mixes old and new scripts.
    return {**HEADERS, "Cache-Control": "no-cache"} if path.startswith("/static/") else HEADERS


def _with_headers(send: Send, headers: Mapping[str, str]) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(headers)
        await send(message)

    return send_with_headers
