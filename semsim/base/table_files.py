"""The one reader of tables: CSV as spreadsheets write it, Excel's .xlsx, and Parquet.

Text may be parted by commas, semicolons or tabs, begin with "sep=", be UTF-8, UTF-16 or Windows's
Latin-1, and have decimal commas where a comma parts nothing. Blanks around a cell, and rows and
columns without any cell, are no part of a table.
"""

import codecs
import csv
import io
import logging
import re
import zipfile
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
from pandas.api.types import is_string_dtype, union_categoricals

from semsim.base import UserError
from semsim.base.alike import alike, firsts, written
from semsim.base.records import require_file
from semsim.base.sheets import first_sheet
from semsim.base.spreadsheet import restored

MOST_ROWS = 1_000_000  # and
MOST_CELLS = 5_000_000  # of a table of texts, every one of which becomes an object
MOST_BYTES = 1 << 29  # of a Parquet file or a sheet once unpacked
ENDINGS = (".csv", ".tsv", ".xlsx", ".parquet")  # of a list that is a table, it is .txt
READ = "CSV (.csv, .tsv, .txt), Excel (.xlsx) or Parquet (.parquet)"
YES = {*("1", "true", "yes", "y", "t", "ja", "j", "wahr", "oui", "vrai", "si", "sí", "verdadero")}
YES |= {"vero", "sim", "да", "是"}
NO = {*("0", "false", "no", "n", "f", "nein", "falsch", "non", "faux", "falso", "não", "нет", "否")}
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


_BROKEN = (
    OSError,
    ValueError,
    LookupError,
    NotImplementedError,
    csv.Error,
    zipfile.BadZipFile,
    ElementTree.ParseError,
)


@dataclass(frozen=True)
class Unread:
    """A file, row or image that is left out: where it is, and why."""

    where: str
    why: str

    def __str__(self) -> str:
        return f"{self.where}: {self.why}"


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """cells: object columns of str or None; its index says where a row is, such as "line 7".

    unread: rows that do not have as many cells as the header. remarks: what was taken for granted.
    """

    path: Path
    cells: pd.DataFrame
    unread: tuple[Unread, ...] = ()
    remarks: tuple[str, ...] = ()
    wrong: type[UserError] = field(default=UserError, repr=False)

    def columns(self, *names: str) -> pd.DataFrame:
        """Return those columns; the error names the absent ones and those there are."""
        absent = [name for name in names if name not in self.cells]
        if absent:
            raise self.wrong(
                f"{self.path} lacks the columns {', '.join(absent)}. "
                f"It has: {', '.join(map(str, self.cells))}."
            )
        return self.cells[list(names)]


@dataclass(frozen=True, kw_only=True)
class Form:
    """The form of a file of text. header: lines before the header. commas: in decimals."""

    encoding: str
    separator: str
    header: int
    commas: bool
    remark: str = ""


def form_of(content: Path | str) -> Form:
    """Return how a file, or a text that was pasted, is written; its beginning decides."""
    encoding, remark = "utf-8-sig", ""
    if isinstance(content, str):
        head = content[:_HEAD]
    else:
        encoding = _encoding(content)
        if encoding == "cp1252":
            remark = (
                f"{content.name} is not UTF-8 and was read as Latin-1 (Windows-1252). If letters "
                "look wrong, save it as CSV in UTF-8."
            )
        with content.open(encoding=encoding, errors="replace", newline="") as file:
            head = file.read(_HEAD)
    first, _, rest = head.partition("\n")
    told = re.fullmatch(r'"?sep=(.)"?[;,\t]*\s*', first, re.IGNORECASE)
    line = rest.partition("\n")[0] if told else first
    separator = told[1] if told else max(",;\t", key=lambda sign: len(_split(line, sign)))
    cells = [cell.strip() for one in head.splitlines() for cell in _split(one, separator)]
    commas = separator != "," and any(map(_COMMA.fullmatch, cells))
    points = any(map(_POINT.fullmatch, cells))
    return Form(
        encoding=encoding,
        separator=separator,
        header=int(told is not None),
        commas=commas and not points,
        remark=remark,
    )


def _split(line: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:
        return []


def _encoding(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(4)
        if head in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE):
            return "utf-32"
        if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16"
        if head[1:2] == b"\0" or (head[:1] == b"\0" and head[1:]):
            return "utf-16-le" if head[1:2] == b"\0" else "utf-16-be"
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            while file.read(1 << 20):
                pass
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8-sig"


def read_texts(content: Path | str, wrong: type[UserError], name: str = "The text") -> TextTable:
    """Return the table in a file, or in a text that was pasted and is called `name`.

    An empty cell is missing. Raises `wrong` for a file that is no table by its name, cannot be
    read, or has more than `MOST_ROWS` rows, `MOST_CELLS` cells or, unpacked, `MOST_BYTES`; of a
    longer one no more than that is read.
    """
    path = content if isinstance(content, Path) else Path(name)
    ending = ".csv" if isinstance(content, str) else path.suffix.lower()
    readers: dict[str, _Reader] = dict.fromkeys((*ENDINGS, ".txt"), _from_text)
    readers |= {".parquet": _from_parquet, ".xlsx": _from_sheet}
    if ending not in readers:
        raise wrong(f"{path} should be a table: {READ}.")
    require_file(path, wrong, "is not a readable table: {}.")
    try:
        table = readers[ending](content, path, wrong)
    except FileNotFoundError:
        raise wrong(f"{path} is missing.") from None
    except _BROKEN as error:
        raise wrong(f"{path} is not a readable table ({error}). {_SAVE}") from error
    if table.cells.empty and not table.unread:
        raise wrong(f"{path} holds no row.")
    return table


def whole_texts(content: Path | str, wrong: type[UserError], name: str = "The text") -> TextTable:
    """Return what `read_texts` does; a row of another length than the header is an error, too."""
    table = read_texts(content, wrong, name)
    if table.unread:
        raise wrong(f"{table.unread[0]}; quote cells that hold a separator.")
    return table


_Reader = Callable[[Path | str, Path, type[UserError]], TextTable]


def _from_text(content: Path | str, path: Path, wrong: type[UserError]) -> TextTable:
    form = form_of(content)
    pasted = isinstance(content, str)
    with (
        io.StringIO(content, newline="")
        if isinstance(content, str)
        else content.open(encoding=form.encoding, newline="")
    ) as file:
        reader = csv.reader(file, delimiter=form.separator, strict=not pasted)
        for _ in range(form.header):
            next(reader, None)
        rows = ((f"line {reader.line_num}", row) for row in reader)
        table = _of_rows(path, wrong, rows, form.commas)
    return replace(table, remarks=(form.remark,) if form.remark else ())


def _from_sheet(_: Path | str, path: Path, wrong: type[UserError]) -> TextTable:
    with zipfile.ZipFile(path) as book:
        size = sum(one.file_size for one in book.infolist())
        check_size(path, wrong, size, MOST_BYTES, "bytes, unpacked", _FEWER)
        rows, n_sheets = first_sheet(book)
    table = _of_rows(path, wrong, rows, False)
    told = f"Of the {n_sheets} sheets of {path.name} the first was read."
    return replace(table, remarks=(told,) if n_sheets > 1 else ())


def _of_rows(
    path: Path, wrong: type[UserError], rows: Iterable[tuple[str, Sequence[str]]], commas: bool
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
            check_size(path, wrong, len(kept), MOST_ROWS, "rows", _FEWER)
            check_size(path, wrong, n_cells, MOST_CELLS, "cells", _FEWER)
        else:
            header = [text or "" for text in cells]
    wide = len(header)
    whole = [(where, row) for where, row in kept if len(row) >= wide and not any(row[wide:])]
    used = [n for n, name in enumerate(header) if name or any(row[n] for _, row in whole)]
    names = [header[n] for n in used]
    _check_header(path, wrong, names)
    left = {where for where, _ in kept} - {where for where, _ in whole}
    return TextTable(
        path=path,
        cells=pd.DataFrame(
            [[row[n] for n in used] for _, row in whole],
            columns=names,
            index=pd.Index([where for where, _ in whole], dtype=object),
            dtype=object,
        ),
        unread=tuple(
            Unread(f"{path.name} {where}", _other_length(len(row), wide))
            for where, row in kept
            if where in left
        ),
        wrong=wrong,
    )


def _check_header(path: Path, wrong: type[UserError], names: Sequence[str]) -> None:
    if len(set(names)) < len(names) or "" in names:
        raise wrong(f"{path}: columns need a name each; the header is {', '.join(names)!r}.")


def _other_length(n: int, header: int) -> str:
    return f"has {n} cell{'s' * (n != 1)}, the header has {header}"


def _cell(text: str, commas: bool) -> str | None:
    tidy = written(restored(text))
    return (tidy.replace(",", ".") if commas and _COMMA.fullmatch(tidy) else tidy) or None


def check_size(
    path: Path, wrong: type[UserError], n: int, most: int, what: str, advice: str
) -> None:
    """Raise `wrong` where a table has more than `most` of `what`, such as rows.

    advice: why so many are not taken, and what to do instead.
    """
    if n > most:
        raise wrong(f"{path} has more than {most:,} {what}. {advice}")


def _from_parquet(_: Path | str, path: Path, wrong: type[UserError]) -> TextTable:
    parquet = _parquet()
    with parquet.ParquetFile(path) as file:
        found = file.metadata
        cells = found.num_rows * found.num_columns
        check_size(path, wrong, found.num_rows, MOST_ROWS, "rows", _FEWER)
        check_size(path, wrong, cells, MOST_CELLS, "cells", _FEWER)
        groups = map(found.row_group, range(found.num_row_groups))
        columns = (one.column(n) for one in groups for n in range(one.num_columns))
        size = sum(column.total_uncompressed_size for column in columns)
        check_size(path, wrong, size, MOST_BYTES, "bytes, unpacked", _FEWER)
        names = file.schema_arrow.names
    # What is said a thousand times is held once, as the file may have it.
    read = parquet.read_table(path, read_dictionary=names)
    unnamed = [name for name in names if name.startswith("__index_level_")]  # by pandas
    table = read.drop_columns(unnamed).to_pandas(ignore_metadata=True)
    texts = pd.DataFrame({str(name): _texts(table[name]) for name in table})
    texts.index = pd.Index([f"row {row}" for row in range(1, len(table) + 1)], dtype=object)
    return TextTable(path=path, cells=texts.where(texts.notna(), None), wrong=wrong)


def _parquet() -> Any:
    return import_module("pyarrow.parquet")


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
    wrong: type[UserError],
    *,
    texts: Names = (),
    columns: Names | None = None,
    most: int = MOST_ROWS,
    advice: str = _FEWER,
) -> pd.DataFrame:
    """Return a table whose columns `texts` stay texts; in others a number is a number.

    columns: those wanted, of which the table may lack some; texts among them come as categories,
    which take a tenth of the memory. None for all. Raises `wrong` where it is not readable or has
    more than `most` rows.
    """
    readers = dict.fromkeys((".csv", ".tsv", ".txt"), _csv_frame) | {".parquet": _parquet_frame}
    require_file(path, wrong, "is not a readable table: {}.")
    try:
        if path.suffix.lower() not in readers:
            found = whole_texts(path, wrong)
            for remark in found.remarks:
                _log.warning(remark)
            return _typed(found.cells, texts)
        table = readers[path.suffix.lower()](path, wrong, texts, columns, most, advice)
    except FileNotFoundError:
        raise wrong(f"{path} is not a readable table: it is missing.") from None
    except (OSError, ValueError) as error:  # parsing errors of pandas and pyarrow are ValueErrors
        raise wrong(f"{path} is not a readable table ({error}). {_SAVE}") from error
    check_size(path, wrong, len(table), most, "rows", advice)
    return table


def _typed(cells: pd.DataFrame, texts: Names) -> pd.DataFrame:
    """Columns of nothing but numbers as numbers, but for those in `texts`."""
    table = cells.reset_index(drop=True)
    for name in table:
        numbers = pd.to_numeric(table[name], errors="coerce")
        if name not in texts and table[name].notna().equals(numbers.notna()):
            table[name] = numbers
    return table


def _csv_frame(
    path: Path, wrong: type[UserError], texts: Names, columns: Names | None, most: int, advice: str
) -> pd.DataFrame:
    form = form_of(path)
    if form.remark:
        _log.warning(form.remark)
    # Only an empty cell is missing: a model may be called "None" and an image "007".
    how: dict[str, Any] = {**as_pandas(form), "keep_default_na": False, "na_values": ["", " "]}
    (header,) = pd.read_csv(path, nrows=1, header=None, dtype=str, **how).fillna("").to_numpy()
    _check_header(path, wrong, [name for name in map(written, header) if name])
    how |= {"nrows": most + 1, "dtype": {raw: str for raw in header if written(raw) in texts}}
    # All cells are read, as pandas would cut a row with one too many, such as a decimal comma.
    with pd.read_csv(path, chunksize=most + 1 if columns is None else _CHUNK, **how) as read:
        # A chunk after the other: read as categories, "007" among the names would become a 7.
        parts = [_tidy(path, wrong, part, texts) for part in read]
    if columns is None:
        return parts[0]
    parts = [part[[name for name in part if name in columns]] for part in parts]
    parts = [part.astype(dict.fromkeys({*part} & {*texts}, "category")) for part in parts]
    return pd.DataFrame(
        {
            name: union_categoricals([part[name] for part in parts])
            if name in texts
            else pd.concat([part[name] for part in parts], ignore_index=True)
            for name in parts[0]
        }
    )


def as_pandas(form: Form) -> dict[str, Any]:
    """Return what `pandas.read_csv` must be told of a file."""
    return {
        "sep": form.separator,
        "encoding": form.encoding,
        "skiprows": form.header,
        "decimal": "," if form.commas else ".",
    }


def _tidy(path: Path, wrong: type[UserError], table: pd.DataFrame, texts: Names) -> pd.DataFrame:
    """Rows with a cell at least; texts without blanks around and the apostrophes of `escaped`."""
    if not isinstance(table.index, pd.RangeIndex):  # pandas makes what is too much an index
        raise wrong(f"{path}: a row has more cells than the header; quote cells with separators.")
    table = table.rename(columns=lambda name: written(str(name)))
    empty = [n for n in table if str(n).startswith("Unnamed: ") and table[n].isna().all()]
    table = table.drop(columns=empty)
    for name in (name for name in table if is_string_dtype(table[name]) and name in texts):
        words = {word: _cell(word, False) for word in table[name].dropna().unique()}
        table[name] = table[name].map(words)
    return table.dropna(how="all")


def _parquet_frame(
    path: Path, wrong: type[UserError], texts: Names, columns: Names | None, most: int, advice: str
) -> pd.DataFrame:
    parquet = _parquet()
    with parquet.ParquetFile(path) as file:
        check_size(path, wrong, file.metadata.num_rows, most, "rows", advice)
        names = file.schema_arrow.names
    if columns is None:
        return pd.read_parquet(path)
    wanted = [name for name in columns if name in names]
    return parquet.read_table(path, columns=wanted, read_dictionary=[*texts]).to_pandas(
        ignore_metadata=True, self_destruct=True
    )
