"""Say where results lie in the tables of a finished run: a cell, several cells, a table of them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from benchmarks.claims import Claim
from benchmarks.keeping import line

Tables = Mapping[str, pd.DataFrame]
Find = Callable[[Tables], Claim]


class Read(NamedTuple):
    """Tables of a finished run by name, whose rows have names, and when it ended."""

    tables: dict[str, pd.DataFrame]
    made: str


@dataclass(frozen=True, kw_only=True)
class Part:
    """A reproduction: the tables that it makes, and the results that are kept of them.

    paper: its file of results. makes: words after `semsim-studio`, command by command, with
    {folder} and {images}. read: takes the folder. where: the keys that it keeps. orders: files of
    JSON in the folder that a command reads, with {images}.
    """

    paper: str
    makes: tuple[str, ...]
    read: Callable[[Path], Read]
    where: Mapping[str, Find]
    orders: Mapping[str, str] = field(default_factory=dict)

    def found(self, tables: Tables) -> dict[str, Claim]:
        """Return every key's result; `LookupError` names the key whose row is missing."""
        claims = {}
        for key, find in self.where.items():
            try:
                claims[key] = find(tables)
            except LookupError as error:
                raise LookupError(f"{key} is not in this folder: {error.args[0]}.") from error
        return claims


@dataclass(frozen=True)
class At:
    """A number of a row, or what `of` makes of the numbers of several rows and columns.

    times: factor. n: the column that counts what each row rests on, which are units. ends: columns
    of its interval. whole: rounded.
    """

    table: str
    rows: str | tuple[str, ...]
    columns: str | tuple[str, ...]
    of: Callable[[Sequence[float]], float] = min
    times: float = 1
    n: str = ""
    units: str = ""
    ends: tuple[str, str] | None = None
    unit: str = ""
    whole: bool = False

    def __call__(self, tables: Tables) -> Claim:
        """Return the number as a result."""
        named = [row_of(tables, self.table, row) for row in _each(self.rows)]
        value = self.times * self.of([float(row[c]) for row in named for c in _each(self.columns)])
        ends = [float(named[0][end]) for end in self.ends or ()]
        low, high = ends if ends and not any(map(math.isnan, ends)) else (None, None)
        return Claim(
            round(value) if self.whole and math.isfinite(value) else value,
            low,
            high,
            over_rows(f"{named[0][self.n]:.0f} {self.units}".strip(), len(named)) if self.n else "",
            self.unit,
        )


def percent(
    table: str,
    rows: str | tuple[str, ...],
    columns: str | tuple[str, ...],
    of: Callable[[Sequence[float]], float] = min,
) -> At:
    """Return a share as whole per cents."""
    return At(table, rows, columns, of, times=100, unit="%", whole=True)


def less(more: At, other: At, unit: str = "") -> Find:
    """Return by how much one number is above another."""

    def find(tables: Tables) -> Claim:
        found = [one(tables) for one in (more, other)]
        values = [float(one.value) for one in found]  # type: ignore[arg-type]
        return Claim(values[0] - values[1], n=found[0].n, unit=unit)

    return find


def over_rows(n: str, rows: int) -> str:
    """Return what so many rows rest on, of which each rests on `n`."""
    return n if rows == 1 else f"{n} a row, {rows} rows"


def row_of(tables: Tables, table: str, row: str) -> "pd.Series[Any]":
    """Return a row by its name; `LookupError` says which there are where there is none."""
    frame = tables[table]
    if row not in frame.index:
        known = ", ".join(map(str, frame.index)) or "none"
        raise LookupError(f"the table {table} has no row {row!r}; its rows are {known}")
    found = frame.loc[row]
    if not isinstance(found, pd.Series):
        raise LookupError(f"the table {table} has several rows {row!r}")
    return found


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Claim:
    """Return a table as a result."""
    head = [line(*columns), line(*["---"] * len(columns))]
    return Claim([*head, *(line(*row) for row in rows)])


def spread(values: Iterable[float], digits: int) -> str:
    """Return mean ± standard deviation; the mean alone where there is one value or no spread."""
    found = pd.Series(list(values), dtype=float)
    mean, sd = found.mean(), found.std()
    return f"{mean:.{digits}f}" + ("" if pd.isna(sd) else f" ± {sd:.{digits}f}")


def indexed(frame: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """Return a table whose rows have these names."""
    return frame.set_axis(pd.Index(list(names)), axis="index")


def ended(*paths: Path) -> str:
    """Return when the last of these files was written."""
    last = datetime.fromtimestamp(max(path.stat().st_mtime for path in paths), UTC)
    return f"{last:%-d %B %Y}, done at {last:%H:%M} UTC"


def _each(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names
