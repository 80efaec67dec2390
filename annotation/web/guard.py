"""In front of everything: who may reach which part of the server, and with what headers.

Also which sites may show a page inside one of theirs, and cookies that arrive there.

Plain ASGI and not `@app.middleware`, which would hold back Gradio's event streams.
"""

import os
import secrets
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import quote, unquote_plus, urlencode, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from annotation.accounts.access import ACCOUNT_COOKIE, LOOPBACK, Who
from annotation.domain import Annotator, Role
from annotation.texts import is_fit, sendable
from annotation.web.root_path import bare, rooted
from annotation.web.templates import page, trouble
from semsim.base.errors import SemsimError

ANNOTATOR_COOKIE = "semsim_session"
SIGNED_OUT = "/signed-out"
SIGN_OUT = "/sign-out"
LOGIN = "/login"
LOCAL_ONLY = (
    "Started with --local, this server answers only under a loopback address, such as "
    "http://127.0.0.1, and was asked for under the Host {host!r}. Start it without --local to let "
    "others in."
)
ANOTHER_SITE = "This request comes from another site."
ANOTHER_HOST = (
    "This request comes from another site: from a page of {origin!r}, and its Host is {host!r}. If "
    "these should be one, the web server in front has to pass the Host on as it got it (nginx: "
    "proxy_set_header Host $http_host;), or say it as X-Forwarded-Host and be named with "
    "--trusted-proxy."
)
# Who may reach what lies below; an administrator may do all that a researcher may.
NEEDED = {"studio": Role.RESEARCHER, "account": Role.RESEARCHER, "admin": Role.ADMINISTRATOR}
SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
SMALL_BODY = 64 * 1024  # bytes; more than any route outside the studio needs
STUDIO_BODY = 1024 * 1024  # bytes; the longest form of the studio, several times over

# What a page of Gradio was last drawn with, such as the choices of a list, is known to the process
# that drew it alone. Such a page says with its events which process that is, and another one
# refuses them in words.
PROCESS = "X-Studio-Process"
OTHER_PROCESS = (
    "The studio was started again after it drew this page, and does not take what you do here. "
    "Reload the page. If this comes back without a restart, a web server in front spreads what one "
    "browser asks over several processes: see “Stickiness” in deploy/nginx.conf."
)
FRAMED_BY = "SEMSIM_FRAMED_BY"  # sites that may frame every page of this server
ANCESTORS = "frame-ancestors"
CSP = "Content-Security-Policy"
LABEL_FILE = "worker.js"  # all there is below the labelling page
# Gradio serves these in the studio whether a page needs them or not: fetching any address, handing
# the access token to scripts, taking files, proxying, monitoring. No page here needs them.
CLOSED = (
    "api/",
    "call",
    "component_server",
    "deep_link",
    "dev/",
    "file/",
    "file=http",
    "monitoring",
    "process_recording",
    "proxy=",
    "run-history",
    "runs",
    "stream",
    "token",
    "undo-vibe",
    "upload",
    "vibe",
)

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
FRAMED = "/studio/preview"
SIGN_IN_ELSEWHERE = (
    "Nothing was changed. Sign in in another tab, then go back in this one and send it once more: "
    "your browser keeps what you filled in."
)
# The labelling page is ours alone.
LABEL_POLICY = POLICY.replace(" 'unsafe-inline' 'unsafe-eval'", "").replace(" blob:", "")
HEADERS = {
    CSP: POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # links to studies are secrets
    "Cross-Origin-Resource-Policy": "same-origin",  # no other site shows what annotators see
}
# Whose session a cookie's value is in a study, None if nobody's.
WhoLabels = Callable[[str], Annotator | None]


class Guard:
    """ASGI middleware. Raises nothing: what may not pass is answered here.

    Attributes:
        who: Whose account a session belongs to; None (the option --local) lets every visitor in who
            reaches this server under a loopback address, and is for servers that listen on one
            only.
        annotator: Who is signed in to a study with a session, in either case.
    """

    def __init__(self, app: ASGIApp, who: Who | None, annotator: WhoLabels) -> None:
        self._app = app
        self._who = who
        self._annotator = annotator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})  # no page uses one
        else:
            if scope["method"] == "HEAD":  # a monitor's: what GET says, without what it shows
                scope, send = {**scope, "method": "GET"}, _without_body(send)
            try:
                answer = await self._refusal(scope) or self._app
            except SemsimError as error:  # of who knows whose a session is
                answer = _unwell(scope, error)
            await answer(scope, receive, _with_headers(send, _headers_for(bare(scope))))

    async def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that may not pass; None where it may."""
        headers = Headers(scope=scope)
        # Whole segments: /labels is not below /label.
        parts = [part for part in bare(scope).split("/") if part]
        if self._who is None and not _is_local(headers):
            return problem(403, LOCAL_ONLY.format(host=headers.get("host", "")))
        if not is_fit(scope["path"] + unquote_plus(scope["query_string"].decode("latin-1"))):
            return problem(400, "This address has characters in it that no address here has.")
        refusal = _body_refusal(headers, STUDIO_BODY if parts[:1] == ["studio"] else SMALL_BODY)
        if refusal is not None:
            return refusal
        if scope["method"] not in SAFE_METHODS and not is_same_origin(headers):
            return problem(403, why_foreign(headers))
        if parts[:1] == ["label"]:
            return await _label_refusal(scope, parts[1:], self._annotator)
        if self._who is not None and parts and parts[0] in NEEDED:
            refusal = await _account_refusal(scope, self._who, NEEDED[parts[0]])
            if refusal is not None:
                return refusal
        if parts[:1] == ["studio"]:
            return _closed_route(parts[1:]) or _slash(scope, parts) or _other_process(headers)
        return None


def _is_local(headers: Headers) -> bool:
    # A name of somebody else's that leads here would let their pages read everything.
    try:
        return urlsplit(f"//{headers.get('host', '')}").hostname in LOOPBACK
    except ValueError:
        return False


async def _account_refusal(scope: Scope, who: Who, needed: Role) -> Response | None:
    token = HTTPConnection(scope).cookies.get(ACCOUNT_COOKIE, "")
    account = await run_in_threadpool(who, token) if token else None
    if account is None:
        return _sign_in_first(scope)
    if needed is Role.ADMINISTRATOR and account.role is not needed:
        why = "This page is for administrators."
        if _looks(scope):
            return trouble(bare(scope), 403, why, again=False)
        return problem(403, why)
    return None


def _reads(scope: Scope) -> bool:
    """Return whether a request is for a page, and for no change."""
    return scope["method"] == "GET" and _looks(scope)


def _looks(scope: Scope) -> bool:
    """Return whether a person sees the answer: a browser shows it as a page."""
    return "text/html" in Headers(scope=scope).get("accept", "")


def _unwell(scope: Scope, error: SemsimError) -> Response:
    if _looks(scope):
        return trouble(bare(scope), 503, str(error))
    return problem(503, str(error))


def _sign_in_first(scope: Scope) -> Response:
    if not _reads(scope):
        if _looks(scope):
            return page("message.html", 401, title="You are signed out", text=SIGN_IN_ELSEWHERE)
        return problem(401, "You are not signed in.")
    query = scope["query_string"].decode("latin-1")
    wanted = "/" + bare(scope).lstrip("/") + (f"?{query}" if query else "")
    return RedirectResponse(f"{rooted(LOGIN)}?{urlencode({'next': wanted})}", 303)


def is_same_origin(headers: Mapping[str, str]) -> bool:
    """Return whether a request that changes something comes from a page of this very server.

    Both what the browser says itself (Sec-Fetch-Site) and Origin must agree where they are given.
    Programs other than browsers send neither, and carry no user's cookies.
    """
    if headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        return False
    origin = headers.get("origin")
    try:
        return origin is None or urlsplit(origin).netloc == headers.get("host")
    except ValueError:  # no address at all
        return False


def why_foreign(headers: Mapping[str, str]) -> str:
    """Return the message to a request that is not `is_same_origin`."""
    host, origin = headers.get("host", ""), headers.get("origin", "")
    if headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        return ANOTHER_SITE
    return ANOTHER_HOST.format(origin=sendable(origin), host=sendable(host))


async def _label_refusal(scope: Scope, rest: list[str], annotator: WhoLabels) -> Response | None:
    token = HTTPConnection(scope).cookies.get(ANNOTATOR_COOKIE, "")
    known = await run_in_threadpool(annotator, token) if token else None
    if known is None:
        if rest:
            return problem(401, "You are not signed in. Open the link of your study.")
        return RedirectResponse(rooted(SIGNED_OUT), 303)
    needed = rest in ([], [LABEL_FILE])
    safe = scope["method"] in SAFE_METHODS
    return None if needed and safe else problem(404, "Not found.")


def _closed_route(rest: list[str]) -> Response | None:
    # Gradio answers at the root of a page as well as below gradio_api.
    if "gradio_api" in rest:
        rest = rest[rest.index("gradio_api") + 1 :]
    return problem(404, "Not found.") if "/".join(rest).startswith(CLOSED) else None


def _slash(scope: Scope, parts: list[str]) -> Response | None:
    """The way from an address with a slash at its end, which Gradio sends out of the studio."""
    if not scope["path"].endswith("/") or len(parts) < 2 or not _reads(scope):
        return None
    query = scope["query_string"].decode("latin-1")
    to = quote("/" + "/".join(parts)) + (f"?{query}" if query else "")
    return RedirectResponse(rooted(to), 307)


def _other_process(headers: Headers) -> Response | None:
    drawn_by = headers.get(PROCESS, process_name())
    return None if drawn_by == process_name() else problem(409, OTHER_PROCESS)


@cache
def process_name() -> str:
    """A name of this process that tells nothing about it, among several servers."""
    return secrets.token_hex(8)


def _body_refusal(headers: Headers, most: int) -> Response | None:
    """Return the answer to a body that is too long, of unknown length or with files, else None."""
    length = headers.get("content-length", "0")
    # A limit on the digits, as Python refuses to read very many.
    told = length.isascii() and length.isdecimal() and len(length) < 12
    if "transfer-encoding" in headers or not told or int(length) > most:
        return problem(
            413, f"Expected a body of at most {most} bytes, with its length in the header."
        )
    if headers.get("content-type", "").lower().startswith("multipart/"):
        return problem(415, "Expected a form or JSON; this server takes no files.")
    return None


def problem(status: int, message: str, **more: Any) -> JSONResponse:
    """Return the response that says what went wrong, with what a script needs to know besides."""
    return JSONResponse({"error": sendable(message), **more}, status)


def _headers_for(path: str) -> dict[str, str]:
    if path == FRAMED:  # the page of a new study shows it beside its form
        own = POLICY.replace("frame-ancestors 'none'", "frame-ancestors 'self'")
        return {**HEADERS, CSP: own}
    if path.split("/")[1:2] == ["label"]:
        return {**HEADERS, CSP: LABEL_POLICY}
    if path.startswith("/studio/assets/"):  # Gradio's 60 files of a page: other content, other name
        return {**HEADERS, "Cache-Control": "private, max-age=31536000, immutable"}
    # Asked anew each time (and mostly answered "not modified"), so that after an update no browser
    # mixes old and new scripts.
    return {**HEADERS, "Cache-Control": "no-cache"} if path.startswith("/static/") else HEADERS


def _with_headers(send: Send, headers: Mapping[str, str]) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            found = MutableHeaders(scope=message)
            own = found.get(CSP, "")
            found.update(headers)
            found[CSP] = ancestors(headers[CSP], own)
            page = found.get("content-type", "").startswith("text/html")
            if page or message["status"] > 399:  # nobody goes back to it once signed out, or mended
                found["Cache-Control"] = "no-store"
        await send(message)

    return send_with_headers


def _without_body(send: Send) -> Send:
    async def send_without_body(message: Message) -> None:
        await send({**message, "body": b""} if "body" in message else message)

    return send_without_body


# ------------------------------------------------------------------ inside a page of another site


def framers(own: str) -> str:
    """Return the sites that may frame every page of the server, and those of `own`."""
    return f"{os.environ.get(FRAMED_BY, '')} {own}".strip()


def stranger(request: Request, own: str) -> str:
    """Return the site whose page has this one in a frame and may not; "" where none is known."""
    sent = request.headers
    if sent.get("sec-fetch-dest") != "iframe" or sent.get("sec-fetch-site") != "cross-site":
        return ""
    site = "/".join(sent.get("referer", "").split("/")[:3])
    return "" if any(fnmatchcase(site, one) for one in framers(own).split()) else site


def ancestors(policy: str, own: str) -> str:
    """Return `policy` with the sites that may frame the server, and those that `own` names."""
    sites = framers(own.removeprefix(ANCESTORS).strip())
    if not sites:
        return policy
    return policy.replace(f"{ANCESTORS} 'none'", ANCESTORS) + f" {sites}"  # which stands last


def framable(response: Response, sites: str) -> Response:
    """Let `sites` frame the page; the guard completes the policy."""
    if sites:
        response.headers[CSP] = f"{ANCESTORS} {sites}"
    return response


class Cookie(NamedTuple):
    """A cookie, kept for so many seconds, for the addresses below `path`."""

    name: str
    value: str
    seconds: int
    path: str = "/"


def keep(response: Response, request: Request, cookie: Cookie, sites: str = "") -> None:
    """Set a cookie; in a frame of `sites` it arrives over https alone."""
    safe = request.url.scheme == "https"
    inside = safe and bool(os.environ.get(FRAMED_BY) or sites)
    response.set_cookie(
        cookie.name,
        cookie.value,
        max_age=cookie.seconds,
        path=rooted(cookie.path),
        httponly=True,
        samesite="none" if inside else "lax",
        secure=safe,
    )
    if inside:  # which Starlette writes from Python 3.14 on
        header, written = response.raw_headers[-1]
        response.raw_headers[-1] = (header, written + b"; Partitioned")
