"""Reports of progress on disk, one JSON object a line, and the pace they tell."""

import json
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from semsim.base.progress import Progress

_THIN = 0.2  # seconds between two reports of the same sort that are worth keeping
_RECENT = 64 * 1024  # bytes at the end of the file that tell the present pace
_PACE = 60.0  # seconds of work by which the time left is judged


@dataclass(frozen=True)
class TimedProgress(Progress):
    """A progress report and when it was made, in seconds since the epoch."""

    at: float = 0.0


class ProgressWriter:
    """Appends reports to an open file.

    Of reports with the same note and the same names of values only one each 0.2 s is kept, so
    a report that says something new, such as the end of an epoch, is never lost.

    clock: seconds since the epoch, which reports tell. steady: seconds since whenever, by which
        they are thinned, so that a clock set back holds none up.
    """

    def __init__(
        self,
        file: IO[bytes],
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file = file
        self._clock = clock
        self._steady = steady
        self._last: tuple[str, frozenset[str]] | None = None
        self._last_at = 0.0
        _end_line(file)

    def __call__(self, progress: Progress) -> None:
        now = self._steady()
        sort = (progress.note, frozenset(progress.values))
        ends = progress.done >= progress.total
        if ends or sort != self._last or now - self._last_at >= _THIN:
            self._write(progress, self._clock())
            self._last, self._last_at = sort, now

    def _write(self, progress: Progress, now: float) -> None:
        values = {name: float(value) for name, value in progress.values.items()}
        line = {"done": progress.done, "total": progress.total, "note": progress.note}
        text = json.dumps({**line, "values": values, "at": now}, ensure_ascii=False)
        self._file.write(text.encode() + b"\n")
        self._file.flush()


def read_first(path: Path) -> TimedProgress | None:
    """The oldest report in the file at `path`, whose beginning alone is read; None without one."""
    try:
        with open(path, "rb") as file:
            found = _parse(file.read(_RECENT).decode("utf-8", errors="replace"))
    except FileNotFoundError:
        return None
    return found[0] if found else None


def read_recent(path: Path) -> list[TimedProgress]:
    """The reports at the end of the file at `path`: enough to know where it is and its pace."""
    return _parse(read_end(path, _RECENT))


def read_end(path: Path, limit: int = _RECENT) -> str:
    """The last `limit` bytes of a text file, "" where it is missing."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - limit))
            return file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def seconds_left(points: Sequence[TimedProgress]) -> float | None:
    """Seconds from the last of `points` to its total at the pace of the minute before it.

    None while no pace is known, and at the total: what a job does after its last step, such as
    judging what it learned, has none.
    """
    if not points:
        return None
    last = points[-1]
    if last.done >= last.total:
        return None
    # A report from the future is from before the clock was set back.
    recent = [p for p in points if 0 <= last.at - p.at <= _PACE and p.total == last.total]
    steps, seconds = last.done - recent[0].done, last.at - recent[0].at
    if steps <= 0 or seconds <= 0:
        return None
    return (last.total - last.done) * seconds / steps


def _end_line(file: IO[bytes]) -> None:
    """Close a line that a killed run left half written, so that the next starts on its own."""
    if file.seek(0, os.SEEK_END) == 0:
        return
    file.seek(-1, os.SEEK_END)
    if file.read(1) != b"\n":
        file.write(b"\n")


def _parse(text: str) -> list[TimedProgress]:
    return [point for line in text.splitlines() if (point := _point(line)) is not None]


def _point(line: str) -> TimedProgress | None:
    """The report in a line; a line may be half there: a run was killed, or is writing it."""
    try:
        point = TimedProgress(**json.loads(line))
        numbers = [point.done, point.total, point.at, *point.values.values()]
        # A loss may well be infinite or NaN, which a place may not.
        is_right = isinstance(point.note, str) and all(map(math.isfinite, numbers[:3]))
        return point if is_right and all(isinstance(n, int | float) for n in numbers) else None
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        return None
