"""Counting failures, so that guessing a password takes longer than anybody has."""

from collections import deque
from threading import Lock

MOST_KEYS = 10_000  # forget everything rather than grow without end


class Attempts:
    """At most `limit` failures per key within `seconds`; in memory, safe between threads."""

    def __init__(self, limit: int = 5, seconds: float = 60.0) -> None:
        self.limit = limit
        self.seconds = seconds
        self._failures: dict[str, deque[float]] = {}
        self._lock = Lock()

    def exhausted(self, key: str, now: float) -> bool:
        """Whether `key` has to wait; `now` in seconds on any clock that never goes back."""
        with self._lock:
            return len(self._recent(key, now)) >= self.limit

    def fail(self, key: str, now: float) -> None:
        """Note one failure of `key`."""
        with self._lock:
            if len(self._failures) >= MOST_KEYS:
                self._failures.clear()
            self._failures.setdefault(key, deque()).append(now)

    def _recent(self, key: str, now: float) -> deque[float]:
        failures = self._failures.get(key, deque())
        while failures and failures[0] <= now - self.seconds:
            failures.popleft()
        if not failures:
            self._failures.pop(key, None)
        return failures
