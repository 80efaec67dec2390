"""Failures of two kinds: of the work itself, or only of a machine that could not do it.

The first is a result: it comes out the same everywhere, so it is kept. The second says nothing of
the work, so it is never kept: memory, disk, a missing package or data set, a worker that died.
"""

import re

# Names rather than classes, whose libraries need not be there.
_OF_THE_MACHINE = {
    *("ImportError", "MemoryError", "OSError"),
    *("PickleError", "UnpicklingError", "PicklingError"),
    *("OutOfMemoryError", "AcceleratorError", "SafetensorError", "BadZipFile"),
    *("KilledWorker", "CommClosedError", "FutureCancelledError", "CancelledError"),
    *("DataError", "PictureError", "WeightsError", "CheckpointError"),
    *("JobError", "UnknownNameError"),
}
# How torch words what it raises as a plain RuntimeError.
_WORDS = re.compile(
    r"out of memory|can't allocate memory|not enough memory|CUDA error|cuDNN error|CUBLAS_STATUS"
    r"|CUDNN_STATUS|NVIDIA driver|No space left",
    re.IGNORECASE,
)


def of_the_machine(error: BaseException) -> bool:
    """Return whether `error`, raised by some work, or its cause is the machine's."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if _is_known(names, str(error)):
        return True
    return error.__cause__ is not None and of_the_machine(error.__cause__)


def _is_known(names: set[str], message: str) -> bool:
    return bool(names & _OF_THE_MACHINE) or bool(_WORDS.search(message))
