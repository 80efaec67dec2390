"""Answers in files a person or a mapping, beside images named `<id>_<label>`.

An image is `[<model>/]<id>_<label>[_rec|_ori|_gt][.<suffix>]`; the label is the number of its true
class. An answer is the number of a class, -1 or "none", or a class by its name where the list of
classes is known. The source is a file, or a folder of files, of these kinds:

    <annotator>.csv            columns image and answer: all answers of one person
    <model>.json, .pkl         {image: [answer of person 0, of person 1, …]}
    [<model>/]<image>_gt.txt   the answers of person 0, 1, … with spaces, commas or lines between

Where an image does not say its model it is that of `model`, or else the name of the mapping.

Pickles come from strangers, so nothing in them is run. A pickle is a program that may call whatever
it can name. `load_plain` lets it name nothing but the few functions with which NumPy pickles
numbers, and answers even those with functions of this file, so that no code but this runs.
Everything else is refused by its name.

Before it is opened, a pickle is looked through for what it would cost. A few bytes can ask for
gigabytes (a place in the memo, the length of a text), or build a value that holds itself twice at
every level, which takes for ever to hash or to write out. `pickletools` says of each opcode what
it takes from the stack and puts there; with that, depths and sizes are counted without making a
single value.
"""

import functools
import io
import json
import pickle
import pickletools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd

from semsim.base.alike import alike
from semsim.base.errors import DataError
from semsim.base.progress import Progress, Report, silent
from semsim.base.registry import setting
from semsim.base.stats.evidence import NONE_ANSWER
from semsim.base.stats.vote_rows import Sieve, counted_votes, named
from semsim.base.table_files import ENDINGS, first_problem, in_text, read_plain, read_texts
from semsim.importers.class_names import CLASS_LIST, class_name, read_class_names
from semsim.importers.human_tables import votes_found
from semsim.importers.import_plan import Findings, Unread
from semsim.importers.trees import Tree, below, hidden_note, id_and_label

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
_LONGEST = 1000  # more answers for one image than this are something else
_NONE = {"-1", NONE_ANSWER}


@dataclass(frozen=True, kw_only=True)
class AnnotatorFiles:
    """Files of answers: a CSV a person, a JSON or pickle mapping, or a text file an image."""

    model: str = setting("", text="Model, where neither image nor file name says it.")
    dataset: str = setting("unknown", text="Name of the data set.")
    attack: str = setting("unknown", text="Name of the attack.")
    classes: Path | None = setting(None, text=CLASS_LIST)
    votes_per_item: int | None = setting(None, text="Votes each reconstruction was to get.")
    headline: str = setting("majority", text="Human score to rank by.")

    def __call__(self, source: Path, name: str, report: Report = silent) -> Findings:
        """The votes in the files."""
        names = read_class_names(self.classes)
        root = source if source.is_dir() else source.parent
        read = _Answers(root=root, model=self.model, names=names)
        if not source.is_dir() and not source.is_file():
            raise DataError(f"{source} is neither a file nor a folder.")
        files = read.files() if source.is_dir() else read.named([source], root)
        for done, path in enumerate(files, start=1):
            read.file(path)
            report(Progress(done, len(files), "reading files"))
        if not read.rows:
            raise DataError(
                f"{source} holds no answer that can be read.{first_problem(read.unread)}"
            )
        rows = pd.DataFrame(read.rows).assign(dataset=self.dataset, attack=self.attack)
        found = votes_found(
            counted_votes(Sieve(rows=rows, unread=tuple(read.unread))),
            name=name,
            headline=self.headline,
            votes_per_item=self.votes_per_item,
        )
        return replace(found, notes=(*found.notes, *hidden_note(read.hidden)))


@dataclass(kw_only=True)
class _Answers(Tree):
    """Rows that have been read so far, and what could not be.

    Attributes:
        model: Where nothing else says it.
        names: Of the classes, empty where they are not known.
    """

    model: str
    names: tuple[str, ...]
    rows: list[dict[str, str]] = field(default_factory=list)

    def file(self, path: Path) -> None:
        """Read one file; a broken one is left out as a whole."""
        where = below(path, self.root)
        readers: dict[str, Callable[[Path, str], None]] = {
            **dict.fromkeys(ENDINGS, self._person),
            ".json": lambda file, place: self._mapping(_read_json(file), file, place),
            ".pkl": lambda file, place: self._mapping(load_plain(file), file, place),
            ".pickle": lambda file, place: self._mapping(load_plain(file), file, place),
            ".txt": self._image_file,
        }
        reader = readers.get(path.suffix.lower())
        if reader is None:
            self.leave_out(f"expected a file ending in {', '.join(readers)}", path)
            return
        try:
            reader(path, where)
        except (DataError, OSError) as error:
            self.leave_out(str(error), path)

    def _person(self, path: Path, where: str) -> None:
        table = read_texts(path, DataError)
        rows = table.columns("image", "answer")
        self.unread += table.unread
        for place, image, answer in zip(rows.index, *(rows[c] for c in rows), strict=True):
            self._add(f"{where} {place}", image or "", path.stem, in_text(answer), "")

    def _mapping(self, mapping: Any, path: Path, where: str) -> None:
        if not isinstance(mapping, Mapping):
            raise DataError(f"holds a {type(mapping).__name__}, expected {{image: [answers]}}")
        for image, answers in mapping.items():
            self._add_all(f"{where}: {image}", str(image), answers, path.stem)

    def _image_file(self, path: Path, where: str) -> None:
        answers = re.split(r"[\s,;]+", read_plain(path, DataError).strip())
        self._add_all(where, path.relative_to(self.root).as_posix(), answers, "")

    def _add_all(self, where: str, image: str, answers: Any, model: str) -> None:
        cells = list(_cells(answers))
        if not cells or len(cells) > _LONGEST:
            self.unread.append(Unread(where, "expected a list of answers, one a person"))
            return
        for person, answer in enumerate(cells):
            self._add(where, image, f"ann{person}", answer, model)

    def _add(
        self, where: str, image: str, annotator: str, answer: str | None, otherwise: str
    ) -> None:
        """Take one answer, unless something about it cannot be understood."""
        path = PurePosixPath(image.replace("\\", "/"))
        image_id, label = id_and_label(path.stem)
        model = path.parent.name or self.model or otherwise
        true = None if label is None else class_name(label, self.names)
        said = NONE_ANSWER if alike(answer or "") in _NONE else self._class(answer)
        problems = [
            (true is None, f"{image!r} does not say a known class; expected <id>_<label>"),
            (not model, f"{image!r} does not say its model; give it with --model"),
            (said is None, f"{annotator} answered {answer!r}, which is no class"),
        ]
        why = next((reason for wrong, reason in problems if wrong), None)
        if why is not None:
            self.unread.append(Unread(where, why))
            return
        self.rows.append(
            {
                "where": f"{where}, {annotator}",
                "model": model,
                "image_id": image_id,
                "class_name": str(true),
                "annotator": annotator,
                "answer": str(said),
            }
        )

    def _class(self, answer: str | None) -> str | None:
        known = answer is not None and (self.names or answer.isdecimal())
        return named(answer, self.names) if known else None


def _cells(answers: Any) -> Iterator[str]:
    """The answers of one image as text; nothing where it is no list of numbers or words."""
    values = answers.values.ravel().tolist() if isinstance(answers, PickledArray) else answers
    if not isinstance(values, list | tuple):
        return
    for value in values:
        text = in_text(value) if isinstance(value, float | str) else str(value)
        yield text or ""


def _read_json(path: Path) -> Any:
    try:
        return json.loads(read_plain(path, DataError))
    except (ValueError, RecursionError) as error:
        raise DataError(f"is not readable JSON ({error})") from error


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
    """Value on the stack.

    Attributes:
        parts: Of it and all within.
        held: Whether another value has it.
    """

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
