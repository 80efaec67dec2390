"""Votes, labels and scores in one CSV or Parquet file.

Long: one row a vote, with the columns model, image_id, annotator and answer or recognised.
Wide: one row a reconstruction, with a column of answers for each annotator.
Shares: one row a reconstruction, with what people said as a number in [0, 1] and no votes.
Further columns are named by the settings; the tables a study exports need none.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from semsim.base.alike import alike
from semsim.base.columns import (
    ARCHITECTURE,
    IMAGE_KEY,
    LEAKS,
    MODEL_KEY,
    ORIGINAL_ANSWER,
    RATED,
    SCORE_COLUMNS,
    VOTE_COLUMNS,
    ScoreColumn,
)
from semsim.base.errors import DataError, SettingsError
from semsim.base.progress import Progress, Report, silent
from semsim.base.registry import setting
from semsim.base.stats.agreement import check_metric_name
from semsim.base.stats.evidence import GIVEN, GIVEN_ERROR, NONE_ANSWER
from semsim.base.stats.grouping import named_in
from semsim.base.stats.measures import PEOPLE
from semsim.base.stats.vote_rows import (
    DIFFERENT,
    SAME,
    Row,
    Sieve,
    counted_votes,
    lacks_model,
    with_names,
    with_text,
)
from semsim.base.table_files import TextTable, in_text, read_texts, same_words, truth
from semsim.base.words import counted
from semsim.importers.class_names import CLASS_LIST, read_class_names
from semsim.importers.human_tables import labels_found, votes_found
from semsim.importers.import_plan import Findings, Unread
from semsim.metrics import find_metric, is_known

# A metric's column, what its values are divided by, and which way it leaks if it is not known here.
_SCORE = re.compile(
    r"(?P<column>[^:/]+)(/(?P<divisor>[0-9.]*[1-9][0-9.]*))?(:(?P<way>higher|lower))?"
)
_CONSTANT = ("study", "votes_per_item", "headline")  # the same in every row of an export
_PEOPLE_ERROR = "people_error"  # column of the standard error of people's shares
# Columns of a vote that settings name.
_SAID = ("model", "image_id", "class_name", "annotator", "answer", "recognised")


@dataclass(frozen=True, kw_only=True)
class Table:
    """One CSV or Parquet file: a row a vote, or a row a reconstruction and a column a person.

    A table without a column of annotators may hold people's shares: those that --given names, else
    the column people, with its standard errors in people_error.
    """

    model: str = setting("model", text="Column of the model's name.", option="model-column")
    image_id: str = setting(
        "image_id", text="Column of the original's id.", option="image-id-column"
    )
    class_name: str = setting(
        "class_name", text="Column of the true class.", option="class-name-column"
    )
    annotator: str = setting("annotator", text="Column of who voted.", option="annotator-column")
    answer: str = setting("answer", text="Column of what they answered.", option="answer-column")
    recognised: str = setting(
        "recognised",
        text="Column of true or false; else answer = class.",
        option="recognised-column",
    )
    annotators: str = setting(
        "",
        text="Columns of answers, one a person, with commas; makes the table wide.",
        option="answer-columns",
    )
    none: str = setting(NONE_ANSWER, text="The answer that means none.")
    given: str = setting("", text="Labels that came with the data, as name=column with commas.")
    errors: str = setting("", text="Standard errors of given labels, as name=column with commas.")
    architecture: str = setting(
        "architecture", text="Column of the target's network.", option="architecture-column"
    )
    scores: str = setting(
        "",
        text="Scores: metric=column, metric=column/number or, custom, name=column:lower.",
    )
    flags: str = setting(
        "", text="Columns of 0 and 1 whose ones the report counts.", option="flag-columns"
    )
    classes: Path | None = setting(None, text=CLASS_LIST)
    dataset: str = setting("unknown", text="Data set, where no column dataset says it.")
    attack: str = setting("unknown", text="Attack, where no column attack says it.")
    votes_per_item: int | None = setting(None, text="Votes each reconstruction was to get.")
    headline: str = setting("", text="Human score to rank by: a rule or a given label.")

    def __call__(self, source: Path, name: str, report: Report = silent) -> Findings:
        """The votes of the table, and the labels and scores its settings name."""
        scored = score_columns(self.scores)
        leaks = {metric: column.leaks for metric, column in scored.items() if column.leaks}
        table = read_texts(source, DataError)
        has_votes = bool(self.annotators) or self.annotator in table.cells
        given, errors = self._shares(table, has_votes)
        keys = (self.model, self.annotator, "dataset", "attack")
        table = replace(table, cells=same_words(table.cells, keys))
        columns = (column.name for column in scored.values())
        table.columns(self.model, self.image_id, *given.values(), *errors.values(), *columns)
        constant = _constants(table)
        key = self._keyed(table)
        facts, unclear = facts_of(key, table.cells, given, errors)
        facts = facts.merge(self._architectures(key, table.cells), on=MODEL_KEY, how="left")
        scores, unscored = scores_of(key, table.cells, scored)
        if scores is not None and leaks:
            scores = scores.assign(**{LEAKS: scores["metric"].map(leaks)})
        headline, blank = self.headline or constant.get("headline"), 0
        if given and not has_votes:
            facts, unknown = self._classes(facts, key, table)
            unclear = (*unclear, *unknown)
            headline = headline or next(iter(given))
            found = labels_found(facts, scores, name=name, headline=headline)
        else:
            rows, blank = self._wide(table) if self.annotators else (self._long(table), 0)
            found = votes_found(
                self._votes(rows),
                name=name,
                headline=headline or "majority",
                votes_per_item=self.votes_per_item or _whole_number(constant.get("votes_per_item")),
                facts=facts,
                scores=scores,
            )
        report(Progress(1, 1, "reading rows"))
        flags = table.columns(*_names(self.flags))
        flagged = {str(name): sum(map(bool, flags[name].map(truth))) for name in flags}
        empty = counted(blank, "empty cell is no vote", "empty cells are no votes")
        return replace(
            found,
            counts={**found.counts, **flagged},
            unread=(*table.unread, *found.unread, *unclear, *unscored),
            notes=(*table.remarks, *found.notes, *((f"{empty}.",) if blank else ())),
        )

    def _shares(self, table: TextTable, has_votes: bool) -> tuple[dict[str, str], dict[str, str]]:
        """Return the columns of given labels and of their standard errors, by name."""
        given, errors = (_assignments(name, getattr(self, name)) for name in ("given", "errors"))
        if not (given or has_votes) and PEOPLE in table.cells:
            given = {PEOPLE: PEOPLE}
            known = _PEOPLE_ERROR in table.cells
            errors = errors or ({PEOPLE: _PEOPLE_ERROR} if known else {})
        for name in errors.keys() - given.keys():
            raise SettingsError(f"errors: no given label is called {name!r}. Name it in --given.")
        return given, errors

    def _architectures(self, key: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
        """Return the network of each model that states one; of a model's name its first word."""
        column = cells.get(self.architecture, pd.Series(None, cells.index, dtype=object))
        known = key.assign(**{ARCHITECTURE: column}).dropna().drop_duplicates(MODEL_KEY)
        if self.architecture == self.model:
            known[ARCHITECTURE] = [name for name, _ in named_in(known)]
        return known[[*MODEL_KEY, ARCHITECTURE]]

    def _classes(
        self, facts: pd.DataFrame, key: pd.DataFrame, table: TextTable
    ) -> tuple[pd.DataFrame, tuple[Unread, ...]]:
        """Return `facts` with the class of each picture, where the table has it."""
        if self.class_name not in table.cells:
            return facts, ()
        where = f"{table.path.name} " + table.cells.index.to_series()
        rows = key.assign(class_name=table.cells[self.class_name], where=where).dropna()
        sieve = with_names(Sieve(rows=rows), "class_name", read_class_names(self.classes), ())
        classes = sieve.rows[[*IMAGE_KEY, "class_name"]].drop_duplicates(IMAGE_KEY)
        return facts.merge(classes, on=IMAGE_KEY, how="left"), sieve.unread

    def _long(self, table: TextTable) -> pd.DataFrame:
        table.columns(self.annotator)
        if self.answer not in table.cells and self.recognised not in table.cells:
            table.columns(self.answer, self.recognised)
        every = dict.fromkeys((*_SAID, *VOTE_COLUMNS, *RATED, ORIGINAL_ANSWER))
        wanted = {
            name: getattr(self, name) if name in _SAID else name
            for name in every
            if name not in _CONSTANT
        }
        found = {name: column for name, column in wanted.items() if column in table.cells}
        rows = table.cells[list(found.values())].set_axis(list(found), axis=1)
        rows = rows.assign(where=f"{table.path.name} " + rows.index.to_series())
        return rows.reset_index(drop=True)

    def _wide(self, table: TextTable) -> tuple[pd.DataFrame, int]:
        """One row a vote, and how many cells are empty."""
        people = _names(self.annotators)
        table.columns(self.class_name, *people)
        named = {"model": self.model, "image_id": self.image_id, "class_name": self.class_name}
        named |= {name: name for name in ("dataset", "attack") if name in table.cells}
        wide = pd.DataFrame({name: table.cells[column] for name, column in named.items()})
        wide["where"] = f"{table.path.name} " + wide.index.to_series()
        rows = pd.concat(
            [wide.assign(annotator=person, answer=table.cells[person]) for person in people]
        )
        voted = rows.dropna(subset="answer").reset_index(drop=True)
        voted["where"] += ", " + voted["annotator"]
        return voted, len(rows) - len(voted)

    def _votes(self, rows: pd.DataFrame) -> Sieve:
        classes = read_class_names(self.classes)
        for name, otherwise in (("dataset", self.dataset), ("attack", self.attack)):
            there = rows[name] if name in rows else pd.Series(None, rows.index, dtype=object)
            needs = there.isna() & ~(lacks_model(rows) if name == "attack" else False)
            rows[name] = there.mask(needs, otherwise)
        rows = with_text(rows)
        if "answer" in rows:
            said = rows["answer"].fillna("").map(alike)
            rows["answer"] = rows["answer"].mask(said == alike(self.none), NONE_ANSWER)
        sieve = _parsed(Sieve(rows=rows))
        for column in (one for one in ("class_name", ORIGINAL_ANSWER, "answer") if one in rows):
            keep = (NONE_ANSWER, SAME, DIFFERENT) if column == "answer" else ()
            sieve = with_names(sieve, column, classes, keep)
        return counted_votes(sieve)

    def _keyed(self, table: TextTable) -> pd.DataFrame:
        """The key of every row about a reconstruction; rows without a whole key are left out."""
        cells = table.cells
        key = pd.DataFrame({"model": cells[self.model], "image_id": cells[self.image_id]})
        for name, otherwise in (("dataset", self.dataset), ("attack", self.attack)):
            key[name] = cells[name].fillna(otherwise) if name in cells else otherwise
        if "kind" in cells:
            key = key[cells["kind"].isna() | (cells["kind"] == "reconstruction")]
        return key.dropna()


def score_columns(text: str) -> dict[str, ScoreColumn]:
    """Columns by metric.

    Args:
        text: Metric=column, metric=column/number or, of one's own, name=column:lower, with commas.

    Raises:
        SettingsError: For anything else, for a known metric that leaks the other way, and as
            `check_metric_name`.
    """
    columns = {}
    for metric, source in _assignments("scores", text).items():
        found = _SCORE.fullmatch(source)
        if found is None:
            raise SettingsError(
                f"scores: {source!r} should be column or column/number, of a metric of your "
                "own with :higher or :lower behind it."
            )
        check_metric_name(metric)
        way = found["way"] or ""
        if is_known(metric) or not way:
            known = "higher" if find_metric(metric).spec.higher_means_more_leakage else "lower"
            if way not in ("", known):
                raise SettingsError(f"scores: {metric} is known: its {known} values leak more.")
            way = ""
        divisor = float(found["divisor"] or 1)
        columns[metric] = ScoreColumn(name=found["column"], leaks=way, divisor=divisor)
    return columns


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _assignments(setting: str, text: str) -> dict[str, str]:
    """`a=b,c=d` as a dict; `SettingsError` for anything else."""
    pairs = [[side.strip() for side in part.split("=")] for part in _names(text)]
    if any(len(pair) != 2 or not all(pair) for pair in pairs):
        raise SettingsError(f"{setting} should be name=column, with commas; got {text!r}.")
    return dict(pairs)


def _constants(table: TextTable) -> dict[str, str]:
    """Return the values that every row of an export repeats; `DataError` where rows differ."""
    values = {
        name: table.cells[name].dropna().unique() for name in _CONSTANT if name in table.cells
    }
    for name, found in values.items():
        if len(found) > 1:
            raise DataError(
                f"{table.path} has several values of {name}: {', '.join(sorted(found))}. "
                "Import one study at a time."
            )
    return {name: str(found[0]) for name, found in values.items() if len(found)}


def _whole_number(cell: str | None) -> int | None:
    text = in_text(cell)
    if text is None:
        return None
    if not text.isdecimal():
        raise DataError(f"votes_per_item should be a whole number; got {text!r}.")
    return int(text)


def _parsed(sieve: Sieve) -> Sieve:
    """Times, durations and truth values of an export; rows with one that is none are left out."""
    parsers: dict[str, Callable[[pd.Series], pd.Series]] = {
        "rt_ms": _numbers,
        **dict.fromkeys(("protocol", "stratum", "rating_levels"), _whole_numbers),
        "rating_threshold": _numbers,
        **dict.fromkeys(("client_ts", "server_ts"), _times),
        "simulated": lambda cells: cells.map(truth),
    }
    for column, parse in parsers.items():
        if column in sieve.rows:
            cells = sieve.rows[column]
            values = parse(cells.astype("str"))

            def why(row: Row, column: str = column) -> str:
                return f"{column} cannot be read: {row[column]}"

            sieve = sieve.without(cells.notna() & values.isna(), why).replacing(column, values)
    return sieve


def _numbers(cells: pd.Series) -> pd.Series:
    return pd.to_numeric(cells, errors="coerce")


def _whole_numbers(cells: pd.Series) -> pd.Series:
    values = _numbers(cells)
    return values.where(values % 1 == 0)


def _times(cells: pd.Series) -> pd.Series:
    return pd.to_datetime(cells, utc=True, format="ISO8601", errors="coerce")


def facts_of(
    key: pd.DataFrame,
    cells: pd.DataFrame,
    given: Mapping[str, str],
    errors: Mapping[str, str] | None = None,
) -> tuple[pd.DataFrame, tuple[Unread, ...]]:
    """One row a reconstruction: its key, `human:<name>` of `given`, `human_error:<name>`.

    Args:
        key: Of the rows about reconstructions, in step with `cells` by its index.
        given: Columns of `cells` by name.
        errors: As `given`, of standard errors.
    """
    facts = key[IMAGE_KEY].drop_duplicates().reset_index(drop=True)
    unread: list[Unread] = []
    for prefix, columns in ((GIVEN, given), (GIVEN_ERROR, errors or {})):
        for name, column in columns.items():
            values, problems = _one_each(key, cells[column], _shares)
            facts = facts.merge(values.rename(prefix + name), on=IMAGE_KEY, how="left")
            unread += problems
    return facts, tuple(unread)


def scores_of(
    key: pd.DataFrame, cells: pd.DataFrame, columns: Mapping[str, ScoreColumn]
) -> tuple[pd.DataFrame | None, tuple[Unread, ...]]:
    """Scores of images; None where no metric is named.

    Args:
        columns: By metric.
    """
    parts: list[pd.DataFrame] = []
    unread: list[Unread] = []
    for metric, column in columns.items():
        values, problems = _one_each(key, cells[column.name], _numbers)
        parts.append((values / column.divisor).reset_index().assign(metric=metric))
        unread += problems
    return (pd.concat(parts)[list(SCORE_COLUMNS)] if parts else None), tuple(unread)


def _one_each(
    key: pd.DataFrame, column: pd.Series, parse: Callable[[pd.Series], pd.Series]
) -> tuple[pd.Series, list[Unread]]:
    """The value of `column` for each reconstruction that has one, float64 by its key."""
    cells = key[IMAGE_KEY].assign(text=column).dropna().drop_duplicates()
    cells = cells.assign(
        value=parse(cells["text"]).astype(float), several=cells.duplicated(IMAGE_KEY, keep=False)
    )
    left = cells["several"] | cells["value"].isna()
    unread = [
        Unread(
            f"{column.name} of image {row.image_id} of {row.model}",
            f"{row.text} is not its only value" if row.several else f"cannot be read: {row.text}",
        )
        for row in cells[left].itertuples()
    ]
    return cells[~left].set_index(IMAGE_KEY)["value"], unread


def _shares(texts: pd.Series) -> pd.Series:
    """Labels as numbers in [0, 1], yes as 1; NaN where one is neither."""
    numbers = _numbers(texts)
    return texts.map(truth).astype(float).fillna(numbers.where(numbers.between(0, 1)))
