"""Counting failures, so that guessing a password takes longer than anybody has."""

from collections import deque
from threading import Lock

MOST_KEYS = 10_000  # forget the one that failed longest ago rather than grow without end


class Attempts:
    """At most `limit` failures per key within `seconds`; in memory, safe between threads."""

    def __init__(self, limit: int = 5, seconds: float = 60.0) -> None:
        self.limit = limit
        self.seconds = seconds
        self._failures: dict[str, deque[float]] = {}  # the one that failed last comes last
        self._lock = Lock()

    def exhausted(self, key: str, now: float) -> bool:
        """Whether `key` has to wait; `now` in seconds on any clock that never goes back."""
        with self._lock:
            return self._full(key, now)

    def fail(self, key: str, now: float) -> None:
        """Note one failure of `key`."""
        with self._lock:
            self._note(key, now)

    def begin(self, key: str, now: float) -> bool:
        """Whether `key` may try now; counts as a failure until `forgive`.

        In one step, so that many tries at the same moment are not all let through.
        """
        with self._lock:
            if self._full(key, now):
                return False
            self._note(key, now)
            return True

    def forgive(self, key: str) -> None:
        """Take the last failure of `key` back: it was none."""
        with self._lock:
            failures = self._failures.get(key)
            if failures:
                failures.pop()

    def _note(self, key: str, now: float) -> None:
        failures = self._failures.pop(key, deque())
        if len(self._failures) >= MOST_KEYS:
            del self._failures[next(iter(self._failures))]
        failures.append(now)
        self._failures[key] = failures

    def _full(self, key: str, now: float) -> bool:
        failures = self._failures.get(key, deque())
        while failures and failures[0] <= now - self.seconds:
            failures.popleft()
        if not failures:
            self._failures.pop(key, None)
        return len(failures) >= self.limit
