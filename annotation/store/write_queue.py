"""Turns of this process's threads at writing to an SQLite file.

SQLite has one writer at a time and keeps no order among those who wait: each sleeps and tries
again, the longer it has waited the less often, so that whoever came first may be served last.
"""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from semsim.base.errors import StoreError

LONGEST = 30.0  # seconds that a writer waits for its turn
MOST_PASSED = 20  # who yields lets no more than so many others by in a row
BUSY = (
    "The database could not do this: others have been writing for {:.0f} s. Nothing of it was "
    "kept; do the same again."
)


class Turns:
    """One at a time, in the order they came; those who yield come after all others."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._taken = False
        self._waiting: dict[bool, deque[threading.Event]] = {False: deque(), True: deque()}
        self._passed = 0  # how many went before the first of those who yield

    @contextmanager
    def turn(self, *, yields: bool = False) -> Iterator[None]:
        """Hold the only turn until the end; raises `StoreError` if it does not come."""
        self._take(yields)
        try:
            yield
        finally:
            self._pass_on()

    def _take(self, yields: bool) -> None:
        with self._changing:
            if not self._taken:
                self._taken = True
                return
            mine = threading.Event()
            self._waiting[yields].append(mine)
        if mine.wait(LONGEST):
            return
        with self._changing:
            if not mine.is_set():
                self._waiting[yields].remove(mine)
                raise StoreError(BUSY.format(LONGEST))

    def _pass_on(self) -> None:
        with self._changing:
            first, yielding = self._waiting[False], self._waiting[True]
            self._taken = bool(first or yielding)
            if yielding and (not first or self._passed >= MOST_PASSED):
                self._passed = 0
                yielding.popleft().set()
            elif first:
                self._passed += bool(yielding)
                first.popleft().set()
