"""Independent pieces of work spread over processes of this machine."""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from multiprocessing.context import BaseContext
from typing import TypeVar

import torch

from semsim.errors import SettingsError

Task = TypeVar("Task")


def _fresh() -> BaseContext:
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    copies = multiprocessing.get_context("forkserver")
    copies.set_forkserver_preload(["torch._dynamo", "pandas"])
    return copies


# Never copies of this process, as a GPU cannot be used after a fork; where the machine can, of one
# that has imported the large libraries (torch._dynamo: every optimiser does) and done nothing.
FRESH = _fresh()
_LOOK = 1.0  # seconds between two calls of `tell`, so that a stop asked for is noticed


def each_in_processes(
    work: Callable[[Task], object], tasks: Sequence[Task], workers: int, tell: Callable[[int], None]
) -> None:
    """Call `work` with each task, `workers` at a time, in processes that share the cores.

    work: a function of a module, or a partial of one, that keeps what it makes on disk; it and
        the tasks are pickled.
    tell: called with the number of tasks done, after each and every second.
    What `work` or `tell` raises ends all processes and is raised.
    """
    known = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        max(1, min(workers, len(tasks))),
        mp_context=FRESH,
        initializer=torch.set_num_threads,
        initargs=(max(1, (os.cpu_count() or 1) // workers),),
    )
    try:
        left = {pool.submit(work, task) for task in tasks}
        while left:
            done, left = wait(left, timeout=_LOOK, return_when=FIRST_COMPLETED)
            for one in done:
                one.result()
            tell(len(tasks) - len(left))
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - known:
            process.terminate()
        raise
    pool.shutdown()


def checked_workers(workers: int) -> int:
    """`workers` itself; `SettingsError` where it is not 1 or more."""
    if workers < 1:
        raise SettingsError(f"--workers is 1 or more; got {workers}.")
    return workers
