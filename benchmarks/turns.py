"""How contestants take turns on the same work, and whether that work is the same."""

import time
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

ALIKE = 1e-3  # how far the slope may lie from the plain one's, of its length: a few kinks of ReLUs


def seconds(work: Callable[[], object], device: str) -> float:
    on_gpu = device != "cpu"
    clock = time.perf_counter if on_gpu else time.process_time
    if on_gpu:
        torch.cuda.synchronize()
    start = clock()
    work()
    if on_gpu:
        torch.cuda.synchronize()
    return clock() - start


def interleaved(
    works: Mapping[str, Callable[[], object]], rounds: int, device: str
) -> list[dict[str, float]]:
    for work in works.values():
        work()
    return [{name: seconds(work, device) for name, work in works.items()} for _ in range(rounds)]


def off(found: tuple[Tensor, Tensor], plain: tuple[Tensor, Tensor]) -> float:
    """How far values and slopes lie from the plain ones, of their length; the larger."""
    return max(float((a - b).norm() / b.norm()) for a, b in zip(found, plain, strict=True))
