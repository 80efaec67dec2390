"""Reading pickles of numbers and text from strangers, without running anything in them.

A pickle is a program that may call whatever it can name. This reader lets it name nothing but the
few functions with which NumPy pickles numbers, and answers even those with functions of this
file, so that no code but this runs. Everything else is refused by its name.
"""

import functools
import io
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from semsim.errors import DataError
from semsim.importers import pickle_scan

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


_LONGEST_REASON = 300  # letters; a pickle decides what things in it are called


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
        if not isinstance(code, str) or not _DTYPE.fullmatch(code):
            raise pickle.UnpicklingError(f"numpy values of type {_named(code)} are refused")
        self.dtype = np.dtype(code)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if state[1] in ("<", ">"):
            self.dtype = self.dtype.newbyteorder(state[1])


def load_plain(path: Path) -> Any:
    """What is pickled in `path`: dict, list, tuple, set, str, bytes, numbers, `PickledArray`.

    Raises `DataError` that names the first function or class that is none of these, before
    anything is called, or says that the file is no pickle or costs too much (`pickle_scan`).
    """
    try:
        raw = path.read_bytes()
        pickle_scan.check(raw)
        # Python 2 wrote text as bytes; latin-1 reads any.
        return _PlainUnpickler(io.BytesIO(raw), encoding="latin1").load()
    except (pickle.UnpicklingError, OSError, *_BROKEN) as error:
        reason = str(error) or type(error).__name__
        raise DataError(f"{path} is not read: {reason[:_LONGEST_REASON]}") from error


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        known = _KNOWN.get((module.replace("numpy.core", "numpy._core"), name))
        if known is None:
            raise pickle.UnpicklingError(
                f"{module}.{name} refused; a pickle may hold only plain values and NumPy numbers"
            )
        # A new object each time, because a pickle can put attributes on what it has named.
        return functools.partial(known)


def _named(value: object) -> str:
    # Writing out a value that holds itself twice at every level would take for ever.
    return repr(value) if isinstance(value, str) else f"a {type(value).__name__}"


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
        raise pickle.UnpicklingError(f"_codecs.encode to {_named(encoding)} refused")
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
