"""Scores of a user's own metrics for one study, beside those that are computed here.

    <data>/scores/own/<key>.parquet   one table a study, columns `COLUMNS`; which study is said in
                                      its Parquet metadata: its id and its names, or one word that
                                      may be either

A study is found again by its id and by its names, so that the page, which knows ids, and the
commands, which read names in exported votes, see the same. Several studies may have one name: who
knows the id gets no table that has another.
"""

import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
from filelock import FileLock, Timeout

from semsim.base.columns import IMAGE_KEY, LEAKS, MODEL_KEY, SCORE_COLUMNS, ScoreColumn
from semsim.base.errors import DataError, SettingsError
from semsim.base.stats.agreement import check_metric_name
from semsim.base.stats.evidence import in_words_of, words_in
from semsim.base.storage.atomic import whole
from semsim.base.storage.optional import arrow
from semsim.base.storage.pieces import key_of
from semsim.base.storage.records import check_format, guarded
from semsim.base.table_files import REMARKS, read_texts
from semsim.base.words import counted, first_of
from semsim.comparison.study_tables import StudyTables
from semsim.metrics import is_known

COLUMNS = (*SCORE_COLUMNS, LEAKS)
FORMAT = "semsim-own-scores/1"
_STUDY = "study"  # entry of the metadata: the id of the study and its names, or one word
_SHOWN = 8  # problems of a table that are told
_PICTURE = ["model", "image_id"]
_WAIT = 60.0  # seconds for somebody else to have kept theirs


@dataclass(frozen=True, kw_only=True)
class KeptScores:
    """A metric of a study: which way it leaks, and of how many pictures there is a score."""

    metric: str
    leaks: str
    n: int


def read_own(path: Path, columns: Mapping[str, ScoreColumn]) -> pd.DataFrame:
    """The scores in a CSV or Parquet file, columns `COLUMNS`; all of them, or an error.

    Args:
        columns: By metric. The file has the columns model and image_id, and dataset and attack
            where those alone are not enough; an empty cell is no score. The attribute `REMARKS` of
            the scores has what was taken for granted.

    Raises:
        SettingsError: For a metric that cannot be.
        DataError: That names the rows and columns that are wrong.
    """
    if not columns:
        raise SettingsError("Name a column at least, as metric=column:lower or column:higher.")
    for metric, column in columns.items():
        _check_name(metric)
        if column.leaks not in ("higher", "lower"):
            raise SettingsError(f"Choose for {metric} whether higher or lower values leak more.")
    table = read_texts(path, DataError)
    table.columns(*_PICTURE, *(column.name for column in columns.values()))
    lacking = table.cells[_PICTURE].isna()
    problems = [str(one) for one in table.unread]
    problems += [f"{row}: has no {key}" for key in _PICTURE for row in lacking.index[lacking[key]]]
    parts = []
    for metric, column in columns.items():
        part, wrong = _scores_in(table.cells, column)
        parts.append(part.assign(metric=metric, leaks=column.leaks))
        problems += wrong
    _refuse(path, problems)
    found = pd.concat(parts, ignore_index=True)
    found = found.drop_duplicates([*IMAGE_KEY, "metric", "value"], ignore_index=True)
    twice = found[found.duplicated([*IMAGE_KEY, "metric"])]
    said = "{where}: image {image_id} of {model} has a score by {metric} already"
    _refuse(path, [said.format_map(row) for row in twice.to_dict("records")])
    if found.empty:
        raise DataError(f"{path.name} has no score in it.")
    found = found[list(COLUMNS)]
    found.attrs[REMARKS] = list(table.remarks)
    return found


def _check_name(metric: str) -> None:
    check_metric_name(metric)
    if is_known(metric):
        raise SettingsError(
            f"{metric} is computed here already. Give yours another name, such as own-{metric}."
        )
    if not metric or any(letter in metric for letter in ":@/\n") or len(metric) > 60:
        raise SettingsError(f"{metric!r} is no name: 1 to 60 letters, none of them : @ or /.")


def _scores_in(cells: pd.DataFrame, column: ScoreColumn) -> tuple[pd.DataFrame, list[str]]:
    """The rows with a score in a column, by their keys, and what in it is no number."""
    said = cells[column.name]
    values = pd.to_numeric(said, errors="coerce").astype(float)
    wrong = said[said.notna() & values.isna()]
    rows = cells.reindex(columns=IMAGE_KEY).assign(value=values / column.divisor, where=cells.index)
    return rows.dropna(subset="value"), [
        f"{where}, column {column.name}: {cell!r} is no number" for where, cell in wrong.items()
    ]


def _refuse(path: Path, problems: list[str]) -> None:
    if problems:
        told = first_of(problems, _SHOWN, "\n", "\n… and {} more")
        raise DataError(f"Nothing of {path.name} was kept; mend this first:\n{told}")


def keep_own(data: Path, study: Iterable[str], found: pd.DataFrame) -> list[KeptScores]:
    """Keep scores for a study in place of its old ones by the same metrics; return all it has.

    Args:
        study: Its id and its name, or one of them.

    Raises:
        SettingsError: For none, and for a name that several studies have.
        DataError: Where another writer does not come to an end.
    """
    names = _names(study)
    if not names:
        raise SettingsError("Scores are kept for a study; name one.")
    arrow()
    with _alone(data):
        mine, _ = _mine(data, names)
        old = _together(mine)
        kept = pd.concat([old[~old["metric"].isin(found["metric"])], found], ignore_index=True)
        _write(data, names, kept, mine)
    return kept_of(data, names)


def remove_own(data: Path, study: Iterable[str], metric: str) -> None:
    """Forget a metric of a study.

    Raises `DataError` where it has none of that name; else as `keep_own`.
    """
    names = _names(study)
    with _alone(data):
        mine, _ = _mine(data, names)
        old = _together(mine)
        if metric not in set(old["metric"]):
            raise DataError(f"This study has no scores of {metric!r}. Load the page again.")
        _write(data, names, old[old["metric"] != metric], mine)


def kept_of(data: Path, study: Iterable[str]) -> list[KeptScores]:
    """The metrics that a study has scores of, by name."""
    mine, _ = _mine(data, _names(study))
    rows = _together(mine).groupby("metric", sort=True)
    return [
        KeptScores(metric=str(metric), leaks=str(some[LEAKS].iloc[0]), n=len(some))
        for metric, some in rows
    ]


def joined(study: StudyTables, data: Path, study_id: str = "") -> StudyTables:
    """A study with its own scores among those that came with it.

    Args:
        study_id: "" where only the name is known that it has in its tables. Its remarks say how
            many scores are of pictures that the study does not have.

    Raises:
        DataError: As `fitted`.
    """
    mine, broken = _mine(data, _names([study_id, study.title]))
    own, study = _together(mine), replace(study, remarks=(*study.remarks, *broken))
    if own.empty:
        return study
    fitting, remarks = fitted(own, study.listed)
    given = study.scores if study.scores is not None else fitting.head(0)
    given = given[~given["metric"].isin(own["metric"])]
    scores = pd.concat([one for one in (given, fitting) if len(one)] or [fitting])
    return replace(
        study,
        scores=scores.reset_index(drop=True),
        own=tuple(dict.fromkeys(fitting["metric"])),
        remarks=(*study.remarks, *remarks),
    )


def fitted(own: pd.DataFrame, listed: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The scores of pictures that a study lists, each with its whole key, and what was left out.

    A score is placed by the keys that its own row says. Raises `DataError` where a model's name
    alone does not say which of several is meant.
    """
    known = listed[IMAGE_KEY].astype(str).drop_duplicates()
    own = in_words_of(own, {key: words_in(known, key) for key in IMAGE_KEY})
    said = [own[key].notna() for key in MODEL_KEY[:2]]
    parts = [_placed(rows, known) for _, rows in own.groupby(["metric", *said], sort=False)]
    found = pd.concat(parts or [own])[list(COLUMNS)]
    here, all_of_it = found["metric"].value_counts(), own["metric"].value_counts()
    remarks = [
        f"Left out of {metric}: {counted(n - here.get(metric, 0), 'score')} of pictures that this "
        "study does not have."
        for metric, n in all_of_it.items()
        if n > here.get(metric, 0)
    ]
    return found.drop_duplicates([*IMAGE_KEY, "metric"], keep="last"), tuple(remarks)


def _placed(rows: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Scores of one metric that all say the same keys, with the whole keys of the pictures."""
    lacking = [key for key in MODEL_KEY[:2] if rows[key].isna().any()]
    keys = [key for key in IMAGE_KEY if key not in lacking]
    several = known[known.duplicated(keys) & known["model"].isin(rows["model"])]
    if len(several):
        raise DataError(
            f"{several['model'].iloc[0]} is several models of this study: the scores of "
            f"{rows['metric'].iloc[0]} need the columns {' and '.join(lacking)}."
        )
    return rows.drop(columns=lacking).merge(known, on=keys, how="inner")


def _names(study: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(name for name in study if name))


def _folder(data: Path) -> Path:
    return data / "scores/own"


@contextmanager
def _alone(data: Path) -> Iterator[None]:
    """Whoever else keeps or removes scores, in this process or another, waits for the block."""
    _folder(data).mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(_folder(data) / ".lock", timeout=_WAIT):
            yield
    except Timeout as error:
        raise DataError(
            f"Somebody else has been keeping scores for {_WAIT:.0f} seconds. Try again."
        ) from error


def _tables(data: Path) -> tuple[dict[Path, pd.DataFrame], tuple[str, ...]]:
    """Return every table that is kept, the oldest first, and remarks on those that are broken."""
    paths = sorted(_folder(data).glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    # A reader of Parquet opens a path twice, and another may replace the file in between.
    contents = {path: path.read_bytes() for path in paths if path.is_file()}
    tables, broken = {}, []
    for path, content in contents.items():
        try:
            tables[path] = _table(path, content)
        except DataError as error:  # one file takes nothing from the others
            broken.append(f"Left out of the custom metrics: {error}")
    return tables, tuple(broken)


def _table(path: Path, content: bytes) -> pd.DataFrame:
    with guarded(path, DataError, "cannot be read ({}); remove it, and add its scores anew."):
        table = pd.read_parquet(io.BytesIO(content))
        check_format(table.attrs.get("format"), FORMAT, path, DataError)
        found = table.astype({"metric": str, LEAKS: str, "value": float})[list(COLUMNS)]
        found.attrs = {_STUDY: [*map(str, table.attrs[_STUDY])]}
        return found


def _mine(data: Path, names: list[str]) -> tuple[dict[Path, pd.DataFrame], tuple[str, ...]]:
    """The tables of a study: by its id, and by a name those that say no id; and as `_tables`.

    A single word that is no id is a name, and finds the tables of every study that is called so.
    """
    try:
        tables, broken = _tables(data)
    except FileNotFoundError:  # another has just taken its place, and is there
        tables, broken = _tables(data)
    said = {path: table.attrs[_STUDY] for path, table in tables.items()}
    of_id = [path for path, its in said.items() if its[1:] and its[:1] == names[:1]]
    found = [path for path, its in said.items() if set(its) & set(names)]
    if of_id or len(names) > 1:  # the id is known
        found = [path for path in found if path in of_id or len(said[path]) == 1]
    return {path: tables[path] for path in found}, broken


def _together(mine: Mapping[Path, pd.DataFrame]) -> pd.DataFrame:
    """All scores of some tables; of one picture by one metric, the newest."""
    some = [table for table in mine.values() if len(table)]
    found = pd.concat(some, ignore_index=True) if some else pd.DataFrame(columns=list(COLUMNS))
    return found.drop_duplicates([*IMAGE_KEY, "metric"], keep="last")


def _write(
    data: Path, names: list[str], table: pd.DataFrame, mine: Mapping[Path, pd.DataFrame]
) -> None:
    """One table for a study, in place of `mine`, with all the names that it has there."""
    said = [one.attrs[_STUDY] for one in mine.values()]
    ids = list(dict.fromkeys(its[0] for its in said if len(its) > 1))
    if len(ids) > 1:
        raise SettingsError(
            f"Several studies are called {names[0]}. Give the id of one instead: {', '.join(ids)}."
        )
    kept = table[list(COLUMNS)].reset_index(drop=True)
    every = _names([*ids, *names, *(name for its in said for name in its)])
    kept.attrs = {"format": FORMAT, _STUDY: every}
    path = _folder(data) / f"{key_of(every[0], 20)}.parquet"
    with whole(path) as part:
        kept.to_parquet(part, index=False)
    for old in mine:
        if old != path:
            old.unlink(missing_ok=True)
