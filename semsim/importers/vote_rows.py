"""From rows that say what somebody answered to votes that can be counted."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from semsim.analysis.evidence import IMAGE_KEY, NONE_ANSWER, ORIGINAL_ANSWER
from semsim.errors import DataError
from semsim.importers.findings import Unread, first_problem
from semsim.importers.text_table import in_text

YES = {"true", "1", "yes"}  # however it is written
NO = {"false", "0", "no"}
SAME, DIFFERENT = "same", "different"
Row = dict[Hashable, Any]
_ORIGINAL_KEY = ["dataset", "image_id"]
_SAID = ("class_name", "answer", "recognised", ORIGINAL_ANSWER)  # compared with each other


@dataclass(frozen=True, kw_only=True)
class Sieve:
    """Rows that are still in, and those that have been left out.

    rows: one row a vote; the column `where` says where each comes from.
    """

    rows: pd.DataFrame
    unread: tuple[Unread, ...] = ()

    def without(self, wrong: pd.Series, why: str | Callable[[Row], str]) -> "Sieve":
        """Leave the `wrong` rows out; `why` is one reason, or says it for a row."""
        left = tuple(
            Unread(row["where"], why if isinstance(why, str) else why(row))
            for row in self.rows[wrong].to_dict("records")
        )
        return Sieve(rows=self.rows[~wrong], unread=(*self.unread, *left))

    def replacing(self, column: str, values: pd.Series) -> "Sieve":
        """The same rows with other `values` in a column."""
        return Sieve(rows=self.rows.assign(**{column: values}), unread=self.unread)

    def having(self, columns: Sequence[str]) -> "Sieve":
        """Leave out the rows that lack a value in one of `columns`."""
        kept = self
        for column in columns:
            kept = kept.without(kept.rows[column].isna(), f"has no {column}")
        return kept


def named(cell: str | None, classes: Sequence[str]) -> str | None:
    """A class as it is called: by number or name of the list, as it stands without a list.

    None for a class the list does not have, and for no class.
    """
    if cell is None or not classes:
        return cell
    if cell in classes:
        return cell
    return classes[int(cell)] if cell.isdecimal() and int(cell) < len(classes) else None


def with_names(sieve: Sieve, column: str, classes: Sequence[str], keep: Sequence[str]) -> Sieve:
    """Classes in `column` by name; those the list does not have are left out. `keep` stays."""
    cells = sieve.rows[column]
    names = cells.map(lambda cell: cell if cell in keep else named(in_text(cell), classes))
    known = sieve.without(
        cells.notna() & names.isna(),
        lambda row: f"{column} {row[column]} is not in the list of classes",
    )
    return known.replacing(column, names[known.rows.index].astype(object))


def with_text(rows: pd.DataFrame) -> pd.DataFrame:
    """`rows` whose classes, answers and `recognised` are text as `in_text` has it, or None."""
    said = {name: [in_text(cell) for cell in rows[name]] for name in _SAID if name in rows}
    return rows.assign(
        **{name: pd.Series(cells, rows.index, object) for name, cells in said.items()}
    )


def counted_votes(sieve: Sieve) -> Sieve:
    """Votes that can be counted: recognised is known, and no annotator votes twice on an image.

    Classes and answers are compared as text. Where `recognised` is absent or missing it is whether
    the answer is the true class, or "same".
    Of an original that is said to show two classes nothing is kept, and neither is of an
    annotator's two counted votes on one image: which one is right is not for us to say. Raises
    `DataError` where no vote is left.
    """
    columns = dict.fromkeys([*sieve.rows, "class_name", "answer", "recognised"])
    rows = with_text(sieve.rows.reindex(columns=list(columns)))
    complete = Sieve(rows=rows, unread=sieve.unread)
    kept = _one_class(complete.having([*IMAGE_KEY, "annotator"]))
    kept = _with_recognised(kept)
    real = kept.rows[is_counted(kept.rows)]
    twice = real.index[real.duplicated([*IMAGE_KEY, "annotator"], keep=False)]
    kept = kept.without(
        pd.Series(kept.rows.index.isin(twice), kept.rows.index),
        "the annotator has several votes on this image",
    )
    if kept.rows.empty:
        raise DataError(f"No vote can be read.{first_problem(kept.unread)}")
    return kept


def is_counted(rows: pd.DataFrame) -> pd.Series:
    """Which rows are votes that count, on reconstructions; rows that do not say so do."""
    real = pd.Series(True, index=rows.index)
    for column, value in (("status", "counted"), ("kind", "reconstruction")):
        if column in rows:
            real &= rows[column].isna() | (rows[column] == value)
    return real


def _one_class(sieve: Sieve) -> Sieve:
    real = sieve.rows[is_counted(sieve.rows)].dropna(subset="class_name")
    names = real.groupby(_ORIGINAL_KEY)["class_name"].unique()
    several = names[names.map(len) > 1].map(lambda found: ", ".join(sorted(found))).to_dict()
    keys = zip(*(sieve.rows[key] for key in _ORIGINAL_KEY), strict=True)
    return sieve.without(
        pd.Series([key in several for key in keys], sieve.rows.index, dtype=bool),
        lambda row: (
            f"image {row['image_id']} has classes {several[row['dataset'], row['image_id']]}"
        ),
    )


def _with_recognised(sieve: Sieve) -> Sieve:
    rows = sieve.rows
    words = rows["recognised"].map(lambda cell: (cell or "").lower())
    verdict = pd.Series(pd.NA, index=rows.index, dtype="boolean")
    verdict[words.isin(YES)] = True
    verdict[words.isin(NO)] = False
    answered = (words == "") & _decides(rows)
    right = (rows["answer"] == SAME) | (rows["answer"] == rows["class_name"])
    verdict[answered] = right[answered]
    known = sieve.without(verdict.isna(), _why_unknown)
    return known.replacing("recognised", verdict[known.rows.index])


def _why_unknown(row: Row) -> str:
    if row["recognised"] is None:
        return "does not say if it was recognised: no answer, or no true class to compare it with"
    return f"recognised is {row['recognised']!r}, neither true nor false"


def _decides(rows: pd.DataFrame) -> pd.Series:
    """Where an answer says by itself, or with the true class, if the image was recognised."""
    alone = rows["answer"].isin([SAME, DIFFERENT, NONE_ANSWER])
    return rows["answer"].notna() & (alone | rows["class_name"].notna())
