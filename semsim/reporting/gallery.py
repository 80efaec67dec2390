"""The disagreement gallery: images about which a metric and people differ most, both ways."""

from collections import Counter
from dataclasses import dataclass

import pandas as pd

from semsim.base.columns import AT_CHANCE, MODEL_KEY
from semsim.base.metric_spec import MetricSpec
from semsim.base.stats.analysis import Analysis
from semsim.base.stats.evidence import model_key
from semsim.reporting.notation import target_text

# What people and a metric say of a reconstruction.
BOTH, NEITHER = "both say it leaks", "both say it does not"
_ROUNDING = 1e-9  # of a mean rating, in [0, 1]
METRIC_ONLY, PEOPLE_ONLY = "the metric alone says it leaks", "people alone recognise it"


def way_words(way: str, metric: str, *, voters: str) -> str:
    """One of the four ways with the title of the `metric`, and no word of people who never saw."""
    return way.replace("people", voters).replace("the metric", metric)


@dataclass(frozen=True, kw_only=True)
class GalleryImage:
    """A reconstruction a metric and people differ about.

    Attributes:
        row: Of the evidence.
        target: How good the target model was.
        original, reconstruction: Paths, None where images are not at hand.
        value: Of the metric.
        human: The mean of what was answered, in [0, 1].
        gap: The metric's rank share minus that of people, in [-1, 1]; above 0 the metric sees more
            leakage than people do.
    """

    row: int
    model_key: str
    label: str
    dataset: str
    image_id: str
    class_name: str
    target: str
    original: str | None
    reconstruction: str | None
    value: float
    human: float
    gap: float


@dataclass(frozen=True, kw_only=True)
class Gallery:
    """Both ways of disagreeing, the widest gap first.

    Attributes:
        metric_only: The metric says that the image leaks, most people do not recognise it.
        people_only: Most people recognise it, the metric says that it does not leak.
    """

    spec: MetricSpec
    metric_only: tuple[GalleryImage, ...]
    people_only: tuple[GalleryImage, ...]

    @property
    def has_images(self) -> bool:
        """True where any entry has its pictures."""
        return any(entry.reconstruction for entry in (*self.metric_only, *self.people_only))


def gallery(
    analysis: Analysis, spec: MetricSpec, *, most: int = 12, per_original: int = 2
) -> Gallery:
    """The widest gaps between a metric of images and people.

    Args:
        most: Entries each way.
        per_original: How many of them may show the same original, so that one odd picture does not
            fill the gallery.
    """
    ways = disagreements(analysis, spec)
    return Gallery(
        spec=spec,
        metric_only=_entries(analysis, ways[METRIC_ONLY], most, per_original),
        people_only=_entries(analysis, ways[PEOPLE_ONLY], most, per_original),
    )


def disagreements(analysis: Analysis, spec: MetricSpec) -> dict[str, pd.DataFrame]:
    """The images that a metric of images and people judge differently, by who sees a leak.

    The metric calls leaked what `called_leaked` says; where that follows from ranks, only what it
    ranks above people, or below them, is told. Rows of the table of disagreement with the `gap`,
    the widest first.
    """
    gaps = judged_by_both(analysis, spec)
    leaks, private = _recognised(analysis, gaps)
    leaked = called_leaked(gaps, spec, int(leaks.sum()))
    above, below = (spec.yes_or_no | way for way in (gaps["gap"] > 0, gaps["gap"] < 0))
    found = {
        METRIC_ONLY: gaps[leaked & private & above].assign(way=-1),
        PEOPLE_ONLY: gaps[~leaked & leaks & below].assign(way=1),
    }
    return {
        who: rows.assign(order=rows["gap"] * rows["way"])
        .sort_values(["order", "row"], kind="stable")
        .drop(columns=["order", "way"])
        for who, rows in found.items()
    }


def called_leaked(gaps: pd.DataFrame, spec: MetricSpec, recognised: int) -> pd.Series:
    """Return whether the metric calls each of N images leaked, (N,) bool.

    A graded value alone does not decide it.

    Args:
        gaps: Rows of the table of disagreement.
        recognised: How many of them people recognise. A metric that says yes or no is taken at its
            word; of any other, as many images as people recognise are taken for leaked, those it
            puts first. Of equal values all are, or none: whichever is nearer.
    """
    if spec.yes_or_no:
        return (gaps["value"] > 1 / 2) == spec.higher_means_more_leakage
    n = len(gaps)
    rank = 1 + gaps["metric_share"] * max(1, n - 1)
    return rank > n - recognised + 1 / 2


def _recognised(analysis: Analysis, gaps: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Return masks of recognised and unrecognised images, (N,) bool each; even votes are neither.

    A mean rating is recognised from the threshold on, a share of votes only above a half.
    """
    line, human = analysis.evidence.threshold, gaps["human"]
    if analysis.evidence.ratings is None:
        return human > line, human < line
    reached = human >= line - _ROUNDING
    return reached, ~reached


def entries(analysis: Analysis, rows: pd.DataFrame) -> tuple[GalleryImage, ...]:
    """Rows of `disagreements` with all that a page says of them."""
    return _entries(analysis, rows, len(rows), len(rows))


def four_cases(analysis: Analysis, spec: MetricSpec) -> dict[str, GalleryImage]:
    """One reconstruction for each way that people and a metric can judge, by what both say.

    Where they disagree, the widest gap between the ranks that both give it; where they agree, the
    one that both put nearest to the same end. Each is of another original; targets that are no
    better than guessing show what others leak only where there is nothing else. A way that does
    not occur is left out.
    """
    gaps = judged_by_both(analysis, spec)
    low, high = (gaps[["metric_share", "human_share"]].agg(how, axis=1) for how in ("min", "max"))
    leaks, private = _recognised(analysis, gaps)
    guesses = _guesses(analysis, gaps["row"])
    middle = 0.5  # of the metric's ranking of all images
    ways = {
        BOTH: (leaks & (low > middle), -low),
        NEITHER: (private & (high < middle), high),
        METRIC_ONLY: (private & (gaps["metric_share"] > middle), -gaps["gap"]),
        PEOPLE_ONLY: (leaks & (gaps["metric_share"] < middle), gaps["gap"]),
    }
    found: dict[str, GalleryImage] = {}
    for way in (METRIC_ONLY, PEOPLE_ONLY, BOTH, NEITHER):  # the rarer ones choose first
        rows, cost = ways[way]
        ordered = gaps[rows].assign(cost=cost[rows], guesses=guesses[rows])
        ordered = ordered.sort_values(["guesses", "cost", "row"], kind="stable")
        taken = {(entry.dataset, entry.image_id) for entry in found.values()}
        for entry in _entries(analysis, ordered, len(taken) + 1, 1):
            if (entry.dataset, entry.image_id) not in taken:
                found[way] = entry
                break
    return {way: found[way] for way in ways if way in found}


def _guesses(analysis: Analysis, rows: pd.Series) -> pd.Series:
    """Return whether each image's target model only guesses, (N,) bool; False where unknown."""
    marks = analysis.evidence.images.get(AT_CHANCE)
    if marks is None:
        return pd.Series(False, index=rows.index)
    return marks.iloc[rows.astype(int)].eq(True).fillna(False).set_axis(rows.index).astype(bool)


def judged_by_both(analysis: Analysis, spec: MetricSpec) -> pd.DataFrame:
    """The rows of the table of disagreement of images that people and the metric have judged.

    With the `gap`, from −1 to 1: the share of images that the metric puts below, less people's.
    """
    table = analysis.disagreement
    mine = table[table["metric"] == spec.name]
    return mine.assign(gap=mine["metric_share"] - mine["human_share"]).dropna(subset=["gap"])


def _entries(
    analysis: Analysis, ordered: pd.DataFrame, most: int, per_original: int
) -> tuple[GalleryImage, ...]:
    labels = dict(
        zip(
            (model_key(row) for _, row in analysis.models.iterrows()),
            analysis.models["label"].astype(str),
            strict=True,
        )
    )
    images = analysis.evidence.images.iloc[ordered["row"].astype(int)]
    kept = _varied(images, most, per_original)
    chosen = zip(ordered.iloc[kept].iterrows(), images.iloc[kept].iterrows(), strict=True)
    return tuple(_entry(found, image, labels) for (_, found), (_, image) in chosen)


def _varied(images: pd.DataFrame, most: int, per_original: int) -> list[int]:
    """Places of the first `most` rows of which no original has more than `per_original`."""
    seen: Counter[tuple[str, str]] = Counter()
    kept: list[int] = []
    for place, original in enumerate(zip(images["dataset"], images["image_id"], strict=True)):
        if len(kept) == most:
            break
        if seen[original] < per_original:
            seen[original] += 1
            kept.append(place)
    return kept


def _entry(found: pd.Series, image: pd.Series, labels: dict[str, str]) -> GalleryImage:
    key = model_key(image)
    return GalleryImage(
        row=int(found["row"]),
        model_key=key,
        label=labels.get(key, " · ".join(str(image[name]) for name in MODEL_KEY)),
        dataset=str(image["dataset"]),
        image_id=str(image["image_id"]),
        class_name=str(image["class_name"]),
        target=target_text(image),
        original=_path(image.get("original")),
        reconstruction=_path(image.get("reconstruction")),
        value=float(found["value"]),
        human=float(found["human"]),
        gap=float(found["gap"]),
    )


def _path(value: object) -> str | None:
    return value if isinstance(value, str) else None  # a path, or NA
