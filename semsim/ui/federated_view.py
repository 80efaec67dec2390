"""What the page Federated draws: plain values in, HTML and Plotly figures out."""

import base64
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from semsim.federated.leak import ARMS
from semsim.federated.summary import COST_COLUMNS, COST_TITLES, cost_ratios, training_words
from semsim.federated.verdict import decibels
from semsim.sets.reader import read_set

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
_GREY = "#7a7a7a"  # read on white and on black alike
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
    axis = {"gridcolor": "rgba(122,122,122,.25)", "zeroline": False, "rangemode": "tozero"}
    figure = go.Figure(
        layout={
            "title": {"text": title, "font": {"size": 14}},
            "xaxis": {**axis, "title": {"text": "round"}},
            "yaxis": axis,
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"color": _GREY},
            "legend": {"orientation": "h", "y": -0.25},
            "margin": {"l": 50, "r": 10, "t": 40, "b": 40},
            "height": 300,
            "uirevision": job_id,
        }
    )
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
    words = "".join(f"<li>{escape(line)}</li>" for line in training_words(training).splitlines())
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
    table = _table(("Cost", "FedAvg", "PBPFL", "Ratio"), rows)
    return f'<h3 class="fed-title">Training</h3><ul class="fed-list">{words}</ul>{table}'


def summary_html(leak: Mapping[str, Any]) -> str:
    """The verdict a party, in words."""
    lines = "".join(f"<li>{escape(line)}</li>" for line in leak.get("summary", []))
    if not lines:
        return ""
    return (
        f'<h3 class="fed-title">Who is kept from seeing what</h3><ul class="fed-list">{lines}</ul>'
    )


def grid_html(out: Path, arms: Sequence[str], leak: Mapping[str, Any]) -> str:
    """One row an arm with its pictures, the originals first; figures once all arms are done."""
    if not arms:
        return ""
    scores = {score["arm"]: score for score in leak.get("scores", [])}
    originals = read_set(out / "sets" / arms[0]).manifest
    first = [_picture(out / "sets" / arms[0], path) for path in originals["original"]]
    rows = [_row("Originals", first, "")]
    for arm in arms:
        found = read_set(out / "sets" / arm).manifest
        cells = [_picture(out / "sets" / arm, path) for path in found["reconstruction"]]
        rows.append(_row(ARMS[arm].title, cells, _figures(scores.get(arm))))
    table = f'<table class="fed-table"><tbody>{"".join(rows)}</tbody></table>'
    where = f"<p>Reconstruction sets: <code>{escape(str(out / 'sets'))}</code></p>"
    return f'<h3 class="fed-title">What comes back</h3><div class="fed-scroll">{table}</div>{where}'


def _row(title: str, cells: Sequence[str], figures: str) -> str:
    drawn = "".join(f"<td>{cell}</td>" for cell in cells)
    head = f'<th scope="row" class="fed-first">{escape(title)}</th>'
    return f"<tr>{head}{drawn}<td>{figures}</td></tr>"


def _figures(score: Mapping[str, Any] | None) -> str:
    if score is None:
        return ""
    return (
        f"SSIM&nbsp;{score['ssim']:.2f}<br>{decibels(score['psnr'])}&nbsp;dB<br>{score['verdict']}"
    )


def _picture(folder: Path, path: str | None) -> str:
    if not isinstance(path, str):  # missing ones are None or NaN
        return '<div class="fed-empty">failed</div>'
    data = base64.b64encode((folder / path).read_bytes()).decode()
    name = escape(Path(path).stem)
    return f'<img class="fed-picture" alt="{name}" src="data:image/png;base64,{data}">'


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    table = f'<table class="fed-table"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="fed-scroll">{table}</div>'
