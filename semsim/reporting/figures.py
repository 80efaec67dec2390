"""The figures of an analysis, by name: what is drawn is a table, and the table can be had.

Those of single images against votes, and of metrics against metrics, are painted here.
"""

import functools
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from semsim.base.errors import UnknownNameError
from semsim.base.metric_spec import MetricSpec
from semsim.base.registry import unknown
from semsim.base.stats.agreement import best_first
from semsim.base.stats.analysis import Analysis
from semsim.base.stats.verdict import response_by
from semsim.base.words import counted
from semsim.reporting import canvas
from semsim.reporting.canvas import Drawn, marked_as_simulated
from semsim.reporting.interval_figures import auc, forest, order, rules
from semsim.reporting.model_figures import heading, scatter, stability
from semsim.reporting.notation import number
from semsim.reporting.ranked_figure import ranked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_GOLDEN = 0.6180339887498949  # multiples modulo 1 spread evenly: jitter without randomness
_MANY_LEVELS = 11  # more different shares than this are gathered in tenths
_DARK_BELOW = -0.05  # of ρ: the lower end of the map, where white text reads better


def images(analysis: Analysis, spec: MetricSpec) -> Drawn:
    """The value of a metric for each image against the mean of what people said of it."""
    frame, people = _image_frame(analysis, spec), analysis.evidence.response_words
    return Drawn(
        title=f"{spec.title} of single images against votes",
        caption=(
            f"Each dot is one reconstruction, {int(frame['share'].notna().sum())} with votes: its "
            f"{spec.title} against the {people}; dots are spread sideways to be seen. Boxes: "
            "median and middle half at each of these; whiskers: 5 % to 95 %. The number of images "
            "stands above."
        ),
        frame=frame,
        paint=functools.partial(_paint_images, heading(spec), people),
    )


def matrix(analysis: Analysis) -> Drawn:
    """Spearman's ρ over models between people and every metric, each with each."""
    frame = analysis.matrix.copy()
    frame.insert(0, "title", frame.index.astype(str))
    return Drawn(
        title="How alike do people and metrics rank the models?",
        caption=(
            "Spearman's ρ over models between every two rankings, each oriented so that more "
            "means more leakage: 1 is the same order, −1 the reverse. "
            f"{counted(len(analysis.models), 'model')}. A dash: undefined."
        ),
        frame=frame.reset_index(drop=True),
        paint=_paint_matrix,
    )


def _image_frame(analysis: Analysis, spec: MetricSpec) -> pd.DataFrame:
    evidence = analysis.evidence
    response = response_by(evidence, analysis.settings.headline)
    frame = evidence.images[["dataset", "attack", "model", "image_id"]].reset_index(drop=True)
    value = evidence.scores.get(spec.name, np.full(len(frame), np.nan))
    n_votes, share = evidence.recognised.counts, response.means
    return frame.assign(n_votes=n_votes, share=share, value=value)


def _paint_images(name: str, people: str, frame: pd.DataFrame, width: float) -> "Figure":
    both = frame.dropna(subset=["share", "value"])
    drawn = both[np.isfinite(both["value"])]
    footnote = _not_drawn(frame)
    if drawn.empty:
        return canvas.empty(width, footnote or "There is no image to show.")
    figure = canvas.blank(width, 78)
    axes = figure.add_subplot()
    canvas.quiet(axes, grid="y")
    levels = _levels(drawn["share"])
    step = float(np.diff(sorted(levels.unique())).min()) if levels.nunique() > 1 else 0.2
    _dots(axes, drawn, levels, step)
    for level, part in drawn.groupby(levels)["value"]:
        _box(axes, float(level), part.to_numpy(), step)
    _count(axes, levels)
    ticks = sorted(levels.unique())
    axes.set_xticks(ticks, [number(tick, 2) for tick in ticks])
    canvas.label(axes, x=people.capitalize(), y=name)
    canvas.footnote(figure, footnote)
    return figure


def _levels(share: pd.Series) -> pd.Series:
    """The shares of votes themselves where they are few, else the nearest tenths."""
    return share if share.nunique() <= _MANY_LEVELS else share.round(1)


def _dots(axes: "Axes", drawn: pd.DataFrame, levels: pd.Series, step: float) -> None:
    jitter = (np.arange(len(drawn)) * _GOLDEN % 1 - 0.5) * 0.42 * step
    alpha = float(np.clip(60 / np.sqrt(len(drawn)) / 4, 0.12, 0.7))
    dots: dict[str, Any] = {"s": 4, "color": canvas.PEOPLE, "alpha": alpha, "linewidths": 0}
    axes.scatter(levels - 0.22 * step + jitter, drawn["value"], rasterized=True, **dots)


def _box(axes: "Axes", level: float, values: np.ndarray, step: float) -> None:
    low, first, middle, last, high = np.percentile(values, [5, 25, 50, 75, 95])
    x = level + 0.2 * step
    axes.plot([x, x], [low, high], color=canvas.INK, lw=0.8)
    axes.plot([x, x], [first, last], color=canvas.METRIC, lw=6, solid_capstyle="butt")
    half = 0.11 * step
    axes.plot([x - half, x + half], [middle, middle], color=canvas.INK, lw=1.6)


def _count(axes: "Axes", levels: pd.Series) -> None:
    above = {"transform": axes.get_xaxis_transform(), "ha": "center", "va": "bottom"}
    for level, n in levels.value_counts().items():
        canvas.note(axes, float(str(level)), 1.01, f"n = {n}", **above)


def _not_drawn(frame: pd.DataFrame) -> str:
    """Count the images without a place in the plane, and say why."""
    reasons = {
        "without votes": frame["n_votes"] == 0,
        "of originals without a name": frame["share"].isna() & (frame["n_votes"] > 0),
        "without a value": frame["value"].isna(),
        "with the value ∞": frame["value"] == np.inf,
        "with the value −∞": frame["value"] == -np.inf,
    }
    said = [f"{int(rows.sum())} {words}" for words, rows in reasons.items() if rows.any()]
    return f"Images not drawn: {', '.join(said)}." if said else ""


def _paint_matrix(frame: pd.DataFrame, width: float) -> "Figure":
    titles = list(frame["title"])
    if len(titles) < 2:
        return canvas.empty(width, "Nothing can be compared: no metric has a value for models.")
    values = frame[titles].to_numpy(dtype=float)
    side = (width - 40) / len(titles)
    figure = canvas.blank(width, min(side, 16.0) * len(titles) + 42)
    axes = figure.add_subplot()
    canvas.quiet(axes, grid="x")
    axes.grid(False)
    axes.patch.set(facecolor=canvas.INK, alpha=0.08)  # what an undefined cell shows
    # Cividis runs from dark to light for every eye, so it reads in grey too.
    drawn = axes.imshow(values, cmap="cividis", vmin=-1, vmax=1, aspect="auto")
    for (i, j), value in np.ndenumerate(values):
        _cell(axes, i, j, value, side)
    canvas.rows_axis(axes, titles, width=22)
    axes.set_xticks(range(len(titles)), titles, rotation=40, ha="right", rotation_mode="anchor")
    axes.spines["bottom"].set_visible(False)
    bar = figure.colorbar(drawn, ax=axes, fraction=0.03, pad=0.02)
    bar.set_label("Spearman's ρ over models", fontsize=canvas.TEXT, color=canvas.INK)
    bar.ax.tick_params(colors=canvas.INK, labelsize=canvas.SMALL, width=0.6)
    bar.outline.set_visible(False)
    return figure


def _cell(axes: "Axes", i: int, j: int, value: float, side: float) -> None:
    colour = canvas.INK if np.isnan(value) else "#ffffff" if value < _DARK_BELOW else "#111111"
    size = canvas.TEXT if side > 9 else 5.0
    canvas.note(axes, j, i, number(value, 2), ha="center", color=colour, fontsize=size)


# Figures of a whole study, and figures of one metric.
_OF_STUDY: dict[str, Callable[[Analysis], Drawn]] = {
    "forest": forest,
    "order": order,
    "auc": auc,
    "rules": rules,
    "matrix": matrix,
}
_OF_METRIC: dict[str, Callable[[Analysis, MetricSpec], Drawn]] = {
    "scatter": scatter,
    "stability": stability,
    "images": images,
    "ranked": ranked,
}
_OF_IMAGES = ("images", "ranked")  # of metrics that give each image a value
NAMES = (*_OF_STUDY, *_OF_METRIC)


def figure(analysis: Analysis, name: str, metric: str | None = None) -> Drawn:
    """The figure `name` of an analysis, for the figures of one metric that of `metric`.

    Of simulated votes it is marked as such. Raises `UnknownNameError` for a figure, or a metric,
    that there is not.
    """
    found, mark = _found(analysis, name, metric), analysis.evidence.mark
    return marked_as_simulated(found, mark) if mark else found


def _found(analysis: Analysis, name: str, metric: str | None) -> Drawn:
    if name in _OF_STUDY:
        return replace(_OF_STUDY[name](analysis), name=name)
    if name not in _OF_METRIC:
        raise unknown("figure", name, NAMES)
    specs = {spec.name: spec for spec in analysis.specs}
    if metric not in specs:
        raise unknown("metric of this analysis", metric, specs)
    if name not in names_of(analysis, specs[metric]):
        raise UnknownNameError(f"{specs[metric].title} gives no value to a single image.")
    return replace(_OF_METRIC[name](analysis, specs[metric]), name=name, metric=metric)


def figures(analysis: Analysis) -> tuple[Drawn, ...]:
    """Every figure: those of the study, then metric by metric, the best agreeing first.

    No two have one stem: where the names of metrics differ in a separator or in case only, the
    name of the later figure has a number.
    """
    of_study = [figure(analysis, name) for name in _OF_STUDY]
    of_metrics = [
        figure(analysis, name, spec.name)
        for spec in by_agreement(analysis)
        for name in names_of(analysis, spec)
        if name in _OF_METRIC
    ]
    return _told_apart([*of_study, *of_metrics])


def _told_apart(drawn: list[Drawn]) -> tuple[Drawn, ...]:
    taken: Counter[str] = Counter()
    found = []
    for one in drawn:
        stem = one.stem.casefold()  # one file on many disks
        taken[stem] += 1
        n = taken[stem]
        found.append(one if n == 1 else replace(one, name=f"{one.name}-{n}"))
    return tuple(found)


def names_of(analysis: Analysis, spec: MetricSpec) -> list[str]:
    """The names of figures there are with this metric, those of the whole study first."""
    of_images = spec.name in analysis.evidence.scores
    return [name for name in NAMES if of_images or name not in _OF_IMAGES]


def by_agreement(analysis: Analysis) -> list[MetricSpec]:
    """The metrics, the one that agrees best with people first, as `best_first` has them."""
    names = [*best_first(analysis.agreement)["metric"], *(spec.name for spec in analysis.specs)]
    return sorted(analysis.specs, key=lambda spec: names.index(spec.name))
