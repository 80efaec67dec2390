"""What a process does with memory that it frees."""

import ctypes
import sys

# Of glibc's <malloc.h>.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4


def keep_freed_memory() -> None:
    """Keep what this process frees for its next need, instead of giving it back to the system.

    glibc maps and unmaps every block above 32 MiB, and a training step of a large network frees
    and needs hundreds of them. Does nothing where the C library is another one.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_MAX, 0)
        mallopt(_TRIM_THRESHOLD, -1)
