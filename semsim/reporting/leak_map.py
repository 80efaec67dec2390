"""Figures of reproductions: everything against everything, and what SemSim's agreement depends on.

The first is a heat map of people's scores, with small ones of metrics, and ρ; the other is after
Figures 7 and 9 of the SemSim paper.
"""

import functools
import math
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from semsim.base.metric_spec import MetricSpec
from semsim.reporting import canvas
from semsim.reporting.canvas import Drawn
from semsim.reporting.notation import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PEOPLE, TARGET, RHO = "people", "target", "ρ"  # panels of the frame, beside those of metrics
_ROW = 5.0  # mm
_SMALL = 45.0  # mm high is a line of the panels of metrics
_ABREAST = 5  # of which have room for their titles beside each other
_MIDDLE = "#f3efe6"
_SHARE = 1.05  # of the axis: |ρ| and |τ| are at most 1
_DARK = 0.28  # as far from the ends of the colours white text reads better


def leak_map(
    cells: pd.DataFrame, agreement: pd.DataFrame, specs: Sequence[MetricSpec], n: int
) -> Drawn:
    """The map of a table of cells.

    Args:
        cells: Network, strategy, attack, status, target_accuracy, target_at_chance, people in [0,
            1] and a column a metric; a control has no network.
        agreement: Title, rho, low, high.
        n: Pictures a cell.
    """
    return Drawn(
        title="Every attack against every defence",
        caption=(
            f"Above: share of votes that recognise the pictures, per cent, {n} originals a cell; "
            "warm: leaked. Row “target”: its right answers, per cent; °: it guesses. ×: no picture "
            "came back; –: the two do not go together. Below: the same cells by each metric, from "
            "the least to the most leakage among them. Brackets: Spearman's ρ with people over "
            "cells, and the range of 95% of resamples of attacks and targets."
        ),
        frame=pd.concat([_grid(cells, specs), _rho(agreement)], ignore_index=True),
        paint=functools.partial(_paint, {spec.title: spec for spec in specs}),
        name="map",
    )


def threat_map(cells: pd.DataFrame, title: str) -> Drawn:
    """The map of attackers: rows of attackers on networks, columns of what they meet.

    Args:
        cells: Network, state, strategy, batch, attack, attacker, status, clearer and exact in [0,
            1]; a control has no network, and a row without any number is left out.
        title: The sentence above.
    """
    own = cells[(cells["network"] != "") & cells["clearer"].notna()]
    own = own.sort_values(["strategy", "state", "batch"], key=_in_order, kind="stable")
    frame = pd.DataFrame(
        {
            "row": own["attacker"] + ": " + own["attack"] + " on " + own["network"],
            "column": own["strategy"]
            + ", "
            + own["state"]
            + ", "
            + own["batch"].map("{:.0f}".format),
            "value": own["clearer"],
            "text": [
                f"{100 * share:.0f}{'=' if exact > 0.5 else ''}"
                for share, exact in zip(own["clearer"], own["exact"], strict=True)
            ],
        }
    )
    return Drawn(
        title=title,
        caption=(
            "Per cent of the attacked pictures above the no-attack baseline; =: most of "
            "them exactly. Rows: attackers by letter. Columns: defence, state of the training, "
            "batch. Faint: the attack does not apply."
        ),
        frame=frame,
        paint=functools.partial(_paint_threats, title),
        name="threats",
    )


def _in_order(column: pd.Series) -> pd.Series:
    """Numbers as they are, words in the order of their first row."""
    return column if column.dtype.kind in "if" else pd.Series(pd.factorize(column)[0], column.index)


def _paint_threats(title: str, frame: pd.DataFrame, width: float) -> "Figure":
    rows, columns = sorted({*frame["row"]}), list(dict.fromkeys(frame["column"]))
    said = wrap(title, int(width / 1.6))
    figure = canvas.blank(width, _ROW * (len(rows) + len(said)) + 36)
    axes = figure.add_subplot()
    _heat(axes, _matrix(frame, rows, columns), (0.0, 1.0))
    canvas.rows_axis(axes, rows, width=34)
    axes.set_xticks(range(len(columns)), columns, rotation=40, ha="right", rotation_mode="anchor")
    canvas.label(axes)
    figure.suptitle(
        "\n".join(said), fontsize=canvas.TEXT + 0.5, color=canvas.INK, x=0.01, ha="left"
    )
    _write(axes, frame, rows, columns)
    return figure


def _grid(cells: pd.DataFrame, specs: Sequence[MetricSpec]) -> pd.DataFrame:
    """A row a cell and panel: panel, row, column, value and text."""
    names = {PEOPLE: "people", **{spec.title: spec.name for spec in specs}}
    strategies = [one for one in dict.fromkeys(cells["strategy"]) if one]
    found: list[dict[str, Any]] = []
    for network in dict.fromkeys(cells["network"].astype(str)):
        own = cells[cells["network"] == network]
        found += _targets(network, own) if network else []
        for _, row in own.iterrows():
            columns = [row["strategy"]] if network else strategies
            title = f"{network} · {row['attack']}" if network else row["attack"]
            for panel, name in names.items():
                found += [
                    {"panel": panel, "row": title, "column": column, "value": row[name]}
                    | {"text": _text(row, place) if panel == PEOPLE else ""}
                    for place, column in enumerate(columns)
                ]
    return pd.DataFrame(found)


def _targets(network: str, own: pd.DataFrame) -> list[dict[str, Any]]:
    """The row of a network's targets: no colour, since a good target is no leak."""
    rows: list[dict[str, Any]] = []
    for strategy, part in own.groupby("strategy", sort=False):
        told = part.dropna(subset=["target_accuracy"])
        text = _right(told.iloc[0]) if len(told) else "–"
        place = {"panel": TARGET, "row": f"{network}: target", "column": strategy}
        rows.append({**place, "value": np.nan, "text": text})
    return rows


def _right(row: pd.Series) -> str:
    """A target's right answers in per cent, marked where it guesses."""
    return f"{100 * row['target_accuracy']:.0f}{'°' if row['target_at_chance'] else ''}"


def _text(row: pd.Series, place: int) -> str:
    if row["status"] in ("failed", "cannot be"):
        return "×" if row["status"] == "failed" else "–"
    return f"{100 * row['people']:.0f}" if place == 0 else ""


def _rho(agreement: pd.DataFrame) -> pd.DataFrame:
    told = agreement.rename(columns={"title": "row", "rho": "value"})
    return told[["row", "value", "low", "high"]].assign(panel=RHO)


def _paint(specs: dict[str, MetricSpec], frame: pd.DataFrame, width: float) -> "Figure":
    rows = list(dict.fromkeys(frame.loc[frame["panel"].isin([PEOPLE, TARGET]), "row"]))
    columns = list(dict.fromkeys(frame.loc[frame["panel"] == PEOPLE, "column"]))
    tall, forest = _ROW * len(rows) + 26, 5.0 * len(specs) + 16
    lines = math.ceil(len(specs) / _ABREAST)
    abreast, small = math.ceil(len(specs) / lines), _SMALL * lines
    figure = canvas.blank(width, tall + small + forest)
    # Each has margins of its own: long names beside one would else narrow all.
    layout = figure.add_gridspec(3, 1, height_ratios=[tall, small, forest])
    parts = [figure.add_subfigure(layout[place, 0]) for place in range(3)]
    axes = parts[0].add_subplot()
    panel = frame[frame["panel"].isin([PEOPLE, TARGET])]
    _heat(axes, _matrix(panel, rows, columns), (0.0, 1.0))
    canvas.rows_axis(axes, rows, width=34)
    axes.set_xticks(range(len(columns)), columns, rotation=40, ha="right", rotation_mode="anchor")
    canvas.label(axes, title="Recognised by simulated annotators, % of votes")
    _write(axes, panel, rows, columns)
    for place, (title, spec) in enumerate(specs.items()):
        axes = parts[1].add_subplot(lines, abreast, place + 1)
        _small(axes, _matrix(frame[frame["panel"] == title], rows, columns), spec)
    _forest(parts[2].add_subplot(), frame[frame["panel"] == RHO].reset_index(drop=True))
    return figure


def _matrix(panel: pd.DataFrame, rows: list[str], columns: list[str]) -> np.ndarray:
    """(rows, columns) float64, NaN where there is no number."""
    table = panel.set_index(["row", "column"])["value"].unstack()
    return table.reindex(index=rows, columns=columns).to_numpy(dtype=float)


def _heat(axes: "Axes", values: np.ndarray, ends: tuple[float, float]) -> None:
    """Cool where nothing leaked, warm where most did, faint where there is no number."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = [canvas.PRIVATE, _MIDDLE, canvas.LEAKED]
    shades = LinearSegmentedColormap.from_list("leak", colours)
    canvas.quiet(axes)
    axes.grid(False)
    axes.patch.set(facecolor=canvas.INK, alpha=0.06)
    low, high = ends
    axes.imshow(values, cmap=shades, vmin=low, vmax=high, aspect="auto", interpolation="nearest")
    for side in axes.spines.values():
        side.set_visible(False)


def _write(axes: "Axes", panel: pd.DataFrame, rows: list[str], columns: list[str]) -> None:
    for row in panel.to_dict("records"):
        dark = abs(row["value"] - 0.5) > 0.5 - _DARK  # False for NaN
        colour = "#ffffff" if dark else "#111111" if row["value"] == row["value"] else canvas.INK
        x, y = columns.index(row["column"]), rows.index(row["row"])
        canvas.note(axes, x, y, row["text"], ha="center", color=colour)


def _small(axes: "Axes", values: np.ndarray, spec: MetricSpec) -> None:
    """One metric: its own scale, from what leaks least among finite values to what leaks most."""
    finite = values[np.isfinite(values)]
    ends = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    ends = ends if spec.higher_means_more_leakage else (ends[1], ends[0])
    sign = 1.0 if spec.higher_means_more_leakage else -1.0
    held = np.clip(values, min(ends), max(ends))
    _heat(axes, sign * held, (sign * ends[0], sign * ends[1]))
    axes.set_xticks([])
    axes.set_yticks([])
    unit = f" {spec.unit}" if spec.unit else ""
    scale = f"{number(ends[0], 2)} to {number(ends[1], 2)}{unit}"
    canvas.label(axes, title="\n".join(wrap(spec.title, 16)), x=scale)


def _forest(axes: "Axes", found: pd.DataFrame) -> None:
    canvas.quiet(axes)
    axes.axvline(0, color=canvas.INK, lw=0.6)
    for place, row in enumerate(found.to_dict("records")):
        ends = (row["value"], row["low"], row["high"])
        canvas.estimate(axes, place, ends, canvas.Bars(colour=canvas.METRIC))
    canvas.rows_axis(axes, [str(title) for title in found["row"]], width=34)
    axes.set_xlim(-1, 1)
    canvas.label(
        axes, title="Spearman's ρ with simulated annotators, 95% of resampled attacks, targets"
    )


def study_figure(frame: pd.DataFrame, title: str, axis: str, number: str) -> Drawn:
    """Agreement against what is varied.

    Args:
        frame: `value` as text, in order, and a column a series, each from 0 to 1 or NaN; the first
            two are SemSim's and drawn whole, the others dashed.
        number: Of the paper's figure.
    """
    return Drawn(
        title=f"{title}: agreement with people",
        caption=(
            f"|ρ| and |τ| over models of the test sets, for each {axis}; dashed: other metrics "
            f"on the same images. After Figure {number} of Sun et al. 2023."
        ),
        frame=frame,
        paint=functools.partial(_paint_study, axis),
        name=f"figure{number}",
    )


def _paint_study(axis: str, frame: pd.DataFrame, width: float) -> "Figure":
    series = [name for name in frame.columns if name != "value"]
    if frame.empty or frame[series].isna().all().all():
        return canvas.empty(width, "No agreement is defined: people and metrics rank no models.")
    figure = canvas.blank(width, 70)
    axes = figure.add_subplot()
    canvas.quiet(axes, grid="y")
    places = range(len(frame))
    for place, name in enumerate(series):
        look: dict[str, Any] = {"color": canvas.SERIES[place % len(canvas.SERIES)], "lw": 1.4}
        line = "-" if place < 2 else "--"
        marker = canvas.MARKERS[place % len(canvas.MARKERS)]
        axes.plot(places, frame[name], line, marker=marker, ms=4, label=name, **look)
    axes.set_xticks(places, list(frame["value"]))
    axes.set_ylim(0, _SHARE)
    canvas.label(axes, x=axis.capitalize(), y="|ρ|, |τ|")
    canvas.legend(figure, axes, width)
    return figure
