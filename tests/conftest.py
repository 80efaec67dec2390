"""What holds for every test."""

import gc
import os
import shlex
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import copied_worker
import copies
import pytest
from filelock import FileLock
from helpers import ROOT, RUN, limit
from hypothesis import settings
from programs import summary

from semsim.base.storage.ports import reserved_port

# There is one worker a core already; threads would wait for each other. Before torch is imported.
os.environ["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS") or "1"

# The same 40 examples every time, and no deadline: a busy machine must not fail a test.
settings.register_profile("steady", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("steady")

# Longer than any single wait of a test: what hangs fails, and says where.
os.environ["PYTEST_TIMEOUT"] = str(limit(600))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return what `-n auto` means: more than cores, as browsers, jobs and databases are waited for.

    One more keeps two cores busy; each takes 8 seconds of a core to collect the tests.
    """
    return (os.cpu_count() or 1) + 1


def pytest_configure(config: pytest.Config) -> None:
    """Let all workers have their processes copied of one."""
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        os.environ[copies.SHARED] = copies.start()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(specs: Sequence[Any]) -> None:
    """Let each worker begin as a copy: one process imports the libraries of all."""
    for spec in specs:
        spec.python = shlex.join([sys.executable, "-S", copied_worker.__file__])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for garbage in what the tests make alone: what is imported stays, and is large."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let one worker a file rewrite its asserts; the others read what that one has kept."""
    with _own_turn(collector.path) if isinstance(collector, pytest.Module) else nullcontext():
        return (yield)


def _own_turn(path: Path) -> FileLock:
    """Return the lock of a test file, of all processes that collect it in this checkout."""
    place = ROOT / ".pytest_cache" / "collected"
    place.mkdir(parents=True, exist_ok=True)
    name = "-".join(path.relative_to(ROOT).parts)
    return FileLock(place / f"{name}.lock", poll_interval=0.005)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import files of which nothing is asked: every process reads all of them."""
    place = collection_path.relative_to(ROOT).as_posix() + "/" * collection_path.is_dir()
    asked = config.option.markexpr
    if asked == "not slow":
        return True if place in RUN["slow"] else None
    if asked == "slow" and place.endswith(".py"):
        holds = any(one.startswith(place) or place.startswith(one) for one in RUN["slow"])
        return None if holds else True
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow, and put the longest files first; within a file nothing changes."""
    slow = tuple(RUN["slow"])
    for item in items:
        if item.nodeid.startswith(slow):
            item.add_marker("slow")
    items.sort(key=lambda item: _place(item.nodeid.partition("::")[0]))


@cache
def _place(name: str) -> int:
    first = RUN["longest"]
    return next((n for n, part in enumerate(first) if name.startswith(part)), len(first))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Name each program that is missing once, with what installs it."""
    skipped = terminalreporter.stats.get("skipped", ())
    if lines := summary([str(report.longrepr) for report in skipped]):
        terminalreporter.section("skipped, as a program is missing")
        terminalreporter.write("".join(f"{line}\n" for line in lines))


@pytest.fixture(autouse=True, scope="session")
def _declared_json() -> Iterator[None]:
    """Whatever a test lets a command print as JSON has the parts, fields and types declared."""
    from json_parts import differing, words_now

    from semsim.base.cli import console

    finite = console.finite

    def checked(parts: Any) -> Any:
        assert differing(finite(parts), words_now()) == []
        return finite(parts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(console, "finite", checked)
        yield


@pytest.fixture
def port() -> Iterator[int]:
    """A port that nobody else gets."""
    with reserved_port() as number:
        yield number


@pytest.fixture
def one_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bundles draw the first of their figures alone."""
    from semsim.reporting import bundle

    drawn = bundle.figures
    monkeypatch.setattr(bundle, "figures", lambda analysis: drawn(analysis)[:1])


@pytest.fixture
def unsteady(monkeypatch: pytest.MonkeyPatch) -> type:
    """The store elsewhere of `made_remote`, empty and well."""
    from made_remote import Unsteady  # with fsspec

    monkeypatch.setattr(Unsteady, "gone", "")
    Unsteady.reads.clear()
    Unsteady.store.clear()
    return Unsteady


@pytest.fixture(scope="module")
def unpinned() -> Iterator[None]:
    """Let small copies of public sources pass, whose tables are not the known ones."""
    from semsim.people import Source

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Source, "checked", lambda source, place: {})
        yield
