"""A CSV or Parquet file as text: every cell a string or missing, every row with its place."""

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from semsim.base.spreadsheet import restored
from semsim.errors import DataError
from semsim.importers.findings import Unread
from semsim.kept.extras import arrow, parquet
from semsim.kept.table_size import check_size
from semsim.words import counted

MOST_ROWS = 1_000_000  # and
MOST_CELLS = 5_000_000  # of a table, every one of which becomes an object
MOST_BYTES = 1 << 29  # of a Parquet file once unpacked
TABLES = (".csv", ".tsv", ".parquet")  # endings; of a list that is one, it is .txt
_FEWER = (
    "So many are not taken in at once, as they would fill the memory. Keep only the columns that "
    "are needed, or cut the table into several files and import one after the other."
)
_DELIMITERS = ",;\t"
_WHOLE = re.compile(r"(-?[0-9]+)\.0+")


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """cells: object columns of str or None; its index says where a row is, such as "line 7".

    unread: rows that do not have as many cells as the header.
    """

    path: Path
    cells: pd.DataFrame
    unread: tuple[Unread, ...] = ()

    def columns(self, *names: str) -> pd.DataFrame:
        """Those columns; `DataError` names the absent ones and those there are."""
        absent = [name for name in names if name not in self.cells]
        if absent:
            raise DataError(
                f"{self.path} lacks the columns {', '.join(absent)}. "
                f"It has: {', '.join(map(str, self.cells))}."
            )
        return self.cells[list(names)]


def read_text_table(path: Path) -> TextTable:
    """The table in `path`; CSV may be separated by commas, semicolons or tabs.

    White space around a cell is no part of it, and an empty cell is missing. Raises `DataError`
    for a file that is neither CSV nor Parquet by its name, cannot be read, or has more than
    `MOST_ROWS` rows, `MOST_CELLS` cells or, unpacked, `MOST_BYTES`; of a longer one no more than
    that is read.
    """
    readers = dict.fromkeys((*TABLES, ".txt"), _read_csv) | {".parquet": _read_parquet}
    if path.suffix.lower() not in readers:
        raise DataError(f"{path} should end in .csv, .tsv, .txt or .parquet.")
    pa = arrow()
    try:
        table = readers[path.suffix.lower()](path)
    except (OSError, ValueError, csv.Error, pa.ArrowException) as error:
        raise DataError(f"{path} is not a readable table ({error}).") from error
    if table.cells.empty and not table.unread:
        raise DataError(f"{path} holds no row.")
    return table


def _read_csv(path: Path) -> TextTable:
    with path.open(encoding="utf-8-sig", newline="") as file:
        first = file.readline()
        file.seek(0)
        reader = csv.reader(file, delimiter=max(_DELIMITERS, key=first.count), strict=True)
        header = [name.strip() for name in next(reader, [])]
        numbered: list[tuple[int, list[str]]] = []
        n_cells = 0
        for row in reader:
            n_cells += len(row)
            _check_size(path, len(numbered) + bool(row), n_cells)
            if row:
                numbered.append((reader.line_num, row))
    _check_header(path, header)
    whole = [(line, row) for line, row in numbered if len(row) == len(header)]
    cells = pd.DataFrame(
        [[restored(cell).strip() or None for cell in row] for _, row in whole],
        columns=header,
        index=pd.Index([f"line {line}" for line, _ in whole], dtype=object),
        dtype=object,
    )
    unread = tuple(
        Unread(
            f"{path.name} line {line}",
            f"has {counted(len(row), 'cell')}, the header has {len(header)}",
        )
        for line, row in numbered
        if len(row) != len(header)
    )
    return TextTable(path=path, cells=cells, unread=unread)


def _check_size(path: Path, n_rows: int, n_cells: int) -> None:
    check_size(path, n_rows, MOST_ROWS, "rows", _FEWER)
    check_size(path, n_cells, MOST_CELLS, "cells", _FEWER)


def _check_header(path: Path, header: list[str]) -> None:
    if len(set(header)) < len(header) or "" in header:
        raise DataError(f"{path}: columns need a name each; the header is {', '.join(header)!r}.")


def _read_parquet(path: Path) -> TextTable:
    with parquet().ParquetFile(path) as file:
        found = file.metadata
        _check_size(path, found.num_rows, found.num_rows * found.num_columns)
        groups = map(found.row_group, range(found.num_row_groups))
        columns = (one.column(n) for one in groups for n in range(one.num_columns))
        size = sum(column.total_uncompressed_size for column in columns)
        check_size(path, size, MOST_BYTES, "bytes, unpacked", _FEWER)
        names = file.schema_arrow.names
    # What is said a thousand times is held once, as the file may have it.
    read = parquet().read_table(path, read_dictionary=names)
    unnamed = [name for name in names if name.startswith("__index_level_")]  # by pandas
    table = read.drop_columns(unnamed).to_pandas(ignore_metadata=True)
    cells = pd.DataFrame({str(name): _texts(table[name]) for name in table})
    cells.index = pd.Index([f"row {row}" for row in range(1, len(table) + 1)], dtype=object)
    return TextTable(path=path, cells=cells.where(cells.notna(), None))


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
    return in_text(value) if isinstance(value, float) else str(value).strip() or None


def in_text(cell: Any) -> str | None:
    """What a cell says, None where it is missing; 3.0 is 3, be it a number or text.

    A column with gaps makes floats of integers, and is written so too.
    """
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    text = "" if pd.isna(cell) else str(cell).strip()
    found = _WHOLE.fullmatch(text)
    return found[1] if found else text or None
