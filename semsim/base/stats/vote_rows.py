"""Conversion of rows with the answers of annotators to votes that can be counted."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from semsim.base.alike import class_names, firsts, partners
from semsim.base.columns import IMAGE_KEY, MODEL_KEY, ORIGINAL_ANSWER
from semsim.base.errors import DataError
from semsim.base.stats.evidence import NONE_ANSWER, again_note
from semsim.base.table_files import Unread, first_problem, in_text, same_words, truth

SAME, DIFFERENT = "same", "different"
Row = dict[Hashable, Any]
_ORIGINAL_KEY = ["dataset", "image_id"]
_OF_A_MODEL = ("attack", "model")
_OF_NO_MODEL = ("original", "practice", "catch")  # kinds of items that may be of no model
_SAID = ("class_name", "answer", "recognised", ORIGINAL_ANSWER)  # compared with each other


@dataclass(frozen=True, kw_only=True)
class Sieve:
    """Rows that are still in, and those that have been left out.

    Attributes:
        rows: One row a vote; the column `where` says where each comes from.
    """

    rows: pd.DataFrame
    unread: tuple[Unread, ...] = ()
    notes: tuple[str, ...] = ()

    def without(self, wrong: pd.Series, why: str | Callable[[Row], str]) -> "Sieve":
        """Leave the `wrong` rows out; `why` is one reason, or says it for a row."""
        left = tuple(
            Unread(row["where"], why if isinstance(why, str) else why(row))
            for row in self.rows[wrong].to_dict("records")
        )
        return replace(self, rows=self.rows[~wrong], unread=(*self.unread, *left))

    def replacing(self, column: str, values: pd.Series) -> "Sieve":
        """The same rows with others of the `values`, by their index, in a column."""
        return replace(self, rows=self.rows.assign(**{column: values}))

    def having(self, columns: Sequence[str]) -> "Sieve":
        """Leave out the rows that lack a value in one of `columns` that they should have."""
        kept = self
        for column in columns:
            lacks = kept.rows[column].isna()
            if column in _OF_A_MODEL:
                lacks &= ~lacks_model(kept.rows)
            kept = kept.without(lacks, f"has no {column}")
        return kept


def named(cell: str | None, classes: Sequence[str]) -> str | None:
    """A class as it is called: by number or name of the list, as it stands without a list.

    None for a class the list does not have, and for no class.
    """
    if cell is None or not classes:
        return cell
    if meant := partners([cell], set(classes)):
        return meant[cell]
    return classes[int(cell)] if cell.isdecimal() and int(cell) < len(classes) else None


def with_names(sieve: Sieve, column: str, classes: Sequence[str], keep: Sequence[str]) -> Sieve:
    """Classes in `column` by name; those the list does not have are left out. `keep` stays."""
    cells = sieve.rows[column]
    kept = partners(cells.dropna().unique(), set(keep))
    words = {c: kept.get(c) or named(in_text(c), classes) for c in cells.dropna().unique()}
    names = cells.map(words)
    known = sieve.without(
        cells.notna() & names.isna(),
        lambda row: f"{column} {row[column]} is not in the list of classes",
    )
    return known.replacing(column, names.astype(object))


def with_text(rows: pd.DataFrame, form: Callable[[Any], str | None] = in_text) -> pd.DataFrame:
    """`rows` whose classes, answers and `recognised` are text as `form` has it, or None."""
    said = {name: [form(cell) for cell in rows[name]] for name in _SAID if name in rows}
    return rows.assign(
        **{name: pd.Series(cells, rows.index, object) for name, cells in said.items()}
    )


def counted_votes(sieve: Sieve) -> Sieve:
    """Votes that can be counted: recognised is known, and no annotator votes twice on an image.

    Classes and answers are compared as text. Where `recognised` is absent or missing it is whether
    the answer is the true class, or "same".
    Of an original that is said to show two classes nothing is kept, and neither is of two answers
    of an annotator on one image: which one is right is not for us to say. The same answer in two
    rows is one vote. Raises `DataError` where no vote is left, and for a class called "none".
    """
    columns = dict.fromkeys([*sieve.rows, "class_name", "answer", "recognised"])
    rows = with_text(sieve.rows.reindex(columns=list(columns)))
    complete = replace(sieve, rows=_in_one_form(rows))
    kept = _one_class(complete.having([*IMAGE_KEY, "annotator"]))
    kept = _with_recognised(kept)
    kept = _once(kept)
    if kept.rows.empty:
        raise DataError(f"No vote can be read.{first_problem(kept.unread)}")
    return kept


def _in_one_form(rows: pd.DataFrame) -> pd.DataFrame:
    """Words that are the same in the form that comes first, of a class in that of the class."""
    class_names(rows["class_name"][is_counted(rows)].dropna().unique())
    said = [rows[name].dropna().astype(str).unique() for name in _SAID if name in rows]
    words = firsts([NONE_ANSWER, SAME, DIFFERENT, *(word for column in said for word in column)])
    return same_words(with_text(rows, words.get), (*MODEL_KEY, "annotator"))


def _once(sieve: Sieve) -> Sieve:
    """Each annotator's one vote on an image; rows with different answers name each other."""
    real = sieve.rows[is_counted(sieve.rows)]
    key, said = [*IMAGE_KEY, "annotator"], ["answer", "recognised"]
    again = real.index[real.duplicated([*key, *said])]
    left = real.drop(index=again)
    several = left[left.duplicated(key, keep=False)]
    groups = several.groupby(key)
    told = {
        place: "; ".join(f"{row['where']} says {_words(row)}" for row in rows.to_dict("records"))
        for _, rows in groups
        for place in rows.index
    }
    rows = sieve.rows.drop(index=again).assign(others=pd.Series(told, dtype=object))
    said_twice = again_note(len(again), "vote", "the same person on the same picture")
    noted = replace(sieve, rows=rows, notes=(*sieve.notes, *said_twice))
    found = noted.without(
        rows["others"].notna(),
        lambda row: f"{row['annotator']} gave this image different answers: {row['others']}",
    )
    return replace(found, rows=found.rows.drop(columns="others"))


def _words(row: Row) -> str:
    return repr(row["answer"]) if row["answer"] else f"recognised {bool(row['recognised'])}"


def is_counted(rows: pd.DataFrame) -> pd.Series:
    """Return a mask of the votes that count, on reconstructions; rows that do not state it do."""
    real = pd.Series(True, index=rows.index)
    for column, value in (("status", "counted"), ("kind", "reconstruction")):
        if column in rows:
            real &= rows[column].isna() | (rows[column] == value)
    return real


def lacks_model(rows: pd.DataFrame) -> pd.Series:
    """Return which rows may lack model and attack, as they may show no reconstruction."""
    return rows.get("kind", pd.Series(None, rows.index, dtype=object)).isin(_OF_NO_MODEL)


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
    """Read whether the image was recognised, of the row or from its answer."""
    rows = sieve.rows
    verdict = rows["recognised"].map(truth).astype("boolean")
    alone = rows["answer"].isin([SAME, DIFFERENT, NONE_ANSWER])  # without the true class
    decided = rows["answer"].notna() & (alone | rows["class_name"].notna())
    answered = rows["recognised"].isna() & decided
    right = (rows["answer"] == SAME) | (rows["answer"] == rows["class_name"])
    verdict[answered] = right[answered]
    return sieve.without(verdict.isna(), _why_unknown).replacing("recognised", verdict)


def _why_unknown(row: Row) -> str:
    if row["recognised"] is None:
        return "does not say if it was recognised: no answer, or no true class to compare it with"
    return f"recognised is {row['recognised']!r}, neither true nor false"
