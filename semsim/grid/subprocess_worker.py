"""Work that needs what is large to import, in a process beside this one that is kept warm."""

import multiprocessing
import os
import signal
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pkgutil import resolve_name
from typing import Any

from semsim.base.errors import JobError

_IDLE = 300.0  # seconds after which a process that nobody asks for anything ends


class WarmProcess:
    """Processes for work beside this one, of which the last one free is kept for what comes next.

    Attributes:
        idle: Seconds after which the kept one ends, so that the memory of torch goes again. A
            caller that asks while it is busy has another one and does not wait. None outlives this
            process.
    """

    def __init__(self, idle: float = _IDLE) -> None:
        self._idle, self._lock = idle, threading.Lock()
        self._free: ProcessPoolExecutor | None = None
        self._timer: threading.Timer | None = None

    def ask(self, where: str, *given: Any) -> Any:
        """As `apart`, always in another process."""
        pool, is_alive = self._taken(), True
        try:
            return pool.submit(_called, where, given).result()
        except BrokenProcessPool:
            is_alive = False
            raise JobError(
                f"The process that was to do {where} ended without a word; is memory full? "
                "Try it again: that starts a new one."
            ) from None
        finally:
            self._keep(pool if is_alive else None)

    def close(self) -> None:
        """End the process that is kept, if there is one."""
        self._keep(None)

    def _taken(self) -> ProcessPoolExecutor:
        with self._lock:
            kept, self._free = self._free, None
        if kept is not None and _is_alive(kept):
            return kept
        spawn = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(1, mp_context=spawn, initializer=_end_with_parent)

    def _keep(self, pool: ProcessPoolExecutor | None) -> None:
        with self._lock:
            before, self._free = self._free, pool
            if self._timer is not None:
                self._timer.cancel()
            self._timer = threading.Timer(self._idle, self.close) if pool is not None else None
            if self._timer is not None:
                self._timer.daemon = True
                self._timer.start()
        if before is not None:
            before.shutdown(wait=False)


_BESIDE = WarmProcess()


def apart(where: str, *given: Any) -> Any:
    """Return the value of the function at `where` ("package.module:name") for `given`.

    It runs in a process beside this one, which takes seconds to start and is kept for some minutes.
    Where torch is imported already, nothing is to be saved, and it runs here. What is given and
    returned is pickled and must not need torch itself. Raises what the function raises, and
    `JobError` where its process dies; the next call starts another.
    """
    if "torch" in sys.modules:
        return resolve_name(where)(*given)
    return _BESIDE.ask(where, *given)


def _is_alive(pool: ProcessPoolExecutor) -> bool:
    try:
        pool.submit(int)
    except BrokenProcessPool:
        return False
    return True


def _end_with_parent() -> None:
    """In the new process: end when the one that started it has, however it did; not by Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # which a terminal sends to both
    threading.Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def _called(where: str, given: tuple[Any, ...]) -> Any:
    return resolve_name(where)(*given)
