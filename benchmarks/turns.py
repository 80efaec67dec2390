"""How contestants take turns on the same work, and whether that work is the same."""

import time
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from benchmarks.measuring import peak
from semsim.device import now_on

ALIKE = 1e-3  # how far the slope may lie from the plain one's, of its length: a few kinks of ReLUs


def now(device: str) -> float:
    """CPU seconds of this process; for a GPU those of the clock, once it has computed all."""
    return time.process_time() if device == "cpu" else now_on(torch.device(device))


def memory(device: str) -> float:
    """The most memory that this process has held, in MiB; on a GPU what torch has held of its."""
    return peak() if device == "cpu" else torch.cuda.max_memory_allocated(device) / 2**20


def of_what(device: str) -> str:
    """What `now` counts, in words."""
    return "CPU seconds" if device == "cpu" else f"seconds on {torch.cuda.get_device_name(device)}"


def seconds(work: Callable[[], object], device: str) -> float:
    start = now(device)
    work()
    return now(device) - start


def interleaved(
    works: Mapping[str, Callable[[], object]], rounds: int, device: str
) -> list[dict[str, float]]:
    for work in works.values():
        work()
    return [{name: seconds(work, device) for name, work in works.items()} for _ in range(rounds)]


def off(found: tuple[Tensor, Tensor], plain: tuple[Tensor, Tensor]) -> float:
    """How far values and slopes lie from the plain ones, of their length; the larger."""
    return max(float((a - b).norm() / b.norm()) for a, b in zip(found, plain, strict=True))
