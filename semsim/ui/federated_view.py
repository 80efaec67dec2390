"""What the page Federated draws: plain values in, HTML and Plotly figures out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from semsim.federated.arms import ARMS
from semsim.federated.summary import (
    COST_COLUMNS,
    COST_TITLES,
    cost_ratios,
    decibels,
    training_words,
)
from semsim.sets.reader import read_set
from semsim.ui.markup import pieces, png_address
from semsim.ui.plots import empty_plot

_HTML = pieces("federated.html")
STYLE = """<style>
.fed-scroll {overflow-x: auto; max-width: 100%}
.fed-table {border-collapse: collapse; margin: .25rem 0}
.fed-table :is(th, td) {padding: .3rem .5rem; border: 0; text-align: left; vertical-align: middle;
  border-bottom: 1px solid var(--border-color-primary); font-weight: 400}
.fed-table thead th {font-weight: 600; vertical-align: bottom}
.fed-table th.fed-first {position: sticky; left: 0; background: var(--body-background-fill);
  min-width: 8rem; max-width: 14rem}
.fed-picture {width: 64px; min-width: 64px; max-width: none; height: 64px; display: block;
  image-rendering: pixelated; border-radius: 3px}
.fed-title {font-weight: 600; margin: .75rem 0 .25rem}
.fed-list {padding-left: 1.2rem; list-style: disc}
.fed-list li {margin: .2rem 0}
.fed-empty {width: 64px; height: 64px; border: 1px dashed #6b7280; border-radius: 3px;
  font-size: .75rem; text-align: center}
</style>"""
# Schemes that agree lie on each other, so that the upper one is dashed and thinner.
_LINES: Mapping[str, dict[str, Any]] = {
    "FedAvg": {"color": "#2563eb", "width": 5},
    "PBPFL": {"color": "#ea580c", "width": 2, "dash": "dash"},
    "FedAvg, cross-entropy": {"color": "#15803d", "width": 2, "dash": "dot"},
}


def curve_figure(training: Mapping[str, Any], job_id: str) -> go.Figure:
    """Accuracy against rounds, or squared error where there are no classes."""
    curves = training["curves"]
    classes = all(point["accuracy"] is not None for curve in curves.values() for point in curve)
    key, title = ("accuracy", "Accuracy on test images") if classes else ("squared_error", "MSE")
    figure = empty_plot(title, "round", "", job_id)
    for name, curve in curves.items():
        figure.add_scatter(
            x=[point["round"] for point in curve],
            y=[point[key] for point in curve],
            mode="lines",
            name=name,
            line=_LINES[name],
        )
    return figure


def training_html(training: Mapping[str, Any]) -> str:
    """What masking changes in words, and what it costs as a table."""
    rows = [
        (title, *(f"{training['costs'][name][key]:.2f} s" for name in ("FedAvg", "PBPFL")), ratio)
        for title, key, ratio in zip(
            COST_TITLES, COST_COLUMNS, cost_ratios(training["costs"]), strict=True
        )
    ]
    traffic = training["traffic"]
    for title, key in (("megabytes down", "bytes_down"), ("megabytes up", "bytes_up")):
        plain, masked = traffic["FedAvg"][key], traffic["PBPFL"][key]
        rows.append((title, f"{plain / 1e6:.2f}", f"{masked / 1e6:.2f}", f"{masked / plain:.2f}"))
    head = ("Cost", "FedAvg", "PBPFL", "Ratio")
    return _HTML.training(training_words(training).splitlines(), head, rows)


def summary_html(leak: Mapping[str, Any]) -> str:
    """The verdict a party, in words."""
    return _HTML.summary(leak.get("summary", []))


def grid_html(out: Path, arms: Sequence[str], leak: Mapping[str, Any]) -> str:
    """One row an arm with its pictures, the originals first; figures once all arms are done."""
    if not arms:
        return ""
    scores = {score["arm"]: score for score in leak.get("scores", [])}
    first = ("Originals", _pictures(out / "sets" / arms[0], "original"), _figures(None))
    others = (
        (
            ARMS[arm].title,
            _pictures(out / "sets" / arm, "reconstruction"),
            _figures(scores.get(arm)),
        )
        for arm in arms
    )
    return _HTML.grid([first, *others], out / "sets")


def _figures(score: Mapping[str, Any] | None) -> tuple[str, ...]:
    if score is None:
        return ()
    gap = "\N{NO-BREAK SPACE}"
    return f"SSIM{gap}{score['ssim']:.2f}", f"{decibels(score['psnr'])}{gap}dB", score["verdict"]


def _pictures(folder: Path, column: str) -> list[tuple[str, str]]:
    """What each picture of a set is called, and its address, empty where there is none."""
    return [
        (Path(path).stem, png_address((folder / path).read_bytes()))
        if isinstance(path, str)  # missing ones are None or NaN
        else ("", "")
        for path in read_set(folder).manifest[column]
    ]
