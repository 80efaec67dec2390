"""Figures with a point a model: where metric and people put it, and how sure both are."""

import functools
import math
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from semsim.base.columns import MODEL_KEY
from semsim.base.metric_spec import MetricSpec
from semsim.base.stats.analysis import Analysis
from semsim.base.stats.evidence import model_key
from semsim.base.stats.intervals import RULE
from semsim.base.words import counted
from semsim.reporting import canvas
from semsim.reporting.canvas import Bars, Drawn
from semsim.reporting.notation import interval, number, rank_text, reason
from semsim.reporting.svg import SPREAD, side_by_side

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_ROW = 5.0  # mm of height a model
_TICK = 10.0  # mm of figure a rank on the axis needs
_SHORTENED = "Of long names, the parts that all models share are left out."
# Style of a measure's ranks, and how far below the middle of a row they stand.
_MEASURES = {
    "people": (Bars(colour=canvas.PEOPLE, marker="o", size=5.5), -0.16),
    "metric": (Bars(colour=canvas.METRIC, marker="D", size=4.5, width=1.4), 0.16),
}


def heading(spec: MetricSpec) -> str:
    """A metric's title with its unit and which way leakage lies."""
    return f"{_with_unit(spec)} {'↑' if spec.higher_means_more_leakage else '↓'}"


def heading_in_words(spec: MetricSpec) -> str:
    """A metric's title with its unit and which values are closer to the original."""
    return f"{_with_unit(spec)}, {closer(spec)}"


def _with_unit(spec: MetricSpec) -> str:
    return f"{spec.title} ({spec.unit})" if spec.unit else spec.title


def closer(spec: MetricSpec) -> str:
    """Return which values of a metric are of pictures closer to their originals, in words."""
    return f"{'higher' if spec.higher_means_more_leakage else 'lower'} is closer"


def agreement_words(analysis: Analysis, spec: MetricSpec) -> str:
    """ρ, τ and n of a metric in a line, or why there are none."""
    found = analysis.agreement[analysis.agreement["metric"] == spec.name]
    if found.empty:
        return "no agreement was computed"
    row = found.iloc[0]
    why = reason(row["undefined"])
    if why is not None:
        return f"ρ and τ undefined: {why}"
    models = counted(row["n"], "model")
    return f"ρ = {number(row['rho'], 2)}, τ = {number(row['tau'], 2)}, n = {models}"


def scatter(analysis: Analysis, spec: MetricSpec) -> Drawn:
    """Draw the mean of a metric for each model against the mean human score."""
    words = agreement_words(analysis, spec)
    return Drawn(
        title=f"{spec.title}: {words}",
        caption=(
            f"Each point is a model: the mean {spec.title} of its reconstructions against the "
            f"mean human score '{analysis.score_title}'. "
            f"{'Higher' if spec.higher_means_more_leakage else 'Lower'} {spec.title} means that "
            f"more leaks. Bars are intervals, in both directions. {RULE} Infinite values are left "
            f"out of means and counted. {_SHORTENED}"
        ),
        frame=_scatter_frame(analysis.models, spec),
        paint=functools.partial(_paint_scatter, heading(spec), words),
        tooltip=_scatter_tip,
    )


def stability(analysis: Analysis, spec: MetricSpec) -> Drawn:
    """The rank of each model by people beside its rank by a metric."""
    table = analysis.stability
    of_sets = "" if spec.per_image else f"{spec.title} is of sets and has no range. "
    mine = table[table["measure"].isin(["people", spec.name])]
    by_people = mine[mine["measure"] == "people"].set_index("model_key")["rank"]
    frame = mine.assign(order=mine["model_key"].map(by_people))
    frame = frame.sort_values(["order", "measure"], kind="stable", ignore_index=True)
    return Drawn(
        title=f"Ranks of the models by people and by {spec.title}",
        caption=(
            "Rank 1 leaks most. Models are in the order people put them in. Lines: the range that "
            f"holds 95% of the ranks in {analysis.settings.bootstraps} cluster bootstraps over "
            "originals. These images separate models whose lines do not overlap; the order of "
            f"others is open. {of_sets}{_SHORTENED}"
        ),
        frame=frame.drop(columns="order"),
        paint=functools.partial(_paint_stability, spec.name, spec.title),
        tooltip=_stability_tip,
    )


def _scatter_frame(models: pd.DataFrame, spec: MetricSpec) -> pd.DataFrame:
    frame = models[[*MODEL_KEY, "label", "human", "human_low", "human_high"]].copy()
    for name, column in (("value", ""), ("low", ":low"), ("high", ":high"), ("n_inf", ":n_inf")):
        source = f"{spec.name}{column}"
        frame[name] = models.get(source, np.nan)
    frame["model_key"] = [model_key(row) for _, row in models.iterrows()]
    frame = frame.sort_values("human", ascending=False, kind="stable", ignore_index=True)
    return frame.assign(number=range(1, len(frame) + 1))


def _scatter_tip(row: pd.Series) -> str:
    return (
        f"{row['label']}: metric {number(row['value'])} {interval(row['low'], row['high'], 3)}, "
        f"people {number(row['human'])} {interval(row['human_low'], row['human_high'])}"
    )


def _stability_tip(row: pd.Series) -> str:
    said = f"{row['label']}: rank {rank_text(row['rank'])} by {row['title']}"
    if pd.isna(row["low"]):
        return said
    return f"{said}, 95% {rank_text(row['low'])} to {rank_text(row['high'])}"


def _paint_scatter(name: str, words: str, frame: pd.DataFrame, width: float) -> "Figure":
    drawn = frame[np.isfinite(frame["value"]) & np.isfinite(frame["human"])]
    if drawn.empty:
        return canvas.empty(width, _why_not_drawn(frame) or "There is no model to show.")
    stacked = width < canvas.NARROW
    listed = len(frame) * 3.4 + 12
    height = 75 + listed if stacked else max(85.0, listed)
    figure = canvas.blank(width, height)
    if stacked:
        axes, key = figure.subplots(2, 1, height_ratios=(70, listed))
    else:
        axes, key = figure.subplots(1, 2, width_ratios=(3, 2))
    canvas.quiet(axes, grid="both")
    points = [
        _point(axes, int(index), row)
        for index, row in zip(drawn.index, drawn.to_dict("records"), strict=True)
    ]
    heads = "\n".join(wrap(words, 44 if stacked else 64))
    canvas.label(axes, x=f"{name}, mean of a model", y="People recognise", title=heads)
    _list_models(key, frame)
    canvas.footnote(figure, _why_not_drawn(frame))
    _number(figure, axes, points, drawn)
    return figure


def _point(axes: "Axes", index: int, row: dict[Any, Any]) -> "Line2D":
    """Draw a model with its bars, and return its point."""
    bars: dict[str, Any] = {"color": canvas.PEOPLE, "lw": 1.0, "alpha": 0.55}
    axes.plot([row["low"], row["high"]], [row["human"]] * 2, **bars)
    axes.plot([row["value"]] * 2, [row["human_low"], row["human_high"]], **bars)
    point: dict[str, Any] = {"marker": "o", "ms": 8.5, "color": canvas.PEOPLE, "mew": 0}
    return axes.plot([row["value"]], [row["human"]], gid=f"row-{index}", zorder=3, **point)[0]


def _number(
    figure: "Figure", axes: "Axes", points: Sequence["Line2D"], drawn: pd.DataFrame
) -> None:
    """Number the points; those that hide each other stand side by side, which a note explains."""
    from matplotlib.transforms import ScaledTranslation

    inside: dict[str, Any] = {"ha": "center", "va": "center_baseline", "weight": "bold"}
    inside |= {"color": "#ffffff", "fontsize": 5.5, "zorder": 4}
    figure.draw_without_rendering()  # what lies where is known once all texts have their room
    data = drawn[["value", "human"]].to_numpy(dtype=float)
    inches = axes.transData.transform(data) / figure.dpi
    places = [(float(x), float(y)) for x, y in inches * 72]
    beside = side_by_side(places)
    for point, numeral, at, place, (x, _) in zip(
        points, drawn["number"], data, places, beside, strict=True
    ):
        aside = ScaledTranslation((x - place[0]) / 72, 0, figure.dpi_scale_trans)
        point.set_transform(axes.transData + aside)
        axes.text(at[0], at[1], str(numeral), transform=axes.transData + aside, **inside)
    if beside != places:
        canvas.note(axes, 0.02, 0.98, SPREAD, transform=axes.transAxes, va="top")


def _list_models(axes: "Axes", frame: pd.DataFrame) -> None:
    """The key: number and label of every model, most recognised first."""
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    axes.set_ylim(max(len(frame), 12) - 0.5, -1.5)
    canvas.note(axes, 0, -1, "Models, most recognised first", weight="bold")
    for y, label in enumerate(canvas.distinct(list(frame["label"]))):
        canvas.note(axes, 0.06, y, str(frame["number"][y]), ha="right")
        canvas.note(axes, 0.09, y, canvas.cut(label, 44))


def _why_not_drawn(frame: pd.DataFrame) -> str:
    """Names the models without a place in the plane, and why; empty where all have one."""
    said = []
    for words, absent in (
        ("no human score", frame["human"].isna()),
        ("no value of the metric", frame["value"].isna()),
        ("an infinite mean", np.isinf(frame["value"])),
    ):
        names = [f"{n} {label}" for n, label in frame.loc[absent, ["number", "label"]].to_numpy()]
        if names:
            said.append(f"Not drawn, {words}: {', '.join(names)}.")
    infinite = int(frame.loc[np.isfinite(frame["value"]), "n_inf"].fillna(0).sum())
    if infinite:
        values = counted(infinite, "infinite value is", "infinite values of single images are")
        said.append(f"{values} left out of the means.")
    return " ".join(said)


def _paint_stability(metric: str, title: str, frame: pd.DataFrame, width: float) -> "Figure":
    models = frame.drop_duplicates("model_key").set_index("model_key")["label"]
    if models.empty:
        return canvas.empty(width, "No model has a rank.")
    figure = canvas.blank(width, len(models) * _ROW + 20)
    axes = figure.add_subplot()
    canvas.quiet(axes)
    names = canvas.distinct(list(models))
    canvas.rows_axis(axes, [canvas.cut(name, 40) for name in names], width=44)
    _join_ranks(axes, frame, list(models.index), metric)
    for measure, name in (("people", "people"), (metric, title)):
        style, shift = _MEASURES["people" if measure == "people" else "metric"]
        for index, row in frame[frame["measure"] == measure].iterrows():
            y = list(models.index).index(row["model_key"]) + shift
            canvas.estimate(
                axes, y, (row["rank"], row["low"], row["high"]), style, gid=f"row-{index}"
            )
        axes.plot([], [], style.marker, color=style.colour, ms=style.size, mew=0, label=name)
    axes.set_xlim(0.4, len(models) + 0.6)
    axes.set_xticks(range(1, len(models) + 1, math.ceil(len(models) * _TICK / width)))
    canvas.label(axes, x="Rank (1 leaks most)")
    canvas.legend(figure, axes, width)
    canvas.footnote(figure, _without_rank(frame, metric, title))
    return figure


def _join_ranks(axes: "Axes", frame: pd.DataFrame, keys: list[str], metric: str) -> None:
    """A hair line from the rank by people to the rank by the metric: the longer, the worse."""
    ranks = frame.pivot(index="model_key", columns="measure", values="rank")
    if metric not in ranks or "people" not in ranks:
        return
    shifts = [_MEASURES[measure][1] for measure in ("people", "metric")]
    for key, row in ranks.iterrows():
        heights = [keys.index(str(key)) + shift for shift in shifts]
        axes.plot([row["people"], row[metric]], heights, color=canvas.INK, lw=0.6, alpha=0.5)


def _without_rank(frame: pd.DataFrame, metric: str, title: str) -> str:
    said = []
    for measure, name in (("people", "people"), (metric, title)):
        ranked = frame.loc[(frame["measure"] == measure) & frame["rank"].notna(), "model_key"]
        absent = frame.loc[~frame["model_key"].isin(ranked), "label"].drop_duplicates()
        if len(absent):
            said.append(f"No rank by {name}: {', '.join(absent)}.")
    return " ".join(said)
