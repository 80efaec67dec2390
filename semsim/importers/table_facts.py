"""What a table says of reconstructions besides votes: labels that came with it, and scores."""

import math
from collections.abc import Callable, Mapping

import pandas as pd

from semsim.analysis.evidence import GIVEN, IMAGE_KEY
from semsim.importers.findings import Unread
from semsim.importers.vote_rows import NO, YES
from semsim.scores.scoring import SCORE_COLUMNS


def facts_of(
    key: pd.DataFrame, cells: pd.DataFrame, given: Mapping[str, str]
) -> tuple[pd.DataFrame, tuple[Unread, ...]]:
    """One row a reconstruction: its key and, for each name in `given`, `human:<name>`.

    key: of the rows about reconstructions, in step with `cells` by its index. given: columns of
        `cells` by name.
    """
    facts = key[IMAGE_KEY].drop_duplicates().reset_index(drop=True)
    unread: list[Unread] = []
    for name, column in given.items():
        values, problems = _one_each(key, cells[column], _share)
        facts = facts.merge(values.rename(GIVEN + name), on=IMAGE_KEY, how="left")
        unread += problems
    return facts, tuple(unread)


def scores_of(
    key: pd.DataFrame, cells: pd.DataFrame, columns: Mapping[str, tuple[str, float]]
) -> tuple[pd.DataFrame | None, tuple[Unread, ...]]:
    """Scores of images; None where no metric is named.

    columns: by metric, the column and what its values are divided by.
    """
    parts: list[pd.DataFrame] = []
    unread: list[Unread] = []
    for metric, (column, divisor) in columns.items():
        values, problems = _one_each(key, cells[column], _number)
        parts.append((values / divisor).rename("value").reset_index().assign(metric=metric))
        unread += problems
    return (pd.concat(parts)[list(SCORE_COLUMNS)] if parts else None), tuple(unread)


def _one_each(
    key: pd.DataFrame, column: pd.Series, parse: Callable[[str], float]
) -> tuple[pd.Series, list[Unread]]:
    """The value of `column` for each reconstruction that has one, float64 by its key."""
    cells = key[IMAGE_KEY].assign(text=column).dropna().drop_duplicates()
    unread, values = [], {}
    for (*one, text), several in zip(
        cells.to_numpy().tolist(), cells.duplicated(IMAGE_KEY, keep=False), strict=True
    ):
        where = f"{column.name} of image {one[3]} of {one[2]}"
        if several:
            unread.append(Unread(where, f"{text} is not its only value"))
            continue
        try:
            values[tuple(one)] = parse(text)
        except ValueError:
            unread.append(Unread(where, f"cannot be read: {text}"))
    index = pd.MultiIndex.from_tuples(list(values), names=IMAGE_KEY)
    return pd.Series(list(values.values()), index=index, dtype=float), unread


def _number(text: str) -> float:
    """A score, which may be infinite; raises `ValueError` for what is no number."""
    number = float(text)
    if math.isnan(number):
        raise ValueError(text)
    return number


def _share(text: str) -> float:
    """A label as a number in [0, 1]; raises `ValueError` for another."""
    word = text.lower()
    if word in YES | NO:
        return float(word in YES)
    if not 0 <= float(word) <= 1:
        raise ValueError(text)
    return float(word)
