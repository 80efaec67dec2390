"""The path below which a web server in front shows this one, such as "/semsim"; "" for none.

Whatever leaves the server as an address (in a page, a redirect, a cookie's path, JSON) is made by
`rooted`; `Below` takes the path away again from what comes in, so that no route knows of it. It is
one for the whole process, as pages are also put together where no request is at hand, and lies in
the environment, where `semsim.lab.markup.rooted` finds it as well. Scripts see from their own
address where they are (`static/root.js`).
"""

import argparse
import os
import re

from starlette.types import ASGIApp, Receive, Scope, Send

ROOT_PATH = "SEMSIM_ROOT_PATH"  # the environment variable
_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*")


def rooted(address: str) -> str:
    """An address on this server, such as "/studio/", as a browser has to ask for it."""
    return os.environ.get(ROOT_PATH, "") + address


def bare(scope: Scope) -> str:
    """The path that a request asks for, without what this server lies below."""
    path: str = scope["path"]
    return path.removeprefix(rooted("")) or "/"


def root_path(text: str) -> str:
    """`text` without a slash at its end if it can be such a path; else `ArgumentTypeError`."""
    path = text.rstrip("/")
    if not _PATH.fullmatch(path) or {".", ".."} & set(path.split("/")):
        raise argparse.ArgumentTypeError(f"expected a path such as /semsim; got {text!r}")
    return path


class Below:
    """ASGI middleware: what comes in is at its place below the root path, as ASGI wants it.

    The web server in front may leave the path in front of an address or take it away.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        root = rooted("")
        if root and "path" in scope:
            path = scope["path"]
            inside = path == root or path.startswith(f"{root}/")
            whole = path if inside else root + path
            whole = f"{root}/" if whole == root else whole
            scope = {**scope, "root_path": root, "path": whole}
            scope.pop("raw_path", None)
        await self._app(scope, receive, send)
