"""Ports for servers that this program starts."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SHARED = sys.platform == "linux"


@contextmanager
def reserved_port() -> Iterator[int]:
    """Reserve a TCP port of 127.0.0.1 for a server that starts inside the block.

    A socket stays bound to the port and does not listen, so the system gives the port to no other
    program. On Linux a server that sets SO_REUSEADDR, as servers do, listens there all the same,
    also when it is started again. Elsewhere the port is free, but not reserved.

    Yields:
        The number of the port.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        port = int(held.getsockname()[1])
        if not SHARED:
            held.close()
        yield port
