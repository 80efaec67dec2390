"""The one reader of tables: CSV as spreadsheets write it, Excel's .xlsx, and Parquet.

Text may be parted by commas, semicolons or tabs, begin with "sep=", be UTF-8, UTF-16 or Windows's
Latin-1, and have decimal commas where a comma parts nothing. Blanks around a cell, and rows and
columns without any cell, are no part of a table.

Rows of an Excel file are read by ECMA-376, part 1, 18.3 and 18.4.

Text that a spreadsheet would run as a formula is made harmless in CSV and put back on reading. A
spreadsheet may split a file at semicolons or tabs, whatever parted its cells when it was written.
So an apostrophe goes wherever a cell may begin, in front of = + - @ or a control character, also
where quotes or apostrophes come first: reading takes off exactly what writing put on. A number,
which is what "-1" is, stays as it is: nothing in it can be run.
"""

import codecs
import csv
import functools
import io
import logging
import re
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path, PurePath
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype, is_string_dtype, union_categoricals

from semsim.base.alike import alike, firsts, written
from semsim.base.errors import SemsimError
from semsim.base.picture_files import SUFFIXES
from semsim.base.storage.records import guarded, require_file
from semsim.base.words import counted

_BEGINS = r"(?<![^;\t\r\n])"
# The full-width forms are there because some spreadsheets treat them alike.
_RISKY = "(?=[\"']*[=+\\-@\t\r\n＝＋－＠])"
_ESCAPE, _RESTORE = re.compile(_BEGINS + _RISKY), re.compile(f"{_BEGINS}'{_RISKY}")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def escaped(text: str) -> str:
    """Return a cell in which no spreadsheet finds a formula."""
    return text if _NUMBER.fullmatch(text) else _ESCAPE.sub("'", text)


def restored(text: str) -> str:
    """Return what `escaped` was given."""
    return _RESTORE.sub("", text) if "'" in text else text


def of_table(table: pd.DataFrame, change: Callable[[str], str]) -> pd.DataFrame:
    """Return `table` with each text in it as `change`, which is one of these two, has it."""

    def changed(cell: object) -> object:
        return change(cell) if isinstance(cell, str) else cell

    texts = {str(name): one for name, one in table.items() if one.dtype.kind == "O"}
    found = {name: one.map(changed).astype(one.dtype) for name, one in texts.items()}
    return table.assign(**found)


def first_sheet(book: zipfile.ZipFile) -> tuple[Iterator[tuple[str, list[str]]], int]:
    """Return the rows of the first sheet, each with its place, and how many sheets there are."""
    links = _xml(book, "xl/_rels/workbook.xml.rels")
    targets = {one.get("Id"): str(one.get("Target")) for one in links}
    sheets = _xml(book, "xl/workbook.xml").findall(".//{*}sheet")
    first = next(targets[value] for key, value in sheets[0].items() if key.endswith("}id"))
    shared = []
    if "xl/sharedStrings.xml" in book.namelist():
        shared = [_said(one) for one in _xml(book, "xl/sharedStrings.xml")]
    place = first.lstrip("/") if first.startswith("/") else f"xl/{first}"
    return _rows(_xml(book, place).findall(".//{*}row"), shared), len(sheets)


def _xml(book: zipfile.ZipFile, name: str) -> ElementTree.Element:
    return ElementTree.fromstring(book.read(name))


def _said(cell: ElementTree.Element) -> str:
    """All text in it but how it is read aloud."""
    return "".join(one.text or "" for one in cell.findall("./{*}t") + cell.findall("./{*}r/{*}t"))


def _rows(
    rows: Iterable[ElementTree.Element], shared: Sequence[str]
) -> Iterator[tuple[str, list[str]]]:
    width = 0
    for number, row in enumerate(rows, start=1):
        cells: dict[int, str] = {}
        for place, one in enumerate(row.findall("./{*}c")):
            letters = re.sub("[^A-Z]", "", one.get("r", ""))
            column = functools.reduce(lambda n, sign: 26 * n + ord(sign) - 64, letters, 0) - 1
            cells[column if letters else place] = _cell_text(one, shared)
        width = width or 1 + max(cells, default=-1)  # of the header
        last = max(width, 1 + max(cells, default=-1))
        yield f"row {row.get('r', number)}", [cells.get(column, "") for column in range(last)]


def _cell_text(cell: ElementTree.Element, shared: Sequence[str]) -> str:
    kind, value = cell.get("t"), cell.findtext("./{*}v") or ""
    if kind == "s":
        return shared[int(value)]
    if kind == "inlineStr":
        return "".join(map(_said, cell.findall("./{*}is")))
    return ("false", "true")[int(value)] if kind == "b" else value


MOST_ROWS = 1_000_000  # and
MOST_CELLS = 5_000_000  # of a table of texts, every one of which becomes an object
MOST_BYTES = 1 << 29  # of a Parquet file or a sheet once unpacked
ENDINGS = (".csv", ".tsv", ".xlsx", ".parquet")  # of a list that is a table, it is .txt
READ = "CSV (.csv, .tsv, .txt), Excel (.xlsx) or Parquet (.parquet)"
YES = {*("1", "true", "yes", "y", "t", "ja", "j", "wahr", "oui", "vrai", "si", "sí", "verdadero")}
YES |= {"vero", "sim", "да", "是"}
NO = {*("0", "false", "no", "n", "f", "nein", "falsch", "non", "faux", "falso", "não", "нет", "否")}
MISSING = ("nan", "na", "n/a", "#n/a")  # among numbers, beside an empty cell
_FEWER = (
    "So many are not taken in at once, as they would fill the memory. Keep only the columns that "
    "are needed, or cut the table into several files and import one after the other."
)
REMARKS = "remarks"  # among the attributes of a frame: what was taken for granted
_SAVE = "Save it as CSV in UTF-8."
_CHUNK = 500_000  # rows of a CSV whose texts are held as such
_HEAD = 1 << 16  # letters by which a file is judged
_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?")
_POINT = re.compile(r"[+-]?[0-9]*\.[0-9]+([eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"(-?[0-9]+)\.0+")
_log = logging.getLogger(__name__)
Names = Collection[str]  # of columns
Remarks = tuple[str, ...]  # on what was taken for granted


@dataclass(frozen=True)
class Unread:
    """A file, row or image that is left out: where it is, and why."""

    where: str
    why: str

    def __str__(self) -> str:
        return f"{self.where}: {self.why}"


def first_problem(reasons: Iterable[object]) -> str:
    """A sentence with the first of `reasons`, or nothing: what an error says where all failed."""
    return next((f" First problem: {reason}." for reason in reasons), "")


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """Table of texts, as a file has it.

    Attributes:
        cells: Object columns of str or None; its index says where a row is, such as "line 7".
        unread: Rows that do not have as many cells as the header.
        remarks: What was taken for granted.
    """

    path: Path
    cells: pd.DataFrame
    unread: tuple[Unread, ...] = ()
    remarks: Remarks = ()
    wrong: type[SemsimError] = field(default=SemsimError, repr=False)

    def columns(self, *names: str) -> pd.DataFrame:
        """Return those columns; the error names the absent ones and those there are."""
        check_columns(self.cells, names, str(self.path), self.wrong)
        return self.cells[list(names)]


def check_columns(
    table: pd.DataFrame, columns: Iterable[str], called: str, wrong: type[SemsimError]
) -> None:
    """Raise `wrong`, which says what the table is `called` and has, where a column is absent."""
    absent = [name for name in columns if name not in table]
    if absent:
        raise wrong(
            f"{called} lacks the columns {', '.join(absent)}. "
            f"It has: {', '.join(map(str, table)) or 'none'}."
        )


@dataclass(frozen=True, kw_only=True)
class Form:
    """The form of a file of text, in the words of `pandas.read_csv`."""

    encoding: str
    sep: str
    skiprows: int  # lines before the header
    decimal: str


def form_of(content: Path | str) -> tuple[Form, Remarks]:
    """Return how a file, or a text that was pasted, is written, and what was taken for granted.

    Its beginning decides.
    """
    remarks: Remarks = ()
    if isinstance(content, str):
        encoding, head = "utf-8-sig", content[:_HEAD]
    else:
        encoding, remarks = _encoding(content)
        with content.open(encoding=encoding, errors="replace", newline="") as file:
            head = file.read(_HEAD)
    first, _, rest = head.partition("\n")
    told = re.fullmatch(r'"?sep=(.)"?[;,\t]*\s*', first, re.IGNORECASE)
    line = rest.partition("\n")[0] if told else first
    sep = told[1] if told else max(",;\t", key=lambda sign: len(_split(line, sign)))
    cells = [cell.strip() for one in head.splitlines() for cell in _split(one, sep)]
    commas = any(map(_COMMA.fullmatch, cells)) and not any(map(_POINT.fullmatch, cells))
    decimal = "," if sep != "," and commas else "."
    form = Form(encoding=encoding, sep=sep, skiprows=int(told is not None), decimal=decimal)
    return form, remarks


def _split(line: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:
        return []


def _encoding(path: Path) -> tuple[str, Remarks]:
    with path.open("rb") as file:
        head = file.read(4)
    if head in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE):
        return "utf-32", ()
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16", ()
    if head[1:2] == b"\0" or (head[:1] == b"\0" and head[1:]):
        return "utf-16-le" if head[1:2] == b"\0" else "utf-16-be", ()
    try:
        with path.open(encoding="utf-8-sig", newline="") as text:
            while text.read(1 << 20):
                pass
    except UnicodeDecodeError:
        said = "is not UTF-8 and was read as Latin-1 (Windows-1252). If letters look wrong"
        return "cp1252", (f"{path.name} {said}, save it in UTF-8.",)
    return "utf-8-sig", ()


def read_plain(path: Path, wrong: type[SemsimError]) -> str:
    """Return a small text, in any encoding that a table may have; log what is taken for granted.

    Raises `wrong` for a file that cannot be read or holds no text.
    """
    with guarded(path, wrong, "is not a readable text file ({})."):
        encoding, remarks = _encoding(path)
        text = path.read_text(encoding)
        if "\0" in text:
            raise wrong(f"{path} is not a readable text file (it holds zero bytes).")
    for remark in remarks:
        _log.warning(remark)
    return text


@contextmanager
def _reading(path: Path, wrong: type[SemsimError]) -> Iterator[None]:
    """Raise `wrong` for whatever reading the table at `path` within the block trips on."""
    require_file(path, wrong, "is not a readable table: {}.")
    with guarded(path, wrong, f"is not a readable table ({{}}). {_SAVE}"):
        try:
            yield
        except SemsimError as error:
            raise wrong(str(error)) from error


def read_texts(content: Path | str, wrong: type[SemsimError], name: str = "The text") -> TextTable:
    """Return the table in a file, or in a text that was pasted and is called `name`.

    An empty cell is missing. Raises `wrong` for a file that is no table by its name, cannot be
    read, or has more than `MOST_ROWS` rows, `MOST_CELLS` cells or, unpacked, `MOST_BYTES`; of a
    longer one no more than that is read.
    """
    path = content if isinstance(content, Path) else Path(name)
    ending = ".csv" if isinstance(content, str) else path.suffix.lower()
    if ending not in (*ENDINGS, ".txt"):
        raise wrong(f"{path} should be a table: {READ}.")
    with _reading(path, wrong):
        if ending == ".parquet":
            table = _from_parquet(path)
        elif ending == ".xlsx":
            table = _from_sheet(path)
        else:
            table = _from_text(content, path)
    if table.cells.empty and not table.unread:
        raise wrong(f"{path} holds no row.")
    return replace(table, wrong=wrong)


def whole_texts(content: Path | str, wrong: type[SemsimError], name: str = "The text") -> TextTable:
    """Return what `read_texts` does; a row of another length than the header is an error, too."""
    table = read_texts(content, wrong, name)
    if table.unread:
        raise wrong(f"{table.unread[0]}; quote cells that hold a separator.")
    return table


def _from_text(content: Path | str, path: Path) -> TextTable:
    form, remarks = form_of(content)
    with (
        io.StringIO(content, newline="")
        if isinstance(content, str)
        else content.open(encoding=form.encoding, newline="")
    ) as file:
        reader = csv.reader(file, delimiter=form.sep, strict=isinstance(content, Path))
        for _ in range(form.skiprows):
            next(reader, None)
        rows = ((f"line {reader.line_num}", row) for row in reader)
        return _of_rows(path, rows, remarks, commas=form.decimal == ",")


def _from_sheet(path: Path) -> TextTable:
    with zipfile.ZipFile(path) as book:
        size = sum(one.file_size for one in book.infolist())
        _check_size(path, size, MOST_BYTES, "bytes, unpacked")
        rows, n_sheets = first_sheet(book)
    told = f"Of the {n_sheets} sheets of {path.name} the first was read."
    return _of_rows(path, rows, (told,) if n_sheets > 1 else ())


def _of_rows(
    path: Path, rows: Iterable[tuple[str, Sequence[str]]], remarks: Remarks, commas: bool = False
) -> TextTable:
    """Rows, each with its place, as a table; the first is the header."""
    header: list[str] = []
    kept: list[tuple[str, list[str | None]]] = []
    n_cells = 0
    for where, row in rows:
        cells = [_cell(text, commas) for text in row]
        if header or not any(cells):
            n_cells += len(cells)
            kept += [(where, cells)] if any(cells) else []
            _check_size(path, len(kept), MOST_ROWS, "rows")
            _check_size(path, n_cells, MOST_CELLS, "cells")
        else:
            header = [text or "" for text in cells]
    wide, whole, unread = len(header), [], []
    for where, cells in kept:
        if len(cells) >= wide and not any(cells[wide:]):
            whole.append((where, cells))
        else:
            why = f"has {counted(len(cells), 'cell')}, the header has {wide}"
            unread.append(Unread(f"{path.name} {where}", why))
    used = [n for n, name in enumerate(header) if name or any(row[n] for _, row in whole)]
    names = [header[n] for n in used]
    _check_header(path, names)
    places = pd.Index([where for where, _ in whole], dtype=object)
    rows_used = [[row[n] for n in used] for _, row in whole]
    cells_used = pd.DataFrame(rows_used, columns=names, index=places, dtype=object)
    return TextTable(path=path, cells=cells_used, unread=tuple(unread), remarks=remarks)


def _check_header(path: Path, names: Sequence[str]) -> None:
    if len(set(names)) < len(names) or "" in names:
        raise SemsimError(f"{path}: columns need a name each; the header is {', '.join(names)!r}.")


def _cell(text: str, commas: bool) -> str | None:
    tidy = written(restored(text))
    return (tidy.replace(",", ".") if commas and _COMMA.fullmatch(tidy) else tidy) or None


def _check_size(path: Path, n: int, most: int, what: str, advice: str = _FEWER) -> None:
    """Refuse more than `most` of `what`.

    Args:
        advice: Why, and what to do instead.
    """
    if n > most:
        raise SemsimError(f"{path} has more than {most:,} {what}. {advice}")


def _from_parquet(path: Path) -> TextTable:
    parquet = import_module("pyarrow.parquet")
    found, names = parquet.read_metadata(path), parquet.read_schema(path).names
    groups = map(found.row_group, range(found.num_row_groups))
    _check_size(path, found.num_rows, MOST_ROWS, "rows")
    _check_size(path, found.num_rows * found.num_columns, MOST_CELLS, "cells")
    size = sum(group.total_byte_size for group in groups)
    _check_size(path, size, MOST_BYTES, "bytes, unpacked")
    # What is said a thousand times is held once, as the file may have it.
    read = parquet.read_table(path, read_dictionary=names)
    unnamed = [name for name in names if name.startswith("__index_level_")]  # by pandas
    table = read.drop_columns(unnamed).to_pandas(ignore_metadata=True)
    texts = pd.DataFrame({str(name): _texts(table[name]) for name in table})
    texts.index = pd.Index([f"row {row}" for row in range(1, len(table) + 1)], dtype=object)
    return TextTable(path=path, cells=texts.where(texts.notna(), None))


def _texts(column: pd.Series) -> pd.Series:
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return column.map(_text).astype(object)
    texts = np.array([*map(_text, column.cat.categories), None], dtype=object)
    return pd.Series(texts[column.cat.codes], dtype=object)  # -1 of what is missing


def _text(value: Any) -> str | None:
    """A cell as CSV would have it; 3.0 is 3, as a column with gaps makes floats of integers."""
    if not pd.api.types.is_scalar(value):
        raise ValueError(f"a cell holds {type(value).__name__}, not one value")
    if pd.isna(value):
        return None
    return in_text(value) if isinstance(value, float) else written(str(value)) or None


def in_text(cell: Any) -> str | None:
    """Return what a cell says, None where it is missing; 3.0 is 3, be it a number or text.

    A column with gaps makes floats of integers, and is written so too.
    """
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    text = "" if pd.isna(cell) else written(str(cell))
    found = _WHOLE.fullmatch(text)
    return found[1] if found else text or None


def truth(cell: Any) -> bool | None:
    """Return whether a cell says yes, as a number or a word of several languages; None: neither."""
    word = alike(in_text(cell) or "")
    return True if word in YES else False if word in NO else None


def same_words(table: pd.DataFrame, columns: Iterable[str]) -> pd.DataFrame:
    """Return `table` with words that are the same in the form that comes first in the column."""
    return table.assign(
        **{
            name: table[name].map(firsts(table[name].dropna().astype(str).unique()))
            for name in columns
            if name in table
        }
    )


def read_frame(
    path: Path,
    wrong: type[SemsimError],
    *,
    texts: Names = (),
    columns: Names | None = None,
    most: int = MOST_ROWS,
    advice: str = _FEWER,
) -> pd.DataFrame:
    """Return a table whose columns `texts` stay texts; in others a number is a number.

    Args:
        columns: Those wanted, of which the table may lack some; texts among them come as
            categories, which take a tenth of the memory. None for all. Raises `wrong` where it is
            not readable or has more than `most` rows.
    """
    with _reading(path, wrong):
        if path.suffix.lower() == ".parquet":
            found = import_module("pyarrow.parquet").read_metadata(path)
            _check_size(path, found.num_rows, most, "rows", advice)
            return _parquet_frame(path, texts, columns)
        if path.suffix.lower() == ".xlsx":
            sheet = whole_texts(path, wrong)
            table, remarks = sheet.cells.reset_index(drop=True), sheet.remarks
        else:
            table, remarks = _csv_frame(path, texts, columns, most)
        _check_size(path, len(table), most, "rows", advice)
    for remark in remarks:
        _log.warning(remark)
    return _numbered(table, texts)


def _numbered(table: pd.DataFrame, texts: Names) -> pd.DataFrame:
    """Columns of nothing but numbers, and words that one is missing, as such, but for `texts`."""
    for name in (name for name in table if name not in texts and not is_numeric_dtype(table[name])):
        said = table[name].mask(table[name].astype(str).str.casefold().isin(MISSING))
        numbers = pd.to_numeric(said, errors="coerce")
        if said.notna().equals(numbers.notna()):
            table[name] = numbers
    return table


def _csv_frame(
    path: Path, texts: Names, columns: Names | None, most: int
) -> tuple[pd.DataFrame, Remarks]:
    form, remarks = form_of(path)
    # Only an empty cell is missing: a model may be called "None" and an image "007".
    how: dict[str, Any] = {**vars(form), "keep_default_na": False, "na_values": ["", " "]}
    # A long column is numbers or words as a whole.
    how |= {"skipinitialspace": True, "low_memory": False}
    (header,) = pd.read_csv(path, nrows=1, header=None, dtype=str, **how).fillna("").to_numpy()
    _check_header(path, [name for name in map(written, header) if name])
    how |= {"nrows": most + 1, "dtype": {raw: str for raw in header if written(raw) in texts}}
    # All cells are read, as pandas would cut a row with one too many, such as a decimal comma.
    with pd.read_csv(path, chunksize=most + 1 if columns is None else _CHUNK, **how) as read:
        # A chunk after the other: read as categories, "007" among the names would become a 7.
        parts = [_tidy(path, part, texts) for part in read]
    if columns is None:
        return parts[0], remarks
    parts = [part[[name for name in part if name in columns]] for part in parts]
    parts = [part.astype(dict.fromkeys({*part} & {*texts}, "category")) for part in parts]
    together = {
        name: union_categoricals([part[name] for part in parts])
        if name in texts
        else pd.concat([part[name] for part in parts], ignore_index=True)
        for name in parts[0]
    }
    return pd.DataFrame(together), remarks


def _tidy(path: Path, table: pd.DataFrame, texts: Names) -> pd.DataFrame:
    """Rows with a cell at least; texts without blanks around and the apostrophes of `escaped`."""
    if not isinstance(table.index, pd.RangeIndex):  # pandas makes what is too much an index
        raise SemsimError(
            f"{path}: a row has more cells than the header; quote cells with separators."
        )
    table = table.rename(columns=lambda name: written(str(name)))
    empty = [n for n in table if str(n).startswith("Unnamed: ") and table[n].isna().all()]
    table = table.drop(columns=empty)
    for name in (name for name in table if is_string_dtype(table[name]) and name in texts):
        words = {word: _cell(word, False) for word in table[name].dropna().unique()}
        table[name] = table[name].map(words)
    return table.dropna(how="all")


def _parquet_frame(path: Path, texts: Names, columns: Names | None) -> pd.DataFrame:
    if columns is None:
        return pd.read_parquet(path)
    parquet = import_module("pyarrow.parquet")
    wanted = [name for name in columns if name in parquet.read_schema(path).names]
    return parquet.read_table(path, columns=wanted, read_dictionary=[*texts]).to_pandas(
        ignore_metadata=True, self_destruct=True
    )


def for_images(classes: Mapping[str, str], ids: Collection[str]) -> dict[str, str]:
    """`classes`, by image id, for the images `ids`: 1.jpg is 001 where nothing else may be meant.

    File managers show endings, and spreadsheets take zeros away. What is meant for none of the
    images stays as it is.
    """
    near: dict[str, list[str]] = {}
    for one in ids:
        near.setdefault(_roughly(one), []).append(one)
    found = {name: kind for name, kind in classes.items() if name in ids}
    for name, kind in classes.items():
        meant = near.get(_roughly(name), [])
        found.setdefault(meant[0] if len(meant) == 1 and name not in ids else name, kind)
    return found


def _roughly(name: str) -> str:
    path = PurePath(name)
    stem = path.stem if path.suffix.lower() in SUFFIXES else in_text(name) or ""
    return stem.lstrip("0") if stem.isdecimal() else alike(stem)
