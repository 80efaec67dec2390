"""Reading pickles of numbers and text from strangers, without running anything in them.

A pickle is a program that may call whatever it can name. This reader lets it name nothing but the
few functions with which NumPy pickles numbers, and answers even those with functions of this
file, so that no code but this runs. Everything else is refused by its name.
"""

import functools
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from semsim.errors import DataError

_DTYPE = re.compile(r"[biuf]\d{1,2}|[US]\d{1,4}")
# What the parser raises for bytes that are no pickle, or a broken one.
_BROKEN = (
    EOFError,
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    OverflowError,
    MemoryError,
    RecursionError,
)


class PickledArray:
    """Stands for a NumPy array in a pickle; `values` is what was in it."""

    values: np.ndarray

    def __init__(self, *_: object) -> None:
        self.values = np.zeros(0)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, fortran, data = state
        self.values = _array(data, dtype, shape, "F" if fortran else "C")


class _PickledDtype:
    """Stands for a NumPy dtype in a pickle: only numbers, truth values and text."""

    def __init__(self, code: str, *_: object) -> None:
        if not _DTYPE.fullmatch(str(code)):
            raise pickle.UnpicklingError(f"numpy values of type {code!r} are refused")
        self.dtype = np.dtype(str(code))

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if state[1] in ("<", ">"):
            self.dtype = self.dtype.newbyteorder(state[1])


def load_plain(path: Path) -> Any:
    """What is pickled in `path`: dict, list, tuple, set, str, bytes, numbers, `PickledArray`.

    Raises `DataError` that names the first function or class that is none of these, before
    anything is called, or says that the file is no pickle.
    """
    try:
        with path.open("rb") as file:
            # Python 2 wrote text as bytes; latin-1 reads any.
            return _PlainUnpickler(file, encoding="latin1").load()
    except (pickle.UnpicklingError, OSError, *_BROKEN) as error:
        raise DataError(f"{path} is not read: {error}") from error


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        known = _KNOWN.get((module.replace("numpy.core", "numpy._core"), name))
        if known is None:
            raise pickle.UnpicklingError(
                f"{module}.{name} refused; a pickle may hold only plain values and NumPy numbers"
            )
        # A new object each time, because a pickle can put attributes on what it has named.
        return functools.partial(known)


def _scalar(dtype: _PickledDtype, data: bytes) -> Any:
    return _array(data, dtype, (), "C").item()


def _from_buffer(data: Any, dtype: _PickledDtype, shape: Any, order: str) -> PickledArray:
    made = PickledArray()
    made.values = _array(data, dtype, shape, order)
    return made


def _array(data: Any, dtype: _PickledDtype, shape: Any, order: str) -> np.ndarray:
    if not isinstance(dtype, _PickledDtype) or not isinstance(data, bytes | bytearray):
        raise pickle.UnpicklingError("a numpy array of something else than numbers refused")
    values = np.frombuffer(bytes(data), dtype.dtype)
    # Raises ValueError where the shape is not that of the data.
    return values.reshape(shape, order="F" if order == "F" else "C")


def _latin1(text: str, encoding: str) -> bytes:
    if encoding != "latin1":  # how protocols before 3 write bytes; no other is needed
        raise pickle.UnpicklingError(f"_codecs.encode to {encoding!r} refused")
    return str.encode(text, "latin-1")


def _no_bytes() -> bytes:
    return b""  # protocols before 3 write it as a call of bytes()


_KNOWN: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "dtype"): _PickledDtype,
    ("numpy", "ndarray"): PickledArray,
    ("numpy._core.multiarray", "_reconstruct"): PickledArray,
    ("numpy._core.multiarray", "scalar"): _scalar,
    ("numpy._core.numeric", "_frombuffer"): _from_buffer,
    ("_codecs", "encode"): _latin1,
    ("__builtin__", "bytes"): _no_bytes,
}
