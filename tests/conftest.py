"""What holds for every test."""

import gc
import os
from collections.abc import Generator

import pytest
from hypothesis import settings

# There is one worker a core already; threads would wait for each other. Before torch is imported.
os.environ["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS") or "1"

# The same examples every time, and no deadline: a busy machine must not fail a test.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")

# Files that take longest start first, or one worker is left with them at the end.
LONGEST = (
    "e2e/test_whole_path",
    "test_docs",
    "e2e/",
    "campaign/test_demo",
    "contracts/test_store",
    "campaign/",
    "test_routes",
    "test_blinding",
    "semsim/ui/",
    "semsim/reproduce/",
    "test_package",
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """What `-n auto` means: browsers and databases leave a core idle, so one more than cores."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for garbage in what the tests make alone: what is imported stays, and is large."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first; within a file nothing changes."""
    items.sort(key=lambda item: _place(item.path.as_posix()))


def _place(path: str) -> int:
    return next((place for place, part in enumerate(LONGEST) if part in path), len(LONGEST))
