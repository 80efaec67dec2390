"""The disagreement gallery: images about which a metric and people differ most, both ways."""

from collections import Counter
from dataclasses import dataclass

import pandas as pd

from semsim.analysis.evidence import MODEL_KEY, model_key
from semsim.analysis.result import Analysis
from semsim.metrics.base import MetricSpec
from semsim.reporting.notation import target_text


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A reconstruction a metric and people differ about.

    row: of the evidence. target: how good the attacked model was.
    original, reconstruction: paths, None where images are not at hand.
    value: of the metric. human: the mean of what was answered, in [0, 1].
    gap: the metric's rank share minus that of people, in [-1, 1]; above 0 the metric sees more
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

    metric_only: the metric says that the image leaks, most people do not recognise it.
    people_only: most people recognise it, the metric says that it does not leak.
    """

    spec: MetricSpec
    metric_only: tuple[Entry, ...]
    people_only: tuple[Entry, ...]

    @property
    def has_images(self) -> bool:
        """Whether any entry has its pictures."""
        return any(entry.reconstruction for entry in (*self.metric_only, *self.people_only))


def gallery(
    analysis: Analysis, spec: MetricSpec, *, most: int = 12, per_original: int = 2
) -> Gallery:
    """The widest gaps between a metric of images and people.

    most: entries each way. per_original: how many of them may show the same original, so that one
    odd picture does not fill the gallery.
    """
    table = analysis.disagreement
    mine = table[table["metric"] == spec.name]
    line = analysis.evidence.threshold
    gaps = mine.assign(gap=mine["metric_share"] - mine["human_share"]).dropna(subset=["gap"])
    labels = dict(
        zip(
            (model_key(row) for _, row in analysis.models.iterrows()),
            analysis.models["label"].astype(str),
            strict=True,
        )
    )

    def widest(rows: pd.DataFrame, ascending: bool) -> tuple[Entry, ...]:
        ordered = rows.sort_values(["gap", "row"], ascending=[ascending, True], kind="stable")
        images = analysis.evidence.images.iloc[ordered["row"].astype(int)]
        kept = _varied(images, most, per_original)
        chosen = zip(ordered.iloc[kept].iterrows(), images.iloc[kept].iterrows(), strict=True)
        return tuple(_entry(found, image, labels) for (_, found), (_, image) in chosen)

    return Gallery(
        spec=spec,
        metric_only=widest(gaps[(gaps["gap"] > 0) & (gaps["human"] < line)], ascending=False),
        people_only=widest(gaps[(gaps["gap"] < 0) & (gaps["human"] > line)], ascending=True),
    )


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


def _entry(found: pd.Series, image: pd.Series, labels: dict[str, str]) -> Entry:
    key = model_key(image)
    return Entry(
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
