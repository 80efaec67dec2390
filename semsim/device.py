"""Hardware of a machine (GPU or none, cores), and what a process does with memory it frees."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from semsim.base.errors import SettingsError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# Of glibc's <malloc.h>.
_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8
_ARENAS = 2


def pick_device(name: str = "auto") -> torch.device:
    """The device called `name`; "auto" is CUDA, else Apple's MPS, else the CPU."""
    import torch  # names of devices are asked for where nothing is computed

    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        if torch.backends.mps.is_available():
            return torch.device("mps")
        return torch.device("cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise SettingsError(f"Device {name!r} cannot be used here: {error}") from error
    return device


def exact_device(device: torch.device) -> torch.device:
    """Return the device for float64 of what is on `device`: itself, or the CPU for Apple's GPUs.

    These have no float64.
    """
    import torch

    return torch.device("cpu") if device.type == "mps" else device


def in_float64(values: Tensor) -> Tensor:
    """The same numbers, of the same shape, in float64, on `exact_device` of where they are."""
    return values.to(exact_device(values.device)).double()


def now_on(device: torch.device) -> float:
    """Seconds by the clock, once `device` has computed all that it was given."""
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
    return time.perf_counter()


def cores() -> int:
    """Cores of this machine, at least 1."""
    return os.cpu_count() or 1


def how_busy() -> str:
    """The load of the last minute; where the system does not count that, that it does not."""
    return f"load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "no known load"


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute in one thread, as each of several workers does."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def keep_freed_memory() -> None:
    """Keep what this process frees for its next need, instead of giving it back to the system.

    glibc maps and unmaps large blocks, and gives back the end of its heap; each step of a training
    or an attack needs them again, which can take as long as the step. Does nothing where the C
    library is another one.
    """
    _tell_malloc({_MMAP_MAX: 0, _TRIM_THRESHOLD: -1})


def few_heaps() -> None:
    """Let the threads of this process allocate from two heaps, to be called before there are any.

    glibc gives threads up to eight heaps a core, each of which keeps what it once needed: a server
    grows by that and never shrinks. Does nothing where the C library is another one.
    """
    _tell_malloc({_ARENA_MAX: _ARENAS})


def _tell_malloc(options: dict[int, int]) -> None:
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option, value in options.items():
            mallopt(option, value)
