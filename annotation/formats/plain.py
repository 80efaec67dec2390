"""Tables as CSV, JSON Lines and Parquet, and manifests back: what is read is what was written.

JSON Lines and Parquet are exact. In CSV an empty text cannot be told from a missing one, and is
read as missing; formulas are escaped (see `semsim.base.table_files`).
"""

import json
from collections.abc import Callable, Collection, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_datetime64_any_dtype

from annotation.errors import StudyError
from annotation.formats.study_data import StudyData
from annotation.texts import counted
from semsim.base.storage.records import guarded
from semsim.base.table_files import (
    REMARKS,
    check_columns,
    escaped,
    form_of,
    of_table,
    read_plain,
    restored,
    whole_texts,
)

COLUMNS = {"annotator": "worker", "item": "task", "answer": "label"}
KEPT = ("kind", "simulated", "voter")  # to leave decoys out, and what is not from people


def write_crowd_kit(data: StudyData, path: Path) -> str:
    """Write the counted votes as CSV with worker, task, label, kind, simulated and voter.

    Source: crowd-kit's documentation, "data formats".
    """
    table = data.counted[[*COLUMNS, *KEPT]].rename(columns=COLUMNS)
    write_csv(table, path)
    return counted(len(table), "answer")


def as_csv(table: pd.DataFrame) -> str:
    """A table as CSV in which no text is a formula to a spreadsheet."""
    # The line ends of RFC 4180; with others a lone carriage return in a text is not quoted.
    return str(of_table(table, escaped).to_csv(index=False, lineterminator="\r\n"))


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write `table` as CSV in UTF-8, see `as_csv`."""
    path.write_text(as_csv(table), encoding="utf-8", newline="")


def write_jsonl(table: pd.DataFrame, path: Path) -> None:
    """Write `table` as one JSON object a line; what is missing is null, times are ISO 8601."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in records(table):
            file.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")


def write_parquet(table: pd.DataFrame, path: Path) -> None:
    """Write `table` as Parquet."""
    table.to_parquet(path, index=False)


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of `table` as values that JSON knows."""
    columns = {name: _plain(table[name]) for name in table.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _plain(column: pd.Series) -> list[Any]:
    missing = column.isna()
    if is_datetime64_any_dtype(column.dtype):
        column = column.map(lambda time: time.isoformat(), na_action="ignore")
    values = column.astype(object).tolist()
    return [None if gone else value for value, gone in zip(values, missing, strict=True)]


def read_table(path: Path, columns: Collection[str]) -> pd.DataFrame:
    """The table in a .csv, .tsv, .xlsx, .jsonl or .parquet file; `columns` are text in it.

    Further columns come along as they are. Its attribute `REMARKS` has sentences on what was taken
    for granted. Raises `StudyError` for a file that cannot be read or lacks a column.
    """
    readers: dict[str, Callable[[Path], pd.DataFrame]] = {
        ".csv": _read_csv,
        ".tsv": _read_csv,
        ".xlsx": _read_xlsx,
        ".jsonl": partial(_read_jsonl, columns=columns),
        ".parquet": pd.read_parquet,
    }
    read = readers.get(path.suffix.lower())
    if read is None:
        raise StudyError(f"{path} should end in {', '.join(readers)}; got {path.suffix!r}.")
    if not path.exists():
        raise StudyError(f"{path} is missing.")
    with guarded(path, StudyError):
        table = read(path)
    check_columns(table, columns, str(path), StudyError)
    return table.astype(dict.fromkeys(columns, "str"))


def _read_xlsx(path: Path) -> pd.DataFrame:
    found = whole_texts(path, StudyError)
    table = found.cells.reset_index(drop=True)
    table.attrs[REMARKS] = found.remarks
    return table


def _read_csv(path: Path) -> pd.DataFrame:
    # Everything as text: what a class is called, 007 or NA, is nobody's to interpret.
    form, remarks = form_of(path)
    table = pd.read_csv(path, dtype="str", keep_default_na=False, na_values=[""], **vars(form))
    table.attrs[REMARKS] = remarks
    if not isinstance(table.index, pd.RangeIndex):  # pandas makes what is too much an index
        raise ValueError("its rows have more cells than its header")
    return of_table(table, restored)


def _read_jsonl(path: Path, columns: Iterable[str]) -> pd.DataFrame:
    lines = read_plain(path, StudyError).split("\n")
    rows = [_object(line, number) for number, line in enumerate(lines, start=1) if line.strip()]
    # Without a row the file cannot say which columns it has, so none is amiss.
    names = dict.fromkeys(name for row in rows for name in row) if rows else columns
    return pd.DataFrame(
        {name: pd.Series([row.get(name) for row in rows], dtype=object) for name in names}
    )


def _object(line: str, number: int) -> dict[str, Any]:
    row = json.loads(line)
    if not isinstance(row, dict):
        raise ValueError(f"line {number} is not an object {{…}}")
    return row
