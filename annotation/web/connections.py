"""Connections: limits on open ones, from one address and in all, and on how long one is silent.

A connection costs a descriptor before its client has asked for anything. The descriptors of this
process are therefore shared out before they are gone.
"""

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

log = logging.getLogger(__name__)
SILENT = 20.0  # seconds: for a request's head as a whole, and between two parts of its body
DESCRIPTORS = 65_536  # as many as are wanted, where the system allows them
OTHERS = 256  # descriptors kept for files, the database and jobs
BACKLOG = 128  # connections that the system accepts ahead, fewer than `OTHERS`
NOTED = 60.0  # seconds between two lines of the log, and for which /health tells


def raise_limit() -> int:
    """Let this process open as many files as the system allows it; returns how many that are."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):  # macOS allows less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


@dataclass
class Door:
    """Count who is connected, and who was shown out.

    Attributes:
        most: Connections in all, at which the one that has been silent longest goes for each that
            comes.
        most_each: Likewise, of one address; None where a web server in front is the address of all.
        silent: As `SILENT`.
    """

    most: int = DESCRIPTORS
    most_each: int | None = None
    silent: float = SILENT
    open: Counter[str] = field(default_factory=Counter)  # by address
    waiting: "dict[Connection, None]" = field(default_factory=dict)  # without a request, by age
    closed: Counter[str] = field(default_factory=Counter)  # by reason, since `_since`
    _since: float = float("-inf")

    def set_up(self, descriptors: int, *, behind_proxy: bool) -> None:
        """Share out `descriptors`: to all connections together, and a third of that to each."""
        self.most = max(descriptors - OTHERS, descriptors // 2)
        self.most_each = None if behind_proxy else max(1, self.most // 3)

    def admits(self, address: str) -> bool:
        """Tell whether one more may come from an address, for which another may have to go."""
        if self.most_each is not None and self.open[address] >= self.most_each:
            self.note(f"more than {self.most_each:,} from one address")
            return self._make_room(one for one in self.waiting if one.address == address)
        if self.open.total() >= self.most:
            self.note(f"{self.most:,} were open")
            return self._make_room(iter(self.waiting))
        return True

    @staticmethod
    def _make_room(waiting: "Iterator[Connection]") -> bool:
        """End the first of `waiting`; whether there is one."""
        longest = next(waiting, None)
        if longest is not None:
            longest.end()
        return longest is not None

    def note(self, why: str) -> None:
        """Count a connection that is closed, and log a first one of a minute."""
        now = time.monotonic()
        first = now - self._since > NOTED
        if first:
            self._since, before = now, self.closed.total()
            self.closed.clear()
            also = f" {before:,} were in the minute before such a line." if before else ""
            log.warning("Connections are closed: %s.%s See /health.", why, also)
        self.closed[why] += 1

    def told(self) -> str:
        """Return "ok", or how many connections were closed lately and why."""
        if time.monotonic() - self._since > NOTED:
            return "ok"
        return "; ".join(f"{n:,} closed: {why}" for why, n in sorted(self.closed.items()))


DOOR = Door()  # of this process


class Connection(HttpToolsProtocol):
    """A connection that is closed where a request does not come on."""

    door = DOOR
    address = ""
    _counted = False
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Let it in, or close it at once."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        if not self.door.admits(self.address):
            transport.abort()
            return
        self._counted = True
        self.door.open[self.address] += 1
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take what came; a head has its time as a whole, a body from part to part."""
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:  # a part of a head
            if self._timer is None:
                self._wait()
            return
        self._stop_waiting()
        if self.cycle.more_body:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Make room for another."""
        super().connection_lost(exc)
        self._stop_waiting()
        self._leave()

    def on_response_complete(self) -> None:
        """Wait for the next request; uvicorn closes a connection on which nothing of one comes."""
        super().on_response_complete()
        self._stop_waiting()

    def end(self) -> None:
        """Close it without an answer, and count it no more."""
        self._stop_waiting()
        self._leave()
        self.transport.abort()

    def _leave(self) -> None:
        if self._counted:
            self._counted = False
            self.door.open[self.address] -= 1
            if not self.door.open[self.address]:
                del self.door.open[self.address]

    def _wait(self) -> None:
        self.door.waiting[self] = None
        self._timer = self.loop.call_later(self.door.silent, self._give_up)

    def _stop_waiting(self) -> None:
        self.door.waiting.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        if self.flow.read_paused:  # it is us who do not read
            self._wait()
            return
        self.door.note(f"no request came within {self.door.silent:g} s")
        self.end()


def settings(*, behind_proxy: bool) -> dict[str, Any]:
    """Return what `uvicorn.Config` takes for all this; the limit of this process is raised."""
    DOOR.set_up(raise_limit(), behind_proxy=behind_proxy)
    return {"http": Connection, "backlog": BACKLOG}
