"""Reading pickles of numbers and text from strangers, without running anything in them.

A pickle is a program that may call whatever it can name. This reader lets it name nothing but the
few functions with which NumPy pickles numbers, and answers even those with functions of this
file, so that no code but this runs. Everything else is refused by its name.

Before it is opened, a pickle is looked through for what it would cost. A few bytes can ask for
gigabytes (a place in the memo, the length of a text), or build a value that holds itself twice at
every level, which takes for ever to hash or to write out. `pickletools` says of each opcode what
it takes from the stack and puts there; with that, depths and sizes are counted without making a
single value.
"""

import functools
import io
import pickle
import pickletools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from semsim.base.errors import DataError

DEEPEST = 100  # containers within one another
LONGEST_NUMBER = 1024  # bits
# Parts of all values together, those that are meant twice counted twice: some for every file, and
# some for each opcode, as honest pickles mean few values more than once.
FREE_PARTS, PARTS_PER_OPCODE = 100_000, 20
_FRAME = 9  # bytes of the opcode and its length
_GROWING = {"APPEND", "APPENDS", "SETITEM", "SETITEMS", "ADDITEMS", "BUILD"}
_PUTTING = {"PUT", "BINPUT", "LONG_BINPUT"}
_GETTING = {"GET", "BINGET", "LONG_BINGET"}
_DTYPE = re.compile(r"[biuf]\d{1,2}|[US]\d{1,4}")
# What the parser raises for bytes that are no pickle, or a broken one.
_BROKEN = (
    *(EOFError, TypeError, ValueError, LookupError, AttributeError),
    *(OverflowError, MemoryError, RecursionError),
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
    """Load the pickle at `path`: dict, list, tuple, set, str, bytes, numbers, `PickledArray`.

    Raises `DataError` that names the first function or class that is none of these, before
    anything is called, or says that the file is no pickle or costs too much.
    """
    try:
        raw = path.read_bytes()
        _check(raw)
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


@dataclass(eq=False)
class _Value:
    """Value on the stack. parts: of it and all within; held: whether another value has it."""

    depth: int = 0
    parts: int = 1
    held: bool = False


_MARK = _Value()


@dataclass
class _Scan:
    stack: list[_Value] = field(default_factory=list)
    memo: dict[int, _Value] = field(default_factory=dict)
    opcodes: int = 0
    parts: int = 0

    def step(self, opcode: pickletools.OpcodeInfo, argument: object) -> None:
        self.opcodes += 1
        name = opcode.name
        if name in _PUTTING:
            self._put(argument)
        elif name == "MEMOIZE":
            self._put(len(self.memo))
        elif name in _GETTING:
            self._get(argument)
        elif name == "DUP":
            self.stack.append(self._top())
        elif name == "MARK":
            self.stack.append(_MARK)
        else:
            self._replace(opcode)

    def _put(self, place: object) -> None:
        # Honest pickles number the memo from 0 or 1 on; the parser makes room up to the number.
        if not isinstance(place, int) or not 0 <= place <= self.opcodes:
            raise _refused(f"place {place} of its memo, which holds {len(self.memo)}")
        self.memo[place] = self._top()

    def _get(self, place: object) -> None:
        if not isinstance(place, int) or place not in self.memo:
            raise _refused(f"place {place} of its memo, where nothing is")
        self.stack.append(self.memo[place])

    def _top(self) -> _Value:
        if not self.stack:
            raise _refused("a value where there is none")
        return self.stack[-1]

    def _replace(self, opcode: pickletools.OpcodeInfo) -> None:
        taken = list(self._taken(opcode))
        if opcode.name in _GROWING:
            grown, *added = taken
            if grown.held or any(value is grown for value in added):
                raise _refused("a change of a value that another one, or itself, holds")
            self._add(grown, added)
            self.stack.append(grown)
            return
        for _ in opcode.stack_after:
            made = _Value()
            self.parts += 1
            self._add(made, taken)
            self.stack.append(made)

    def _taken(self, opcode: pickletools.OpcodeInfo) -> Iterator[_Value]:
        """Take the values of an opcode off the stack, the lowest first."""
        count = len(opcode.stack_before)
        if pickletools.markobject in opcode.stack_before:
            above = next((n for n, one in enumerate(reversed(self.stack)) if one is _MARK), None)
            if above is None:
                raise _refused("a mark where there is none")
            count = above + 1 + opcode.stack_before.index(pickletools.markobject)
        if count > len(self.stack):
            raise _refused("a value where there is none")
        taken = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return (value for value in taken if value is not _MARK)

    def _add(self, holder: _Value, added: list[_Value]) -> None:
        for value in added:
            value.held = True
            holder.depth = max(holder.depth, value.depth + 1)
            holder.parts += value.parts
            self.parts += value.parts
        if holder.depth > DEEPEST:
            raise _refused(f"more than {DEEPEST} values within one another")
        if self.parts > FREE_PARTS + PARTS_PER_OPCODE * self.opcodes:
            raise _refused("too many values that are meant more than once")


def _check(raw: bytes) -> None:
    """`UnpicklingError` for a pickle that costs far more than its bytes; ValueError for none."""
    scan = _Scan()
    # Reading from bytes, `genops` itself says where a length goes beyond the end.
    for opcode, argument, place in pickletools.genops(io.BytesIO(raw)):
        left = len(raw) - (place or 0) - _FRAME
        if opcode.name == "FRAME" and isinstance(argument, int) and argument > left:
            raise _refused(f"{argument} bytes where {left} are left")
        if isinstance(argument, int) and argument.bit_length() > LONGEST_NUMBER:
            raise _refused(f"a number of more than {LONGEST_NUMBER} bits")
        scan.step(opcode, argument)


def _refused(what: str) -> pickle.UnpicklingError:
    return pickle.UnpicklingError(f"the pickle asks for {what}")


_KNOWN: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "dtype"): _PickledDtype,
    ("numpy", "ndarray"): PickledArray,
    ("numpy._core.multiarray", "_reconstruct"): PickledArray,
    ("numpy._core.multiarray", "scalar"): _scalar,
    ("numpy._core.numeric", "_frombuffer"): _from_buffer,
    ("_codecs", "encode"): _latin1,
    ("__builtin__", "bytes"): _no_bytes,
}
