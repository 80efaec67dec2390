"""Tables cut and turned until a page of paper holds them without losing a column."""

from dataclasses import replace

import pandas as pd

from semsim.reporting.tables import Table

_LETTERS = 125  # of a line on A4 in the size tables are printed in
_BETWEEN = 3  # letters of room a column takes besides its text
_WIDEST = 26  # letters from which a cell is broken into lines


def in_blocks(table: Table, letters: int = _LETTERS) -> list[Table]:
    """The table in parts that are narrow enough; each begins with its first column again."""
    widths = [_width(table.cells.iloc[:, place]) for place in range(table.cells.shape[1])]
    parts: list[list[int]] = [[]]
    for place in range(1, len(widths)):
        if parts[-1] and widths[0] + sum(widths[one] for one in (*parts[-1], place)) > letters:
            parts.append([])
        parts[-1].append(place)
    return [_part(table, [0, *places]) for places in parts] if widths else [table]


def turned(
    table: Table, rows: str, columns: str, values: dict[str, str], caption: str | None = None
) -> Table:
    """A row for each text of the column `rows`, a column for each of the column `columns`.

    values: which columns of cells are kept, by what is put before their new headings. caption:
    instead of the table's, where that tells of columns that are not kept.
    """
    cells = table.cells.reset_index(drop=True)
    if cells.empty:
        return table
    kept = {
        " ".join(filter(None, (before, str(text)))): (own, column)
        for text, own in cells.groupby(columns, sort=False)
        for column, before in values.items()
    }
    names = list(dict.fromkeys(cells[rows]))
    wide = pd.DataFrame(
        {heading: own.set_index(rows)[column] for heading, (own, column) in kept.items()},
        index=names,
    ).fillna("–")
    wide.insert(0, rows, wide.index)
    best = {
        (names.index(cells.at[row, rows]), place)
        for place, (own, column) in enumerate(kept.values(), start=1)
        for row in own.index
        if (row, list(cells).index(column)) in table.best
    }
    return replace(
        table,
        cells=wide.reset_index(drop=True),
        best=frozenset(best),
        caption=table.caption if caption is None else caption,
    )


def _width(column: pd.Series) -> int:
    heading = max(map(len, str(column.name).split()), default=0)
    longest = max((len(str(text)) for text in column), default=0)
    return max(heading, min(longest, _WIDEST)) + _BETWEEN


def _part(table: Table, places: list[int]) -> Table:
    at = {place: new for new, place in enumerate(places)}
    best = frozenset((row, at[place]) for row, place in table.best if place in at)
    return replace(table, cells=table.cells.iloc[:, places], best=best)
