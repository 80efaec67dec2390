"""Whether a failure is what the work itself says, or only what a machine could not do.

The first is a result: it comes out the same everywhere, so it is kept. The second says nothing of
the work, so it is never kept: memory, disk, a missing package or data set, a worker that died.
"""

import builtins
import re
from collections.abc import Iterable

# Names rather than classes: of failures kept by earlier versions there is only the text.
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
_LAST = re.compile(r"^(?P<name>[A-Za-z_][\w.]*)(?::|$)")
_TRACEBACK = "Traceback (most recent call last):"


def of_the_machine(error: BaseException) -> bool:
    """Whether `error`, raised by some work, or its cause is the machine's."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if _is_known(names, str(error)):
        return True
    return error.__cause__ is not None and of_the_machine(error.__cause__)


def told_of_the_machine(text: str, work: Iterable[str]) -> bool:
    """The same for a failure kept as text: a traceback, perhaps with words before it.

    work: names of the functions that do it; a traceback with none of them never came to it.
    """
    before, found, trace = text.rpartition(_TRACEBACK)
    if not found:
        return False  # the words of the work
    lines = [line for line in trace.splitlines() if line and not line.startswith(" ")]
    last = _LAST.match(lines[0]) if lines else None
    name = last["name"].rpartition(".")[2] if last else ""
    kind = getattr(builtins, name, None)
    names = {one.__name__ for one in kind.__mro__} if isinstance(kind, type) else {name}
    if _is_known(names, "\n".join(lines)):
        return True
    return not any(f"in {name}" in before + trace for name in work)


def _is_known(names: set[str], message: str) -> bool:
    return bool(names & _OF_THE_MACHINE) or bool(_WORDS.search(message))
