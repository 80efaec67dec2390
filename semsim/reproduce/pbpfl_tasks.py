"""Pieces of a long computation that do not wait for each other, on one core or on many."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import torch

from semsim.grid.processes import FRESH
from semsim.progress import Progress, Report, silent


@dataclass(frozen=True, kw_only=True)
class Task:
    """A piece of work: `work` writes `path` last, so that it is done where `path` exists."""

    path: Path
    work: Callable[[], None]
    note: str


def carry_out_all(tasks: Sequence[Task], workers: int = 1, report: Report = silent) -> None:
    """Do all tasks that are not done, in `workers` processes of one thread each.

    One worker is this process. The first failure ends the computation; what was done stays.
    """
    missing = [task for task in tasks if not task.path.exists()]
    done = len(tasks) - len(missing)
    for task in _one_by_one(missing) if workers == 1 else _in_processes(missing, workers):
        done += 1
        report(Progress(done, len(tasks), task.note))


def _one_by_one(tasks: Sequence[Task]) -> Iterator[Task]:
    for task in tasks:
        task.work()
        yield task


def _in_processes(tasks: Sequence[Task], workers: int) -> Iterator[Task]:
    pool = ProcessPoolExecutor(
        workers,
        mp_context=FRESH,
        initializer=_one_thread,
    )
    try:
        running: dict[Future[None], Task] = {pool.submit(task.work): task for task in tasks}
        for future in as_completed(running):
            future.result()
            yield running[future]
    finally:
        pool.shutdown(cancel_futures=True)


def _one_thread() -> None:
    torch.set_num_threads(1)
