"""Which web server in front is believed when it says for whom it asks."""

import argparse
from collections.abc import Sequence
from ipaddress import ip_network

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware


class Proxies:
    """ASGI middleware: X-Forwarded-* counts if it comes from `trusted`, else it is taken out.

    trusted: addresses or networks of web servers in front; none is trusted by itself, not even
        one on this machine. What a trusted one says becomes the client's address and the scheme.
    """

    def __init__(self, app: ASGIApp, trusted: Sequence[str]) -> None:
        self._app = app
        self._believing = ProxyHeadersMiddleware(app, list(trusted))  # type: ignore[arg-type]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope.get("client")
        if client and client[0] in self._believing.trusted_hosts:
            await self._believing(scope, receive, send)  # type: ignore[arg-type]
            return
        if "headers" in scope:
            kept = [(name, value) for name, value in scope["headers"] if not _is_forwarded(name)]
            scope = {**scope, "headers": kept}
        await self._app(scope, receive, send)


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


def add_option(parser: argparse.ArgumentParser) -> None:
    """Let a command be told whom to believe."""
    parser.add_argument(
        "--trusted-proxy",
        metavar="ADDRESS",
        type=proxy,
        action="append",
        default=[],
        help="web server in front whose X-Forwarded-For and -Proto are believed; may be repeated",
    )


def serve(app: ASGIApp, host: str, port: int, trusted: Sequence[str]) -> None:
    """Serve until stopped; `Proxies` alone decides who is believed."""
    served = Proxies(app, trusted)
    uvicorn.run(served, host=host, port=port, log_level="warning", proxy_headers=False)
