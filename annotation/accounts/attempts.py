"""Slowing failures down, so that guessing a password takes longer than an attacker has.

No user is shut out for what others did: a user who has to wait waits for seconds. Only users who
share a key (such as a name and an address) wait for each other. Failures are counted in the
database, so that all servers on it count together and a restart forgets none.
"""

import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, dataclass, field
from ipaddress import IPv6Address, ip_address
from threading import Lock

import anyio
from anyio import to_thread

from annotation.errors import AnnotationError, SignInError
from annotation.store import Store, passwords

FREE = 5  # tries before the first wait
SECONDS = 600.0  # a failure is forgotten after so long
LONGEST = 30.0  # seconds of the longest wait
CROWD = 8  # tries of one key at once
_IPV6_NETWORK = 2**64  # one customer's part of the addresses, at least


class TooManyError(AnnotationError):
    """More tries of one kind at once than a user makes who knows the password."""


@dataclass(frozen=True, kw_only=True)
class Clock:
    """Seconds since 1970, the same for all servers, and how to let some of them pass."""

    now: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep


CLOCK = Clock()


@dataclass(eq=False)
class Attempts:
    """Tries by key, counted in a database; safe between threads and servers.

    The first `free` within `seconds` are free; the next one waits a second, the one after that two,
    then four, up to `longest`. A try that succeeds clears its key. Of one server alone is how many
    are under way at once.

    Attributes:
        kind: What the keys are of; the same key of another kind is another.
    """

    store: Store
    kind: str
    _: KW_ONLY
    free: int = FREE
    seconds: float = SECONDS
    longest: float = LONGEST
    crowd: int = CROWD
    clock: Clock = CLOCK
    _under_way: Counter[str] = field(default_factory=Counter, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def begin(self, key: str) -> float:
        """0 if `key` may try now, which counts as a failure until `forgive`; else seconds to wait.

        In one step, so that many tries at the same moment are not all let through.
        """
        now, name = self.clock.now(), self._name(key)
        return self.store.write(
            lambda tx: passwords.begin_try(tx, name, now, self.seconds, self._wait)
        )

    def forgive(self, key: str) -> None:
        """Forget the tries of `key`: the last one was right."""
        self.store.write(lambda tx: passwords.forget_tries(tx, self._name(key)))

    def _name(self, key: str) -> str:
        return f"{self.kind}\n{key}"

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        """One try of `key`, after the wait it takes; `SignInError` inside says that it failed.

        Raises `TooManyError` if `crowd` others are under way.
        """
        with self._lock:
            if self._under_way[key] >= self.crowd:
                raise TooManyError.of("too_many")
            self._under_way[key] += 1
        try:
            while wait := await to_thread.run_sync(self.begin, key):
                await self.clock.sleep(wait)
            failed = False
            try:
                yield
            except SignInError:
                failed = True
                raise
            finally:
                if not failed:
                    with anyio.CancelScope(shield=True):  # whoever has gone has not failed
                        await to_thread.run_sync(self.forgive, key)
        finally:
            with self._lock:
                self._under_way[key] -= 1
                if not self._under_way[key]:
                    del self._under_way[key]

    def _wait(self, tries: Sequence[float], now: float) -> float:
        over = len(tries) - self.free
        if over < 0:
            return 0.0
        pause = self.longest if over > 30 else min(2.0**over, self.longest)
        # A clock that was put back makes nobody wait longer.
        return min(pause, max(0.0, tries[-1] + pause - now))


def place_of(address: str) -> str:
    """Return the key to count tries from `address` by: of IPv6 the network of one person."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return address
    if parsed.ipv4_mapped:  # as some proxies write all others
        return str(parsed.ipv4_mapped)
    return f"{int(parsed) // _IPV6_NETWORK:x}::"
