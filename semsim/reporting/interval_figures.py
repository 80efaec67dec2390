"""Figures of estimates with intervals, a row each: agreement, AUC, and the human scores."""

from collections.abc import Hashable, Mapping
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from semsim.base.stats.agreement import best_first
from semsim.base.stats.analysis import Analysis
from semsim.base.stats.ceiling import Ceiling
from semsim.base.stats.intervals import RULE
from semsim.base.stats.roc import scale_differs, scale_note
from semsim.base.stats.verdict import title_of
from semsim.base.words import counted
from semsim.reporting import canvas
from semsim.reporting.canvas import Bars, Drawn
from semsim.reporting.notation import interval, number, reason

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW = 6.5  # mm of height a row
_MARGIN = 17.0  # mm for axis and legend
_FOREST = [
    *("kind", "metric", "title", "n", "rho", "rho_bw_low", "rho_bw_high"),
    *("tau", "tau_score_low", "tau_score_high", "interval_undefined", "undefined"),
]
_ORDER = [
    *("metric", "title", "band", "soft_accuracy", "tied_accuracy", "ties_alone"),
    *("n_models", "n_originals", "undefined"),
]
_ORDERED = {  # columns of `_ORDER` that are drawn, and the names of their axes
    "soft_accuracy": "Models: soft pairwise accuracy",
    "tied_accuracy": "Within originals: pairwise accuracy",
}
_CHANCE = 0.5
_WORDS = 36  # letters of a reason in a line: it ends before a high ceiling
_BESIDE = 60.0  # mm that the texts on both sides of a panel need
_RULE_COLUMNS = ("human_score", "rho", "low", "high")


def forest(analysis: Analysis) -> Drawn:
    """ρ and τ of every metric with people, best first, against the human ceiling."""
    rows = best_first(analysis.agreement).assign(kind="metric")
    frame = pd.DataFrame([*rows[_FOREST].to_dict("records"), _ceiling_row(analysis.ceiling)])
    return Drawn(
        title="Agreement of each metric with people",
        caption=(
            "Rank correlation over models between each metric, oriented so that positive agrees "
            f"with people, and the human score '{analysis.score_title}'. Left Spearman's ρ, "
            f"right Kendall's τ-b, {_models(rows['n'])}. {_interval_words(rows)} "
            f"{_ceiling_words(analysis.ceiling)}"
        ),
        frame=frame[_FOREST],
        paint=_paint_forest,
    )


def auc(analysis: Analysis) -> Drawn:
    """AUC of every metric for the verdict of people on single images, by scope."""
    scopes = list(dict.fromkeys(analysis.auc["scope"]))
    return Drawn(
        title="Single images: does the metric know which ones people recognise?",
        caption=(
            "Area under the ROC curve of each metric of images for the binary label people gave "
            f"({analysis.label_words}): {', '.join(scopes) or 'no scope'}. Lines are intervals. "
            f"{RULE} 0.5 is chance. {scale_note(scale_differs(analysis.auc))}"
        ).rstrip(),
        frame=analysis.auc.reset_index(drop=True),
        paint=_paint_auc,
    )


def order(analysis: Analysis) -> Drawn:
    """Draw accuracy over models and within originals side by side."""
    return Drawn(
        title="Ordering models is one task, ordering the pictures of one original another",
        caption=(
            "Left soft pairwise accuracy: how well each metric orders these models as people do, "
            "over all originals. Right accuracy within originals: how well it orders the pictures "
            "that several models made of one original; the dashed line is reached by calling all "
            f"equal. Metrics are sorted by the left panel. {_models(analysis.order['n_models'])}, "
            f"{counted(max([0, *analysis.order['n_originals']]), 'original')}."
        ),
        frame=analysis.order[_ORDER].reset_index(drop=True),
        paint=_paint_order,
    )


def rules(analysis: Analysis) -> Drawn:
    """ρ of every metric under each human score, side by side."""
    titles = analysis.rules["rule"].map(lambda rule: title_of(analysis.evidence, str(rule)))
    names = list(dict.fromkeys(titles))
    return Drawn(
        title="Does the choice of the human score matter?",
        caption=(
            "Spearman's ρ over models of each metric with people, when people are summed up by "
            f"{', '.join(names) or 'no score'}. The headline score is "
            f"'{analysis.score_title}'; the others show how far it matters. "
            f"Each over {_models(analysis.rules['n'])}."
        ),
        frame=analysis.rules.assign(human_score=titles).reset_index(drop=True),
        paint=_paint_rules,
    )


def _ceiling_row(ceiling: Ceiling) -> dict[str, object]:
    values = (ceiling.rho, ceiling.rho_low, ceiling.rho_high)
    taus = (ceiling.tau, ceiling.tau_low, ceiling.tau_high)
    rho, low, high, tau, tau_low, tau_high = (
        np.nan if value is None else value for value in (*values, *taus)
    )
    return {
        **{"kind": "ceiling", "metric": "", "title": "Human ceiling", "n": ceiling.n_models},
        **{"rho": rho, "rho_bw_low": low, "rho_bw_high": high},
        **{"tau": tau, "tau_score_low": tau_low, "tau_score_high": tau_high},
        **{"interval_undefined": ceiling.interval_undefined, "undefined": ceiling.undefined},
    }


def _interval_words(rows: pd.DataFrame) -> str:
    whys = dict.fromkeys(why for why in rows["interval_undefined"].map(reason) if why is not None)
    absent = "".join(f" {why[0].upper()}{why[1:]}." for why in whys)
    return (
        "Lines: 95 % interval over models, of ρ after Bonett and Wright, of τ by its score."
        f"{absent}"
    )


def _ceiling_words(ceiling: Ceiling) -> str:
    if ceiling.undefined is not None:
        return f"The human ceiling is undefined: {ceiling.undefined}."
    first, second = ceiling.sizes
    return (
        "Dashed line and band: the human ceiling, how well the ranking by "
        f"{first} annotators agrees with that by {second} others (mean of {ceiling.n_splits} "
        "splits; band: 95 % interval over models of one split)."
    )


def _models(n: pd.Series) -> str:
    """ "n = 14 models", or the range where metrics differ."""
    if n.empty:
        return "no models"
    low, high = int(n.min()), int(n.max())
    return f"n = {counted(low, 'model')}" if low == high else f"n = {low} to {high} models"


def _paint_forest(frame: pd.DataFrame, width: float) -> "Figure":
    rows = frame[frame["kind"] == "metric"].reset_index(drop=True)
    ceiling = frame[frame["kind"] == "ceiling"].iloc[0]
    if rows.empty:
        return canvas.empty(width, "No metric has scores, so there is nothing to compare.")
    whys = [reason(why) for why in rows["undefined"]]
    lines = [len(_why_lines(why)) for why in whys if why is not None]
    height = len(rows) * _row_height(lines) + _MARGIN
    stacked = width < canvas.NARROW
    figure = canvas.blank(width, 2 * height if stacked else height)
    shape = (2, 1) if stacked else (1, 2)
    panels = figure.subplots(*shape, sharey=not stacked)
    _forest_panel(panels[0], rows, ceiling, "rho", "Spearman's ρ")
    _forest_panel(panels[1], rows, ceiling, "tau", "Kendall's τ-b")
    if not stacked:
        panels[1].tick_params(labelleft=False)
    return figure


def _forest_panel(
    axes: "Axes", rows: pd.DataFrame, ceiling: pd.Series, statistic: str, name: str
) -> None:
    canvas.quiet(axes)
    axes.set_xlim(-1.03, 1.03)
    canvas.rows_axis(axes, _row_names(rows), width=24)
    _draw_ceiling(axes, ceiling, statistic)
    axes.axvline(0, color=canvas.INK, lw=0.8)
    for y, row in enumerate(rows.to_dict("records")):
        low, high = _ends(row, statistic)
        canvas.estimate(axes, y, (row[statistic], low, high), Bars(colour=canvas.METRIC))
        why = reason(row["undefined"])
        if why is None:
            canvas.beside(axes, y, _found(row[statistic], low, high))
        else:
            _reason(axes, y, _why_lines(why))
    shared = f" over {_models(rows['n'])}" if rows["n"].nunique() == 1 else ""
    canvas.label(axes, x=f"{name}{shared}")


def _ends(row: Mapping[Hashable, Any] | pd.Series, statistic: str) -> tuple[float, float]:
    """Of the interval over models."""
    stem = {"rho": "rho_bw", "tau": "tau_score"}[statistic]
    return row[f"{stem}_low"], row[f"{stem}_high"]


def _row_names(rows: pd.DataFrame) -> list[str]:
    """Titles, with n where it differs between metrics."""
    if rows["n"].nunique() == 1:
        return [str(title) for title in rows["title"]]
    return [f"{title}, n = {n}" for title, n in zip(rows["title"], rows["n"], strict=True)]


def _draw_ceiling(axes: "Axes", ceiling: pd.Series, statistic: str) -> None:
    if not np.isfinite(ceiling[statistic]):
        return
    low, high = _ends(ceiling, statistic)
    if np.isfinite([low, high]).all():
        axes.axvspan(low, high, color=canvas.PEOPLE, alpha=0.16, lw=0)
    axes.axvline(ceiling[statistic], color=canvas.PEOPLE, lw=1.2, ls=(0, (4, 2)))
    where = {"transform": axes.get_xaxis_transform(), "va": "bottom", "ha": "right"}
    text = f"human ceiling {number(ceiling[statistic], 2)}"
    canvas.note(axes, 1.03, 1.02, text, **where)


def _paint_auc(frame: pd.DataFrame, width: float) -> "Figure":
    if frame.empty:
        return canvas.empty(width, "No metric gives a value to every image, so there is no AUC.")
    figure, axes = _dodged(frame, width, ("scope", "auc", "low", "high"))
    drawn = frame[["auc", "low", "high"]].to_numpy(dtype=float)
    low, high = np.nanmin([*drawn.ravel(), _CHANCE]), np.nanmax([*drawn.ravel(), _CHANCE])
    axes.axvline(_CHANCE, color=canvas.INK, lw=0.8)
    axes.set_xlim(max(0, low - 0.03), min(1.005, high + 0.03))
    canvas.label(axes, x="Area under the ROC curve (0.5 is chance)")
    return figure


def _paint_order(frame: pd.DataFrame, width: float) -> "Figure":
    if frame["soft_accuracy"].isna().all():
        return canvas.empty(width, "No metric orders two models that people have judged.")
    stacked = width < canvas.NARROW
    height = len(frame) * _ROW + _MARGIN
    figure = canvas.blank(width, 2 * height if stacked else height)
    shape = (2, 1) if stacked else (1, 2)
    panels = figure.subplots(*shape, sharey=not stacked)
    for axes, (column, name) in zip(panels, _ORDERED.items(), strict=True):
        canvas.quiet(axes)
        canvas.rows_axis(axes, [str(title) for title in frame["title"]], width=24)
        axes.set_xlim(-0.03, 1.03)
        canvas.label(axes, x=name)
        for y, row in enumerate(frame.to_dict("records")):
            found = row[column], np.nan, np.nan
            canvas.estimate(axes, y, found, Bars(colour=canvas.METRIC))
            if np.isnan(row[column]):
                why = reason(row["undefined"]) or "people judged no single picture"
                _reason(axes, y, _why_lines(why))
            else:
                canvas.beside(axes, y, _found(*found))
    alone = frame["ties_alone"].max()
    if not np.isnan(alone):
        panels[1].axvline(alone, color=canvas.INK, lw=0.8, ls=(0, (4, 2)))
    if not stacked:
        panels[1].tick_params(labelleft=False)
    return figure


def _paint_rules(frame: pd.DataFrame, width: float) -> "Figure":
    if frame.empty:
        return canvas.empty(width, "No human score can be compared with a metric.")
    figure, axes = _dodged(frame.assign(low=np.nan, high=np.nan), width, _RULE_COLUMNS)
    axes.axvline(0, color=canvas.INK, lw=0.8)
    axes.set_xlim(-1.03, 1.03)
    canvas.label(axes, x="Spearman's ρ with people")
    return figure


def _dodged(
    frame: pd.DataFrame, width: float, columns: tuple[str, str, str, str]
) -> tuple["Figure", "Axes"]:
    """A row a metric, in it a line a series;

    Args:
        columns: Of series, value, low, high.
    """
    by, value, low, high = columns
    titles = frame.drop_duplicates("metric")["title"].tolist()
    metrics, series = list(frame["metric"].unique()), list(frame[by].unique())
    said = {metric: _undefined_lines(rows, by, width) for metric, rows in frame.groupby("metric")}
    height = _row_height([len(series), *(len(lines) for lines in said.values())])
    figure = canvas.blank(width, len(titles) * height + _MARGIN + 5)
    axes = figure.add_subplot()
    canvas.quiet(axes)
    canvas.rows_axis(axes, titles, width=24)
    for at, name in enumerate(series):
        style = _style(at)
        shift = (at - (len(series) - 1) / 2) * 0.8 / len(series)
        for row in frame[frame[by] == name].to_dict("records"):
            y = metrics.index(row["metric"]) + shift
            found = row[value], row[low], row[high]
            canvas.estimate(axes, y, found, style)
            if reason(row["undefined"]) is None:
                canvas.beside(axes, y, _found(*found))
        axes.plot([], [], style.marker, color=style.colour, ms=style.size, mew=0, label=name)
    for y, metric in enumerate(metrics):
        _reason(axes, y, said[metric])
    canvas.legend(figure, axes, width)
    return figure, axes


def _undefined_lines(rows: pd.DataFrame, by: str, width: float) -> list[str]:
    """Return why some or all lines of a metric's row are not drawn, wrapped to fit into the row."""
    whys = rows["undefined"].map(reason)
    absent = rows.assign(why=whys)[whys.notna()]
    lines = []
    for why, part in absent.groupby("why", sort=False):
        which = "" if len(part) == len(rows) else f"{', '.join(part[by])} "
        lines += wrap(f"{which}undefined: {why}", int((width - _BESIDE) / canvas.LETTER))
    return lines


def _why_lines(why: str) -> list[str]:
    return wrap(f"undefined: {why}", _WORDS)


def _row_height(lines: list[int]) -> float:
    """mm for every row, when the fullest has that many lines of small text."""
    return max(_ROW, 3.1 * max(lines, default=1) + 1.5)


def _reason(axes: "Axes", y: float, lines: list[str]) -> None:
    across = {"transform": axes.get_yaxis_transform(), "ha": "left", "style": "italic"}
    canvas.note(axes, 0.01, y, "\n".join(lines), **across)


def _found(value: float, low: float, high: float) -> str:
    return number(value, 2) if np.isnan(low) else f"{number(value, 2)} {interval(low, high)}"


def _style(at: int) -> Bars:
    return Bars(
        colour=canvas.SERIES[at % len(canvas.SERIES)],
        marker=canvas.MARKERS[at % len(canvas.MARKERS)],
        size=4.5,
        width=1.6,
    )
