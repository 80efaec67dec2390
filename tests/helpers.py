"""What every test may use."""

import inspect
import os
import runpy
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

Errors = type[Exception] | tuple[type[Exception], ...]


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
