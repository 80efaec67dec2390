"""What every test may use."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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
