"""A table of one's own: numbers and categories in, one number out, or a number for every image.

What one party makes of the words in its table has to be what another makes of them, so that the
coding can be handed on: which categories each column has, and what the target's unit is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from pandas.api.types import is_numeric_dtype
from torch import Tensor

from semsim.base.errors import DataError, SettingsError
from semsim.base.table_files import in_text, read_frame
from semsim.images import is_image_file, read_images

Coding = Mapping[str, Any]  # ready for JSON
_MOST = 100  # categories of a column: more are names, which say nothing about anybody else
_FEWEST = 5  # rows, of which a fifth are for tests
_MOST_ROWS = 100_000_000
_ENDINGS = (".png", ".jpg", ".jpeg")


@dataclass(frozen=True, kw_only=True)
class OwnTable:
    """A CSV file with a heading, a row an example.

    path: the file; its columns are parted by commas, semicolons or tabs. target: the column that
    is predicted: numbers, or two words, which are 0 and 1 in alphabetical order.
    images: a folder; the first column then names a file in it, with or without its ending, and
    the other columns are not used. size: images are resized to `size` × `size`.
    """

    path: str = ""
    target: str = ""
    images: str = ""
    size: int = 32

    def __post_init__(self) -> None:
        for name, value in (("path", self.path), ("target", self.target)):
            if not value:
                raise SettingsError(f"A table needs {name}=…: table:path=bank.csv,target=y.")

    def read(self, coding: Coding | None = None) -> tuple[Tensor, Tensor, Coding]:
        """Inputs (N, columns) or (N, 3, size, size), targets (N, 1), and the coding they are in.

        coding: another party's, instead of one made from this table. Raises `DataError` for a
        table that cannot be read, with what to do about it.
        """
        table = _frame(Path(self.path))
        if self.target not in table:
            raise DataError(
                f"{self.path} has no column {self.target!r}. It has: {', '.join(map(str, table))}."
            )
        wanted = (coding or {}).get("target") or _target_coding(table[self.target])
        targets = torch.as_tensor(_targets(table[self.target], wanted))[:, None]
        rest = table.drop(columns=self.target)
        if rest.empty:
            raise DataError(f"{self.path} has no column beside the target {self.target!r}.")
        if self.images:
            first = str(rest.columns[0])
            names = _frame(Path(self.path), texts=(first,))[first]
            paths = [_file(Path(self.images), in_text(name) or "") for name in names]
            size = (self.size, self.size)
            return read_images(paths, size), targets, {"target": wanted}
        columns = (coding or {}).get("columns") or [_column_coding(rest[name]) for name in rest]
        values = np.concatenate([_coded(rest, one) for one in columns], axis=1)
        return torch.as_tensor(values), targets, {"target": wanted, "columns": columns}


def own_table_text(path: Path | None, target: str | None) -> str:
    """The data text of an `OwnTable`; `SettingsError` where one of the two is missing."""
    if path is None or not target:
        raise SettingsError("A table needs --table and --target, the column that is predicted.")
    return f"table:path={path.resolve()},target={target}"


def _frame(path: Path, texts: Sequence[str] = ()) -> pd.DataFrame:
    """The table at `path`; numbers in the columns `texts` stay as they are written."""
    if not path.is_file():
        raise DataError(f"There is no table {path}.")
    found = read_frame(path, DataError, texts=texts, most=_MOST_ROWS)
    if len(found) < _FEWEST:
        raise DataError(f"{path} has {len(found)} rows; {_FEWEST} or more are needed.")
    return found


def _whole(column: pd.Series) -> np.ndarray:
    """A column of numbers; `DataError` where a cell holds none."""
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(float)
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if len(wrong):
        raise DataError(
            f"Column {column.name!r} holds numbers, but {len(wrong)} of its cells do not, first in "
            f"row {wrong[0] + 2}: {column.iloc[wrong[0]]!r}. Fill them in, or leave these rows out."
        )
    return numbers


def _target_coding(column: pd.Series) -> dict[str, Any]:
    if is_numeric_dtype(column):
        numbers = _whole(column)
        if len(np.unique(numbers)) < 2:
            raise DataError(f"The target {column.name!r} is {numbers[0]:g} everywhere.")
        if set(numbers) == {0.0, 1.0}:
            return {"mean": 0.0, "std": 1.0}
        return {"mean": float(numbers.mean()), "std": float(numbers.std(ddof=1))}
    words = sorted(set(column.dropna()))
    if len(words) != 2 or column.hasnans:
        raise DataError(
            f"The target {column.name!r} has {len(words)} different words"
            f"{' and empty cells' if column.hasnans else ''}; it has to be a number, or one of two "
            "words. Classes of images go into folders instead: folder:root=…"
        )
    return {"words": words}


def _targets(column: pd.Series, coding: Coding) -> np.ndarray:
    """0 and 1 for two words, or numbers in standard deviations; 0 and 1 stay what they are."""
    if "words" in coding:
        return _positions(column, coding["words"]).astype(float)
    return (_whole(column) - coding["mean"]) / coding["std"]


def _column_coding(column: pd.Series) -> list[Any]:
    """The column's name, and its categories, or None where it holds numbers."""
    if is_numeric_dtype(column):
        return [column.name, None]
    words = sorted(set(_words(column)))
    if len(words) > _MOST:
        raise DataError(
            f"Column {column.name!r} has {len(words)} different words, as names have; a category "
            f"is one of at most {_MOST}. Leave the column out."
        )
    return [column.name, words]


def _coded(table: pd.DataFrame, coding: Sequence[Any]) -> np.ndarray:
    """One column as (N, 1) numbers, or as (N, categories) zeros and ones."""
    name, words = coding
    if name not in table:
        raise DataError(f"The table has no column {name!r}, which the others' have.")
    if words is None:
        return _whole(table[name])[:, None]
    return np.eye(len(words))[_positions(_words(table[name]), words)]


def _words(column: pd.Series) -> pd.Series:
    """An empty cell is a category of its own."""
    return column.fillna("").astype(str)


def _positions(column: pd.Series, words: Sequence[str]) -> np.ndarray:
    places = pd.Index(words).get_indexer(pd.Index(column))
    if (places < 0).any():
        odd = column[places < 0].iloc[0]
        raise DataError(f"{odd!r} in column {column.name!r} is none of {', '.join(words)}.")
    return np.asarray(places)


def _file(folder: Path, name: str) -> Path:
    """The image of a name; `DataError` says that it, or the folder, is missing."""
    if not folder.is_dir():
        raise DataError(f"There is no folder {folder}.")
    for path in (folder / name, *(folder / f"{name}{ending}" for ending in _ENDINGS)):
        if path.is_file() and is_image_file(path):
            return path
    raise DataError(
        f"There is no image {name!r} in {folder}, with or without {', '.join(_ENDINGS)}. The first "
        "column of the table names the files."
    )
