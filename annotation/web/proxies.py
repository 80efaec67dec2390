"""Web servers in front that are believed when they name the client for whom they ask."""

import argparse
import logging
import os
import socket
from collections.abc import Sequence
from ipaddress import ip_network

import typer
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from annotation.web import connections
from annotation.web.root_path import ROOT_PATH, Below, root_path, rooted
from annotation.web.templates import reached_at

log = logging.getLogger(__name__)
PUBLIC_HOST = "SEMSIM_PUBLIC_HOST"  # what a trusted web server is asked for, whatever it says
_HOST = b"x-forwarded-host"


class Proxies:
    """ASGI middleware: X-Forwarded-* counts if it comes from `trusted`, else it is taken out.

    Attributes:
        trusted: Addresses or networks of web servers in front; none is trusted by itself, not even
            one on this machine. What a trusted one says becomes the client's address, the scheme
            and the host, the last host where several web servers have named one.
    """

    def __init__(self, app: ASGIApp, trusted: Sequence[str]) -> None:
        self._app = app
        self._believing = ProxyHeadersMiddleware(app, list(trusted))  # type: ignore[arg-type]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope.get("client")
        if client and client[0] in self._believing.trusted_hosts:
            scope = _with_host(scope)
            await self._believing(scope, receive, send)  # type: ignore[arg-type]
            return
        if "headers" in scope:
            kept = [(name, value) for name, value in scope["headers"] if not _is_forwarded(name)]
            scope = {**scope, "headers": kept}
        await self._app(scope, receive, send)


def _with_host(scope: Scope) -> Scope:
    """The request with the host that the web server in front was asked for, if it says so."""
    named = [value for name, value in scope["headers"] if name.lower() == _HOST]
    named += [one.encode() for one in (os.environ.get(PUBLIC_HOST),) if one]
    if not named:
        return scope
    others = [one for one in scope["headers"] if one[0].lower() not in (b"host", _HOST)]
    host = named[-1].rpartition(b",")[2].strip()
    return {**scope, "headers": [(b"host", host), *others]}


def _is_forwarded(name: bytes) -> bool:
    lower = name.lower()
    return lower == b"forwarded" or lower.startswith(b"x-forwarded-")


def proxy(text: str) -> str:
    """`text` if it is an address or a network; else `argparse.ArgumentTypeError`."""
    try:
        ip_network(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"expected an address or a network, such as 127.0.0.1 or 10.0.0.0/8; {error}"
        ) from None
    return text


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let a command be told of web servers in front: whom to believe, and the path they add."""
    parser.add_argument(
        "--trusted-proxy",
        metavar="ADDRESS",
        type=proxy,
        action="append",
        default=[],
        help="web server in front whose X-Forwarded-For, -Proto and -Host are believed; may be "
        "repeated",
    )
    parser.add_argument(
        "--root-path",
        metavar="PATH",
        type=root_path,
        default=os.environ.get(ROOT_PATH, ""),
        help=f"path a web server in front shows this one below, such as /semsim [{ROOT_PATH}]",
    )


def _own_address() -> str:
    """Return the address by which a network knows this machine, else its name."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        if probe.connect_ex(("192.0.2.1", 9)):  # nothing is sent
            return socket.gethostname()
        return str(probe.getsockname()[0])


def serve(app: ASGIApp, host: str, port: int, trusted: Sequence[str]) -> None:
    """Say where, and serve until stopped; Ctrl-C is raised again.

    `Proxies` alone decides who is believed.
    """
    shown = f"[{host}]" if ":" in host else host
    where = f":{port}{rooted('/studio/')}"
    others = f"http://{_own_address()}{where}" if host in ("0.0.0.0", "::") else ""
    reached_at(others)
    typer.echo(f"SemSim Studio: http://{shown}{where}" + (others and f", for others {others}"))
    served = Proxies(Below(app), trusted)
    server = uvicorn.Server(
        uvicorn.Config(
            served,
            host=host,
            port=port,
            log_config=None,  # as all others log, see `logs`
            log_level="warning",
            proxy_headers=False,
            **connections.settings(behind_proxy=bool(trusted)),
        )
    )
    log.info("The server starts at %s:%d.", host, port)
    try:
        server.run()
    finally:
        log.info("The server has stopped.")
    if not server.started:
        raise SystemExit(1)  # it has said why
