"""Log of the studio: on the terminal and in a file, and of the requests that came, if asked for.

No line identifies a person: of a request it holds neither address, cookie nor query. Of the path
it holds only parts in which no link to a study or account can stand.
"""

import argparse
import logging
import time
from logging.handlers import RotatingFileHandler
from pathlib import Path

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from annotation.web.root_path import bare

ACCESS = "annotation.access"
BYTES, FILES = 10_000_000, 5  # of a file, and of older ones that are kept
# Below these the next part of a path names a page or a file; elsewhere it may be a secret.
NAMED = ("studio", "static", "api")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let a command be told how much it says, and where."""
    parser.add_argument("-v", "--verbose", action="count", default=0, help="say more; -vv most")
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="print errors and the address only"
    )
    parser.add_argument("--log-file", type=Path, metavar="FILE", help="keep a log in this file too")
    parser.add_argument(
        "--access-log", action="store_true", help="a line for each request, without names or links"
    )


def _file_handler(path: Path) -> RotatingFileHandler:
    try:
        return RotatingFileHandler(path, maxBytes=BYTES, backupCount=FILES, encoding="utf-8")
    except OSError as error:
        raise OSError(
            f"{path} cannot be written ({error.strerror}). Name another file with --log-file."
        ) from error


def begin(options: argparse.Namespace) -> None:
    """Log as the options say; `OSError` where the file cannot be written.

    The terminal gets warnings, with -v more and with -q errors only; the file gets what happens
    besides (INFO), with -v also the details (DEBUG). A full file is put aside, five are kept.
    """
    level = logging.ERROR if options.quiet else max(30 - 10 * options.verbose, logging.DEBUG)
    terminal = logging.StreamHandler()
    terminal.setLevel(level)
    handlers: list[logging.Handler] = [terminal]
    if options.log_file is not None:
        file = _file_handler(options.log_file)
        file.setLevel(logging.DEBUG if options.verbose else logging.INFO)
        handlers.append(file)
    layout = logging.Formatter("%(asctime)sZ %(levelname)s %(name)s: %(message)s")
    layout.converter = time.gmtime
    for one in handlers:
        one.setFormatter(layout)
        logging.getLogger().addHandler(one)
    for half in map(logging.getLogger, ("annotation", "semsim")):
        half.handlers.clear()  # as commands that do not serve show it
        half.setLevel(min(one.level for one in handlers))
    access = logging.getLogger(ACCESS)
    access.setLevel(logging.INFO if options.access_log else logging.CRITICAL)
    if options.access_log and options.log_file is None:
        shown = logging.StreamHandler()
        shown.setFormatter(layout)
        access.addHandler(shown)
        access.propagate = False


class Accessed:
    """ASGI middleware: logs method, path, status and milliseconds of each request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._log = logging.getLogger(ACCESS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self._log.isEnabledFor(logging.INFO):
            await self._app(scope, receive, send)
            return
        begun, status = time.monotonic(), 0

        async def noting(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        asked = f"{scope['method']} {without_secrets(bare(scope))}"
        try:
            await self._app(scope, receive, noting)
        finally:
            self._log.info("%s %d %.0f ms", asked, status, 1000 * (time.monotonic() - begun))


def without_secrets(path: str) -> str:
    """Return a path as it may be kept: its first part, and the second where it names something."""
    parts = [part for part in path.split("/") if part]
    kept = parts[: 2 if parts[:1] and parts[0] in NAMED else 1]
    safe = [part if part.isascii() and part.isprintable() else "?" for part in kept]
    return "/" + "/".join([*safe, *(["…"] if len(parts) > len(kept) else [])])
