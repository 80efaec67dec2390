"""What every test may use."""

import inspect
import os
import runpy
import threading
import time
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

Errors = type[Exception] | tuple[type[Exception], ...]
ROOT = Path(__file__).resolve().parents[1]
# What `make test` leaves to `make test-all`, and what begins first, or one process is left with it
# at the end: files, folders with a slash behind them, or tests in files.
RUN = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["semsim"]
PATIENCE = "SEMSIM_TEST_PATIENCE"  # the environment variable


def limit(seconds: float) -> float:
    """Return how long a test may wait for what takes `seconds` at most on a quiet machine.

    `SEMSIM_TEST_PATIENCE` multiplies every limit, for machines that are slow or busy.
    """
    return seconds * float(os.environ.get(PATIENCE) or 1)


def until(
    holds: Callable[[], Any], seconds: float = 60.0, said: Callable[[], object] = str
) -> None:
    """Wait until `holds()` is true; fail after `limit(seconds)` with what `said()` returns."""
    deadline = time.monotonic() + limit(seconds)
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"still not so after {limit(seconds):g} s: {holds} {said()}")
        time.sleep(0.02)


def ended(job: Any, seconds: float = 120.0) -> Any:
    """Wait until a job has ended, and return its state."""
    from semsim.base.jobs import folders  # psutil, which few tests need

    until(lambda: folders.state(job) not in folders.LIVE, seconds, lambda: folders.log_tail(job))
    return folders.state(job)


def bytes_read(work: Callable[[], Any]) -> int:
    """Return how many bytes this process reads, of files and of pipes, while `work()` runs."""
    import psutil  # which few tests need

    counters = getattr(psutil.Process(), "io_counters", None)
    if counters is None:  # macOS counts none
        pytest.skip("this system does not count what a process reads")
    before = counters().read_chars
    work()
    return int(counters().read_chars - before)


def skip_or_fail(reason: str) -> None:
    """Skip a test whose surroundings are missing; where nothing may be skipped, fail."""
    if os.environ.get("SEMSIM_NO_SKIP"):
        pytest.fail(f"nothing may be skipped here, but: {reason}")
    pytest.skip(reason)


def at_once(*works: Callable[[], Any], refused: Errors = ()) -> list[Any]:
    """What each returned, or raised where that is `refused`, all begun at the same moment."""
    gate = threading.Barrier(len(works))

    def run(work: Callable[[], Any]) -> Any:
        gate.wait()
        try:
            return work()
        except refused as error:
            return error

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(run, works))


def example_of(plugin: Any, **offered: Any) -> Any:
    """Make the small source that a plug-in reads, by `example` of the plug-in's own test.

    That of semsim/datasets/cifar.py is tests/semsim/datasets/test_cifar.py: who adds a plug-in
    brings it along, and what holds for all of them is tested on it. Like a fixture it names what
    it wants of `offered`. Fails where there is none, so that nothing registered goes untested.
    """
    kind = plugin if isinstance(plugin, type) else type(plugin)
    *rooms, module = kind.__module__.split(".")
    path = Path(__file__).parent.joinpath(*rooms, f"test_{module}.py")
    example = runpy.run_path(str(path)).get("example") if path.exists() else None
    if example is None:
        pytest.fail(f"{kind.__name__} has no example: def example(…) in {path}, of {[*offered]}")
    return example(**{name: offered[name] for name in inspect.signature(example).parameters})
