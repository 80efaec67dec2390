"""The figures of an analysis, by name: what is drawn is a table, and the table can be had.

Estimates with intervals have a row each. All but those of bands and models are painted here.
"""

import functools
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from semsim.base.errors import UnknownNameError
from semsim.base.metric_spec import MetricSpec
from semsim.base.registry import unknown
from semsim.base.stats.agreement import best_first
from semsim.base.stats.analysis import Analysis
from semsim.base.stats.ceiling import Ceiling
from semsim.base.stats.intervals import RULE
from semsim.base.stats.roc import scale_differs, scale_note
from semsim.base.stats.verdict import response_by, title_of
from semsim.base.words import counted
from semsim.reporting import canvas
from semsim.reporting.canvas import Bars, Drawn, marked_as_simulated
from semsim.reporting.model_figures import heading, scatter, stability
from semsim.reporting.notation import interval, number, reason
from semsim.reporting.ranked_figure import ranked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW = 6.5  # mm of height a row
_MARGIN = 17.0  # mm for axis and legend
_FOREST = [
    *("kind", "metric", "title", "n", "rho", "rho_bw_low", "rho_bw_high", "rho_note"),
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
        **{"rho": rho, "rho_bw_low": low, "rho_bw_high": high, "rho_note": ceiling.rho_note},
        **{"tau": tau, "tau_score_low": tau_low, "tau_score_high": tau_high},
        **{"interval_undefined": ceiling.interval_undefined, "undefined": ceiling.undefined},
    }


def _interval_words(rows: pd.DataFrame) -> str:
    said = [*rows["interval_undefined"], *rows["rho_note"]]
    whys = dict.fromkeys(why for why in map(reason, said) if why is not None)
    absent = "".join(f" {why[0].upper()}{why[1:]}." for why in whys)
    return (
        f"Lines: 95% interval over models, of ρ after Bonett and Wright, of τ by its score.{absent}"
    )


def _ceiling_words(ceiling: Ceiling) -> str:
    if ceiling.undefined is not None:
        return f"The human ceiling is undefined: {ceiling.undefined}."
    first, second = ceiling.sizes
    return (
        "Dashed line: the human ceiling, how well the ranking by "
        f"{first} annotators agrees with that by {second} others (mean of {ceiling.n_splits} "
        "splits). Band: 95% interval over models of one split."
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
            canvas.beside(axes, y, _measured(row[statistic], low, high))
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
                canvas.beside(axes, y, _measured(*found))
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
                canvas.beside(axes, y, _measured(*found))
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


def _measured(value: float, low: float, high: float) -> str:
    return number(value, 2) if np.isnan(low) else f"{number(value, 2)} {interval(low, high)}"


def _style(at: int) -> Bars:
    return Bars(
        colour=canvas.SERIES[at % len(canvas.SERIES)],
        marker=canvas.MARKERS[at % len(canvas.MARKERS)],
        size=4.5,
        width=1.6,
    )


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
            "median and middle half at each of these; whiskers: 5% to 95%. The number of images "
            "is above."
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
