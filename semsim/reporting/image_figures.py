"""Figures of single images against votes, and of metrics against metrics."""

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from semsim.analysis.human import response_by
from semsim.analysis.result import Analysis
from semsim.metrics.base import MetricSpec
from semsim.reporting import canvas
from semsim.reporting.canvas import Drawn
from semsim.reporting.model_figures import heading
from semsim.reporting.notation import number
from semsim.words import counted

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
    """How many images have no place in the plane, and why."""
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
