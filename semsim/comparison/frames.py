"""Frames of votes and scores as a caller has them, made whole and compared.

`semsim.compare` and the commands `compare`, `report` and `cases` go through this module.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from semsim.base.columns import IMAGE_KEY, MODEL_KEY
from semsim.base.errors import DataError, SettingsError
from semsim.base.progress import Report, silent
from semsim.base.stats.analysis import DEFAULTS, AnalysisSettings
from semsim.base.stats.evidence import as_words, in_words_of, keyed, words_in
from semsim.base.stats.vote_rows import Sieve, counted_votes
from semsim.base.storage.optional import arrow
from semsim.base.storage.places import resolved
from semsim.base.table_files import check_columns, first_problem, for_images, read_frame
from semsim.base.words import counted
from semsim.comparison.compared import Compared, Scored, compared
from semsim.comparison.metric_facts import specs_of, weights_stated
from semsim.comparison.own_scores import joined
from semsim.comparison.study_tables import StudyTables
from semsim.metrics import is_known
from semsim.metrics.learned import UNKNOWN
from semsim.metrics.scoring import TEXTS, WEIGHTS, weights_words

_ZEROS = "If a spreadsheet took leading zeros away (7 for 007), add --match-ids (match_ids=True)."


MOST_ROWS = 10_000_000  # of a table; so many scores take 1.6 GB
_FEWER = (
    "More would take more than 1.6 GB of memory. Keep the scores of images that people judged, or "
    "compare fewer metrics at a time."
)


@dataclass(frozen=True, kw_only=True)
class HowToCompare:
    """Settings of a comparison beside its tables.

    Attributes:
        checkpoints: Where SemSims say what they learned from.
        data: Of the studio, where scores of one's own metrics are kept.
        headline: Human score to rank by; None for the one the study's protocol fixed.
        higher, lower: Metrics that are not known here, by which of their values leak more.
        unseen_by: Which originals count, as `compared` says.
        match_ids: Whether 7 is 007 and 7.png where nothing else may be meant, as spreadsheets take
            zeros away.
    """

    checkpoints: Path
    data: Path
    settings: AnalysisSettings = DEFAULTS
    headline: str | None = None
    higher: tuple[str, ...] = ()
    lower: tuple[str, ...] = ()
    unseen_by: str = ""
    match_ids: bool = False


def read_table(path: Path, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Read a table of Parquet, CSV or Excel; ids and names stay texts.

    Args:
        columns: Those wanted of a row a metric, of which the table may lack some; all for None, and
            where there is no column `metric`.

    Raises:
        DataError: Where it is not readable or has more than `MOST_ROWS` rows.
    """
    path = resolved(path)
    if path.suffix.lower() == ".parquet":
        arrow()
    found = read_frame(path, DataError, texts=TEXTS, columns=columns, most=MOST_ROWS, advice=_FEWER)
    return found if columns is None or "metric" in found else read_table(path)


def whole_study(
    votes: pd.DataFrame, scores: pd.DataFrame | None = None, labels: pd.DataFrame | None = None
) -> StudyTables:
    """The tables of a study whose votes may say no more than who answered what.

    Args:
        votes: Columns model, image_id, annotator, and answer or recognised. Where `recognised` is
            absent it is whether the answer is the true class, in `class_name` of the votes or
            labels.
        scores, labels: What say the data set and the attack of a model where votes do not.

    Raises:
        DataError: For absent columns, and for votes that cannot be counted.
    """
    check_columns(votes, ("model", "image_id", "annotator"), "The table of votes", DataError)
    others = [one for one in (labels, scores) if one is not None and "model" in one]
    named = _filled(votes, others, "votes")
    known = None if labels is None else _filled(labels, [votes, *others], "labels")
    return StudyTables(votes=_with_recognised(named, known), labels=known)


def compared_frames(
    study: StudyTables, scores: pd.DataFrame | None, how: HowToCompare, report: Report = silent
) -> Compared:
    """Compare what a study says with scores, and with those that a user keeps for it.

    Args:
        scores: One row an image and metric, columns `semsim.metrics.scoring.BOOK_COLUMNS`, or one
            row an image and one column a metric; None for those that came with the study.

    Raises:
        SemsimError: Where tables do not fit.
    """
    foreign = (*how.higher, *how.lower)
    given = None if scores is None else _as_judged(_long(scores, study, foreign), study, how)
    whole = joined(study, how.data)
    if scores is not None:
        whole = replace(whole, remarks=(*whole.remarks, *_unread(scores, foreign)))
    table = whole.scores if given is None else _with_own(given, whole)
    if table is None:
        raise SettingsError("The votes came without scores. Give a table of them: VOTES SCORES.")
    specs = specs_of(table, how.higher, how.lower)
    scored = Scored(table=table, specs=specs, weights=weights_stated(table))
    headline = how.headline or whole.protocol or how.settings.headline
    settings = replace(how.settings, headline=headline)
    return compared(whole, scored, settings, how.checkpoints, how.unseen_by, report)


def _filled(table: pd.DataFrame, others: Sequence[pd.DataFrame], what: str) -> pd.DataFrame:
    """`table` with the data set and the attack of each model, as the first that knows says."""
    check_columns(table, ("model",), f"The table of {what}", DataError)
    for key in MODEL_KEY[:2]:
        if key not in table:
            table = table.assign(**{key: _told(table, key, others, what)})
    return table


def _told(
    table: pd.DataFrame, key: str, others: Sequence[pd.DataFrame], what: str
) -> pd.Series | str:
    knowing = next((one for one in others if key in one), None)
    if knowing is None:
        return UNKNOWN
    models = table["model"].astype(str)
    pairs = knowing[["model", key]].drop_duplicates().dropna().astype(str)
    pairs = pairs[pairs["model"].isin(models)]
    several = pairs[pairs.duplicated("model")]
    if len(several):
        model = several["model"].iloc[0]
        found = ", ".join(sorted(pairs.loc[pairs["model"] == model, key]))
        raise DataError(
            f"The table of {what} lacks the column {key}, and {model} has several: {found}. Add "
            f"the column {key} to the {what}."
        )
    return models.map(pairs.set_index("model")[key]).astype(object).fillna(UNKNOWN)


def _with_recognised(votes: pd.DataFrame, labels: pd.DataFrame | None) -> pd.DataFrame:
    if "recognised" in votes:
        return votes if "answer" in votes else votes.assign(answer=None)
    if "answer" not in votes:
        check_columns(votes, ("answer", "recognised"), "The table of votes", DataError)
    rows = keyed(votes, [*IMAGE_KEY, "annotator"], "votes")
    if "class_name" not in rows and labels is not None and "class_name" in labels:
        classes = keyed(labels, IMAGE_KEY, "labels")[[*IMAGE_KEY, "class_name"]]
        rows = rows.merge(classes.drop_duplicates(IMAGE_KEY), on=IMAGE_KEY, how="left")
    where = [f"vote {place}" for place in range(1, len(rows) + 1)]
    found = counted_votes(Sieve(rows=rows.assign(where=where)))
    if found.unread:
        lost = counted(len(found.unread), "vote")
        raise DataError(f"{lost} cannot be counted.{first_problem(found.unread)}")
    return found.rows.drop(columns="where")


def _long(scores: pd.DataFrame, study: StudyTables, foreign: Sequence[str]) -> pd.DataFrame:
    """Scores with a row an image and metric, each with the data set and attack of its model."""
    if "metric" not in scores:
        scores = _melted(scores, study, foreign)
    known = [one for one in (study.labels, study.votes) if one is not None]
    return _filled(scores, known, "scores")


def _as_judged(scores: pd.DataFrame, study: StudyTables, how: HowToCompare) -> pd.DataFrame:
    """Scores whose models and ids are written as in the study; `DataError` where none is in it."""
    known = {key: words_in(study.listed, key) for key in IMAGE_KEY}
    if how.match_ids and "image_id" in scores:
        names = words_in(scores, "image_id")
        meant = for_images(dict(zip(names, names, strict=True)), known["image_id"])
        ids = {one: two for two, one in meant.items()}
        scores = scores.assign(image_id=as_words(scores["image_id"]).map(ids))
    scores = in_words_of(scores, known)
    for key in ("image_id", *reversed(MODEL_KEY)):
        mine = words_in(scores, key)
        if mine and known[key] and not set(mine) & set(known[key]):
            raise DataError(
                f"No {key} of the scores is one of the votes: the scores have, for example, "
                f"{mine[0]!r}, the votes {known[key][0]!r}. "
                f"{_ZEROS if key == 'image_id' else 'Write them alike in both tables.'}"
            )
    return scores


def _unread(scores: pd.DataFrame, foreign: Sequence[str]) -> list[str]:
    """A sentence on the columns of numbers that are taken for no metric, where there are any."""
    if "metric" in scores:
        return []
    read = {*IMAGE_KEY, *_metrics_of(scores, foreign)}
    left = [str(name) for name in scores.select_dtypes("number") if str(name) not in read]
    if not left:
        return []
    say = "of a custom metric, state whether higher or lower values leak more"
    return [f"Columns that are no metric were not read: {', '.join(left)}; {say}."]


def _metrics_of(scores: pd.DataFrame, foreign: Sequence[str]) -> list[str]:
    """Return the columns named as a metric that is known, or that the caller declares."""
    return [name for name in map(str, scores) if name in foreign or is_known(name)]


def _melted(scores: pd.DataFrame, study: StudyTables, foreign: Sequence[str]) -> pd.DataFrame:
    check_columns(scores, ("image_id",), "The table of scores", DataError)
    metrics = _metrics_of(scores, foreign)
    if not metrics:
        raise DataError(
            "The table of scores has neither a column metric nor one that is called as a metric. "
            f"It has: {', '.join(map(str, scores))}. State for custom metrics whether higher or "
            "lower values leak more."
        )
    if "model" not in scores:
        models = study.votes["model"].unique()
        if len(models) > 1:
            raise DataError(
                "The table of scores lacks the column model, and the votes are on "
                f"{len(models)} models. Add the models, as in "
                'scores.assign(model="…"), and put the tables of all models together.'
            )
        scores = scores.assign(model=models[0])
    keys = [name for name in IMAGE_KEY if name in scores]
    records = scores.attrs.get("metrics", {})
    table = scores.melt(keys, metrics, var_name="metric", value_name="value")
    files = {name: weights_words(one.get("weights", {})) for name, one in records.items()}
    return table.assign(**{WEIGHTS: table["metric"].map(files).astype(object)})


def _with_own(scores: pd.DataFrame, study: StudyTables) -> pd.DataFrame:
    """Return scores, with those of other metrics of their own that a user keeps for the study."""
    if study.scores is None:
        return scores
    kept = set(study.own) - set(scores["metric"])
    own = study.scores[study.scores["metric"].isin(kept)]
    return pd.concat([scores, own], ignore_index=True) if kept else scores
