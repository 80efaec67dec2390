"""Answers of people and values of metrics for the same reconstructions, as arrays in step."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from semsim.base.alike import NONE, alike, partners
from semsim.base.columns import (
    ARCHITECTURE,
    ATTACKER,
    IMAGE_KEY,
    MODEL_KEY,
    ORIGINAL_ANSWER,
    RATED,
    SCORE_COLUMNS,
    SHARE_COLUMNS,
    TARGET_COLUMNS,
)
from semsim.base.errors import DataError
from semsim.base.metric_spec import MetricSpec
from semsim.base.stats.votes import SparseVotes
from semsim.base.table_files import MISSING, check_columns, truth
from semsim.base.words import MODEL, agreeing, counted, voters_of, voters_words

GIVEN = "human:"  # begins the columns of labels that came with the data
GIVEN_ERROR = "human_error:"  # begins the columns of their standard errors
NONE_ANSWER = NONE
_VOTE_COLUMNS = (*IMAGE_KEY, "annotator", "answer", "recognised")
_FILES = ("original", "reconstruction", "attacked")


@dataclass(frozen=True, kw_only=True)
class Ratings:
    """Answers that are numbers from 1 to `levels`; a mean of `threshold` or more is recognised.

    Attributes:
        values: Of every counted vote. The others are NaN where no annotator has voted.
    """

    values: SparseVotes
    levels: float
    threshold: float

    def share(self, ratings: np.ndarray | float) -> Any:
        """Ratings, or their means, of any shape, from 0 for the lowest to 1 for the highest."""
        return (ratings - 1) / (self.levels - 1)

    def of(self, share: float) -> float:
        """The rating that is a `share` of the way from the lowest to the highest."""
        return 1 + share * (self.levels - 1)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One study: R reconstructions, A annotators.

    Attributes:
        name: Of the study.
        simulated: Whether programs voted.
        voter: Who voted, as `words.voters_of` has it; empty where only `simulated` is known.
        images: R rows, columns dataset, attack, model, image_id, class_name (strings) and, where
            images are at hand, original, reconstruction and attacked (paths); where the labels have
            them, `TARGET_COLUMNS`: the target's test accuracy, that of guessing, whether they are
            alike, and the ε and δ of its training; and `ATTACKER`.
        annotators: A names.
        recognised: Of every counted vote, 1 recognised, 0 not. Of ratings: whether this one is at
            or above the threshold.
        none: Of every counted vote, 1 where the answer was "none", else 0.
        votes_per_item: K, the votes each reconstruction is to get.
        given: Labels that came with the data, by name, each (R,) float64 in [0, 1] or NaN.
        given_errors: Standard errors of those labels that have some, by name, each (R,) float64,
            0 or more, or NaN.
        people: Shares of single people, one a person and model, models in order of their key; None
            where the source has none.
        scores: By name of a metric of images, (R,) float64, NaN where there is none.
        set_scores: By name of a metric of sets, one row a model: dataset, attack, model, value.
        notes: What was found on one side only, and what had to be supposed.
        ratings: The answers themselves where they are numbers.
        as_named: Of every counted vote, where people named the originals too: 1 where the answer is
            what most of them call the original, 0 where not, NaN without such a name.
    """

    name: str
    simulated: bool
    images: pd.DataFrame
    annotators: tuple[str, ...]
    recognised: SparseVotes
    none: SparseVotes
    votes_per_item: int
    given: Mapping[str, np.ndarray]
    scores: Mapping[str, np.ndarray]
    set_scores: Mapping[str, pd.DataFrame]
    notes: tuple[str, ...] = ()
    ratings: Ratings | None = None
    as_named: SparseVotes | None = None
    given_errors: Mapping[str, np.ndarray] = field(default_factory=dict)
    people: SparseVotes | None = None
    voter: str = ""

    @property
    def has_votes(self) -> bool:
        """True where single votes are known; a source may publish shares alone."""
        return len(self.recognised) > 0

    @property
    def voters(self) -> str:
        """The noun for those who voted."""
        return voters_words(self.voter or voters_of(self.simulated))

    @property
    def model(self) -> str:
        """The vision-language model that voted; "" where none did."""
        return self.voter.removeprefix(MODEL) if self.voter.startswith(MODEL) else ""

    @property
    def mark(self) -> str:
        """Words for votes that are no people's; "" for those of people."""
        of_programs = f"votes of the model {self.model}" if self.model else "simulated votes"
        return of_programs if self.simulated else ""

    @property
    def response(self) -> SparseVotes:
        """Of every counted vote, in [0, 1], how much it recognises."""
        if self.ratings is None:
            return self.recognised
        rated = self.ratings.values
        return rated.of(self.ratings.share(rated.values))

    @property
    def threshold(self) -> float:
        """The mean of `response` from which an image counts as recognised; more, of yes and no."""
        return 0.5 if self.ratings is None else self.ratings.share(self.ratings.threshold)

    @property
    def response_words(self) -> str:
        """Words for the mean of `response` over the votes on an image."""
        share = "share of votes that recognised it"
        return share if self.ratings is None else "mean rating, 0 the lowest and 1 the highest"


def gather(
    votes: pd.DataFrame,
    scores: pd.DataFrame,
    specs: Iterable[MetricSpec],
    *,
    labels: pd.DataFrame | None = None,
    people: pd.DataFrame | None = None,
    name: str | None = None,
) -> Evidence:
    """Bring votes, scores and labels of one study in step; the order of their rows is no matter.

    Args:
        votes: One row a vote: dataset, attack, model, image_id, annotator, answer, recognised;
            where it has kind and status, only counted votes on reconstructions count. Where the
            answers are ratings it has `RATED`, too; where people named originals,
            `ORIGINAL_ANSWER`.
        scores: Dataset, attack, model, metric, image_id (missing for a metric of sets), value.
        specs: Of the metrics wanted; scores of others are left out, and a note says so.
        labels: One row a reconstruction, also such as no annotator has voted on; its columns
            `human:<name>` are labels that came with the data, true, false or a share, or missing;
            `human_error:<name>` are their standard errors.
        people: Shares of single people, columns `SHARE_COLUMNS`.
        name: Of the study, where it is not to be read from the tables.

    Raises:
        DataError: For absent columns, a missing key, a value that is no answer, two counted votes
            of one annotator on one image, and two scores of one image by one metric.
    """
    counted, repeated = _counted(votes)
    known = None if labels is None else keyed(labels, IMAGE_KEY, "labels")
    images = _images(counted, known)
    places = pd.MultiIndex.from_frame(images[IMAGE_KEY])
    annotators, order, recognised = _answers(counted, places)
    of_images, of_sets, notes = _scored(scores, tuple(specs), images, places)
    tables = [table for table in (counted, known) if table is not None]
    k, supposed = _votes_per_item(tables, recognised)
    simulated = any(bool(t["simulated"].any()) for t in tables if "simulated" in t)
    return Evidence(
        name=name if name is not None else str(stated(tables, "study", "study")),
        simulated=simulated,
        voter=str(stated(tables, "voter", voters_of(simulated))),
        images=images,
        annotators=annotators,
        recognised=recognised,
        none=recognised.of((_alike(counted["answer"]) == NONE_ANSWER).to_numpy()[order]),
        votes_per_item=k,
        given={} if known is None else _given(known, places),
        given_errors={} if known is None else _given(known, places, GIVEN_ERROR),
        people=None if people is None else _shares_of_people(people, images),
        scores=of_images,
        set_scores=of_sets,
        notes=(*supposed, *repeated, *notes),
        ratings=_ratings(counted, order, recognised),
        as_named=_as_named(counted, order, recognised),
    )


def model_key(row: pd.Series) -> str:
    """One string for a model, which a page or a file can carry about."""
    return "\n".join(str(row[key]) for key in MODEL_KEY)


def short_labels(images: pd.DataFrame) -> dict[str, str]:
    """Model key → its name, with data set and attack only where `images` have several."""
    models = images[MODEL_KEY].drop_duplicates().sort_values(MODEL_KEY)
    keys = [model_key(row) for _, row in models.iterrows()]
    return dict(zip(keys, model_names(models.astype(str)), strict=True))


def model_names(rows: pd.DataFrame) -> pd.Series:
    """Name the model of each row: with its data set and attack where there are several."""
    names = rows["model"]
    for part in ("dataset", "attack"):
        if rows[part].nunique() > 1:
            names = names + " · " + rows[part]
    return names


def _counted(votes: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The counted votes on reconstructions, their keys as strings, and what was left out."""
    check_columns(votes, _VOTE_COLUMNS, "The table of votes", DataError)
    kept = votes.assign(row=np.arange(1, len(votes) + 1))
    for column, value in (("status", "counted"), ("kind", "reconstruction")):
        if column in kept:
            kept = kept[kept[column] == value]
    kept = keyed(kept, [*IMAGE_KEY, "annotator"], "votes")
    answers = kept["recognised"].astype(object)
    said = answers.map({one: truth(one) for one in answers.unique()}).astype("boolean")
    if len(wrong := answers[said.isna() & answers.notna()]):
        raise DataError(
            f"Votes: recognised must be true or false, yes or no, 1 or 0; got {wrong.iloc[0]!r} in "
            f"row {kept['row'][wrong.index[0]]}. Write one of these there."
        )
    if said.isna().any():
        silent = counted(int(said.isna().sum()), "counted vote does", "counted votes do")
        raise DataError(f"{silent} not say whether it recognised.")
    kept["recognised"] = said.astype(float)
    key = [*IMAGE_KEY, "annotator"]
    n_rows, kept = len(kept), kept.drop_duplicates([*key, "answer", "recognised"])
    notes = again_note(n_rows - len(kept), "vote", "the same person on the same picture")
    twice = kept[kept.duplicated(key, keep=False)].sort_values([*key, "row"])
    if len(twice):
        one, two = twice.iloc[0], twice.iloc[1]
        said_by = [f"{r['answer'] or bool(r['recognised'])!r} (row {r['row']})" for r in (one, two)]
        raise DataError(
            f"{one['annotator']} gave image {one['image_id']} of {one['model']} two answers: "
            f"{said_by[0]} and {said_by[1]}. Keep the right one."
        )
    return kept.drop(columns="row").reset_index(drop=True), notes


def again_note(n: int, what: str, of: str) -> list[str]:
    """A sentence on `n` rows that repeat a row before them; none where there are none."""
    rows = counted(n, f"row repeats a {what}", f"rows repeat {what}s")
    return [f"{rows} of {of}, which counts once."] if n else []


def keyed(table: pd.DataFrame, keys: list[str], what: str) -> pd.DataFrame:
    """A copy of the table called `what` whose keys are strings.

    Raises `DataError` where one is absent or missing.
    """
    check_columns(table, keys, f"The table of {what}", DataError)
    for key in keys:
        if table[key].isna().any():
            n = int(table[key].isna().sum())
            rows, have = agreeing(n, "row", "rows"), agreeing(n, "has", "have")
            raise DataError(f"{n:,} {rows} of the {what} {have} no {key}.")
    return table.assign(**{key: as_words(table[key]) for key in keys}).reset_index(drop=True)


def as_words(keys: pd.Series) -> pd.Series:
    """Keys as strings; whole numbers that a missing value beside them made 7.0 are 7 again."""
    if isinstance(keys.dtype, pd.CategoricalDtype):  # millions of rows, a few names
        return keys.cat.rename_categories(list(as_words(keys.cat.categories.to_series())))
    if pd.api.types.is_float_dtype(keys) and (keys % 1 == 0).all():
        return keys.astype("int64").astype(str)
    return keys.astype(str)


def words_in(table: pd.DataFrame, key: str) -> list[str]:
    """Return the different keys in a column, each once; none without the column."""
    return list(as_words(table[key].dropna().drop_duplicates())) if key in table else []


def in_words_of(table: pd.DataFrame, known: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Return `table` with keys written as in `known`, by column, where they are the same word."""
    for key, names in known.items():
        meant = partners(words_in(table, key), set(names))
        renamed = {one: two for one, two in meant.items() if one != two}
        if renamed:
            words = as_words(table[key].astype(object).dropna()).reindex(table.index)
            table = table.assign(**{key: words.replace(renamed)})
    return table


def _refuse_twice(table: pd.DataFrame, keys: list[str], what: str) -> None:
    twice = table[table.duplicated(keys)]
    if len(twice):
        first = ", ".join(f"{key} {twice.iloc[0][key]}" for key in keys)
        raise DataError(
            f"Two {what} are of the same {first}; {counted(len(twice), 'row')} too many in all."
        )


def _images(votes: pd.DataFrame, labels: pd.DataFrame | None) -> pd.DataFrame:
    """Return each reconstruction that an annotator judged or the labels list, in order of key."""
    columns = [*IMAGE_KEY, "class_name"]
    sides = [side.reindex(columns=columns) for side in (labels, votes) if side is not None]
    table = pd.concat(sides).drop_duplicates()  # of the votes on an image one is enough
    table["class_name"] = table["class_name"].astype(object).fillna("").astype(str)
    # Of two names the later in the alphabet stays: any name beats none, whoever came first.
    table = table.sort_values([*IMAGE_KEY, "class_name"]).drop_duplicates(IMAGE_KEY, keep="last")
    if table.empty:
        raise DataError("No counted vote on a reconstruction, and no labels: nothing to compare.")
    if labels is not None:
        _refuse_twice(labels, IMAGE_KEY, "labels")
        more = [one for one in (*_FILES, *TARGET_COLUMNS, ATTACKER, ARCHITECTURE) if one in labels]
        table = table.merge(labels[[*IMAGE_KEY, *more]], on=IMAGE_KEY, how="left")
    return table.reset_index(drop=True)


def _ratings(votes: pd.DataFrame, order: np.ndarray, recognised: SparseVotes) -> Ratings | None:
    if not set(RATED) <= set(votes):
        return None
    levels, threshold = (float(stated([votes], name, np.nan)) for name in RATED)
    given = pd.to_numeric(votes["answer"], errors="coerce")
    wrong = votes["answer"][~(given.between(1, levels) & (given % 1 == 0))]
    if len(wrong):
        raise DataError(f"Ratings are numbers from 1 to {levels:g}; got {wrong.iloc[0]!r}.")
    values = recognised.of(given.to_numpy()[order])
    return Ratings(values=values, levels=levels, threshold=threshold)


def _as_named(
    votes: pd.DataFrame, order: np.ndarray, recognised: SparseVotes
) -> SparseVotes | None:
    if ORIGINAL_ANSWER not in votes:
        return None
    answer, name = (votes[column].astype(object) for column in ("answer", ORIGINAL_ANSWER))
    same = (_alike(answer) == _alike(name)).astype(float).mask(name.isna())
    return recognised.of(same.to_numpy()[order])


def _alike(words: pd.Series) -> pd.Series:
    """Return what words have in common where they are the same; "" for a missing one."""
    known = {word: alike(str(word)) for word in words.dropna().unique()}
    return words.astype(object).map(known).astype(object).fillna("")


def _answers(
    votes: pd.DataFrame, places: pd.MultiIndex
) -> tuple[tuple[str, ...], np.ndarray, SparseVotes]:
    """The annotators, the order of votes by image and annotator, what they recognised in it."""
    who, names = pd.factorize(votes["annotator"], sort=True)
    images = places.get_indexer(pd.MultiIndex.from_frame(votes[IMAGE_KEY]))
    order = np.lexsort((who, images))
    recognised = SparseVotes(
        image=images[order],
        annotator=who[order],
        values=votes["recognised"].to_numpy(dtype=np.float64)[order],
        shape=(len(places), len(names)),
    )
    return tuple(str(name) for name in names), order, recognised


def _votes_per_item(
    tables: list[pd.DataFrame], recognised: SparseVotes
) -> tuple[int, tuple[str, ...]]:
    """K, and a note where no table says it."""
    said = stated(tables, "votes_per_item", None)
    if said is not None:
        return int(said), ()
    most = int(recognised.counts.max(initial=0))
    if most == 0:
        return 0, ()
    return most, (f"No table says how many votes an image was to get; taken as {most}, the most.",)


def stated(tables: list[pd.DataFrame], column: str, otherwise: Any) -> Any:
    """Return the value of a column in a study's tables; `DataError` where there are several."""
    found = pd.concat([table[column] for table in tables if column in table] or [pd.Series()])
    values = found.dropna().unique()
    if len(values) > 1:
        several = ", ".join(sorted(map(str, values)))
        raise DataError(f"{column} must be one for a study; got {several}. Compare one at a time.")
    return values[0] if len(values) else otherwise


def _shares_of_people(table: pd.DataFrame, images: pd.DataFrame) -> SparseVotes:
    """Return shares of single people for the models of `images`; those of others are left out."""
    check_columns(table, SHARE_COLUMNS, "The table of people", DataError)
    known = keyed(table, [*MODEL_KEY, "annotator"], "people")
    _refuse_twice(known, [*MODEL_KEY, "annotator"], "shares of people")
    models = images[MODEL_KEY].drop_duplicates().sort_values(MODEL_KEY)
    place = pd.MultiIndex.from_frame(models).get_indexer(pd.MultiIndex.from_frame(known[MODEL_KEY]))
    who, names = pd.factorize(known["annotator"], sort=True)
    order = np.lexsort((who, place))
    order = order[place[order] >= 0]
    return SparseVotes(
        image=place[order],
        annotator=who[order],
        values=known["share"].to_numpy(dtype=np.float64)[order],
        shape=(len(models), len(names)),
    )


def _given(
    labels: pd.DataFrame, places: pd.MultiIndex, prefix: str = GIVEN
) -> dict[str, np.ndarray]:
    """Return the labels that came with the data, or their errors, by name, each (R,)."""
    rows = places.get_indexer(pd.MultiIndex.from_frame(labels[IMAGE_KEY]))
    given = {}
    for column in (str(column) for column in labels if str(column).startswith(prefix)):
        values = np.full(len(places), np.nan)
        try:
            cells = labels[column].astype("object").map(_share, na_action="ignore")
            values[rows] = pd.to_numeric(cells).astype(float)
        except (TypeError, ValueError) as error:
            raise DataError(f"Labels: {column} must be true, false or a number; {error}.") from None
        if (values < 0).any() or (values > 1).any():
            raise DataError(f"Labels: {column} must lie in [0, 1].")
        given[column.removeprefix(prefix)] = values
    return given


def _share(cell: Any) -> Any:
    said = truth(cell)
    return cell if said is None else float(said)


def _scored(
    scores: pd.DataFrame,
    specs: tuple[MetricSpec, ...],
    images: pd.DataFrame,
    places: pd.MultiIndex,
) -> tuple[dict[str, np.ndarray], dict[str, pd.DataFrame], list[str]]:
    """Scores of images (R,) and of sets by name of the metric, and what was left out."""
    check_columns(scores, SCORE_COLUMNS, "The table of scores", DataError)
    table = keyed(scores, [*MODEL_KEY, "metric"], "scores")
    table["value"] = _numbers(table)
    others = sorted(set(table["metric"].unique()) - {spec.name for spec in specs})
    notes = [f"Scores of {', '.join(others)} are left out: not asked for."] if others else []
    of_images, of_sets = {}, {}
    for spec in specs:
        own = table[table["metric"] == spec.name].astype(dict.fromkeys(MODEL_KEY, str))
        if own.empty:
            continue
        _check_kind(own, spec)
        if spec.per_image:
            own = own.assign(image_id=as_words(own["image_id"]))
            once = own.drop_duplicates([*IMAGE_KEY, "value"])
            notes += again_note(len(own) - len(once), "score", f"one picture by {spec.title}")
            of_images[spec.name], said = _placed(once, spec, places)
        else:
            models = images[MODEL_KEY].drop_duplicates()
            values, said = _placed(own, spec, pd.MultiIndex.from_frame(models))
            of_sets[spec.name] = models.assign(value=values).reset_index(drop=True)
        notes += said
    return of_images, of_sets, notes


def _numbers(scores: pd.DataFrame) -> pd.Series:
    """The values as floats; NaN where R or a spreadsheet writes that there is none."""
    values = pd.to_numeric(scores["value"], errors="coerce").astype(float)
    said = scores[values.isna() & scores["value"].notna()]
    said = said[~said["value"].astype(str).str.casefold().isin(MISSING)]
    if len(said):
        row = said.iloc[0]
        raise DataError(
            f"Scores: {row['metric']} of image {row['image_id']} of {row['model']} is "
            f"{row['value']!r}, which is no number. Write one with a point, such as 12.5, or leave "
            "the cell empty."
        )
    return values


def _check_kind(own: pd.DataFrame, spec: MetricSpec) -> None:
    of_sets = int(own["image_id"].isna().sum())
    wrong = of_sets if spec.per_image else len(own) - of_sets
    if wrong:
        has = "every score has an image_id" if spec.per_image else "no score has an image_id"
        raise DataError(f"{spec.title}: {has}; got {wrong} of {len(own)} scores that differ.")


def _placed(
    own: pd.DataFrame, spec: MetricSpec, places: pd.MultiIndex
) -> tuple[np.ndarray, list[str]]:
    """The values of one metric at `places`, of images or of models; NaN where there is none."""
    keys = [str(name) for name in places.names]
    what = "image" if spec.per_image else "model"
    _refuse_twice(own, keys, f"scores of {spec.title}")
    rows = places.get_indexer(pd.MultiIndex.from_frame(own[keys]))
    values = np.full(len(places), np.nan)
    values[rows[rows >= 0]] = own["value"].to_numpy()[rows >= 0]
    unknown, without = int((rows < 0).sum()), int(np.isnan(values).sum())
    notes = []
    if unknown:
        scores = counted(unknown, "score is", "scores are")
        notes.append(f"{spec.title}: {scores} of {what}s nobody was asked about.")
    if without:
        have = agreeing(without, "has", "have")
        notes.append(f"{spec.title}: {without} of {counted(len(values), what)} {have} no score.")
    return values, notes
