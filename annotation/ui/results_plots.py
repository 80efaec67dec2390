"""The figures of the Results page. Text and grid take their colours from the style sheet."""

from html import escape
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from annotation.design.list_facts import ListFacts
from annotation.tasks.kind import Scale
from annotation.ui.study_view import BAR_COLOUR

_GREY = "#808080"
# From nothing to the colour of the bars, so that it suits a light and a dark page.
_SCALE = [[0.0, "rgba(35,148,154,0.04)"], [1.0, "rgba(35,148,154,1)"]]
_MANY = 25  # rows from which they are drawn as lines


def rate_figure(
    rates: pd.DataFrame, scale: Scale | None = None, lists: ListFacts | None = None
) -> go.Figure:
    """One point a model with its interval, the one that leaks most on top; on `scale` its mean.

    A line stands where somebody is who sees only the `lists`, never a picture.
    """
    name = "mean_rating" if scale else "rate"
    shown = rates[rates[name].notna()].iloc[::-1]
    form = ".2f" if scale else ".0%"
    figure = go.Figure(
        go.Scatter(
            x=shown[name].tolist(),
            y=shown["model"].tolist(),
            mode="markers",
            marker={"size": 10, "color": BAR_COLOUR},
            error_x={
                "array": (shown[f"{name}_high"] - shown[name]).fillna(0).tolist(),
                "arrayminus": (shown[name] - shown[f"{name}_low"]).fillna(0).tolist(),
                "color": BAR_COLOUR,
                "thickness": 2,
            },
            text=[escape(model) for model in shown["model"]],
            hovertemplate=f"%{{text}}: %{{x:{form}}}<extra></extra>",
        )
    )
    for model in shown["model"]:  # above its row, as beside it a phone has no room
        figure.add_annotation(
            x=0, xref="paper", xanchor="left", y=model, yshift=14, text=escape(model),
            showarrow=False,
        )  # fmt: skip
    title = "Mean rating" if scale else "Share recognised by the majority"
    if lists:
        figure.add_vline(x=lists.most.rate, line={"dash": "dot", "color": _GREY, "width": 2})
        title += f"<br><sub>dotted: {lists.most.rate:.1%}, who sees only the lists</sub>"
    _lay_out(figure, title, 90 + 44 * max(len(shown), 2))
    if lists:
        figure.update_layout(margin_t=70)  # room for a second line
    ends = [0.9, scale.levels + 0.1] if scale else [-0.02, 1.02]
    ticks = {"dtick": 1} if scale else {"tickformat": ".0%"}
    figure.update_xaxes(range=ends, zeroline=False, **ticks)
    figure.update_yaxes(type="category", showticklabels=False, range=[-0.5, len(shown) - 0.3])
    return figure


def view_figure(views: pd.DataFrame) -> go.Figure:
    """P(recognised) at each view of an original by one annotator, with its interval."""
    figure = go.Figure(
        go.Scatter(
            x=views["view"].tolist(),
            y=views["share"].tolist(),
            mode="markers",
            marker={"size": 10, "color": BAR_COLOUR},
            error_y={
                "array": (views["high"] - views["share"]).fillna(0).tolist(),
                "arrayminus": (views["share"] - views["low"]).fillna(0).tolist(),
                "color": BAR_COLOUR,
                "thickness": 2,
            },
            hovertemplate="view %{x}: %{y:.0%}<extra></extra>",
        )
    )
    _lay_out(figure, "Recognised, by how often the original was seen", 320)
    figure.update_xaxes(title="view of one original by one annotator", tickformat="d")
    figure.update_yaxes(range=[-0.02, 1.02], tickformat=".0%", zeroline=False)
    return figure


def confusion_figure(confusion: pd.DataFrame, truth: str) -> go.Figure:
    """Share of the votes on each truth (rows) that gave each answer (columns), none left blank."""
    counts = confusion.to_numpy(dtype=float)
    shares = counts / counts.sum(axis=1, keepdims=True)
    shares[counts == 0] = np.nan  # many zeros would hide the few numbers
    figure = _heat_map(shares, list(confusion.index), list(confusion.columns), ".0%")
    _lay_out(figure, f"Answers by {truth}", 170 + _row_height(len(shares)) * len(shares))
    figure.update_xaxes(title="answered")
    return figure


def kappa_figure(pairs: pd.DataFrame) -> go.Figure:
    """Cohen's κ of every two annotators, recognised or not; blank where it is not defined."""
    names = sorted({*pairs["first"], *pairs["second"]})
    table = pairs.pivot(index="first", columns="second", values="value")
    half = table.reindex(index=names, columns=names).to_numpy(dtype=float)
    whole = np.where(np.isnan(half), half.T, half)
    figure = _heat_map(whole, names, names, ".2f")
    _lay_out(figure, "Cohen's κ, recognised or not", 170 + _row_height(len(names)) * len(names))
    return figure


def _heat_map(values: np.ndarray, rows: list[str], columns: list[str], form: str) -> go.Figure:
    return go.Figure(
        go.Heatmap(
            z=[[None if np.isnan(cell) else float(cell) for cell in row] for row in values],
            x=[escape(name) for name in columns],
            y=[escape(name) for name in rows],
            zmin=0,
            zmax=1,
            colorscale=_SCALE,
            showscale=False,
            # Without a size of its own, text shrinks until it fits its cell.
            text=[["" if np.isnan(cell) else format(cell, form) for cell in row] for row in values],
            texttemplate="%{text}",
            xgap=1,
            ygap=1,
            hovertemplate=f"%{{y}} → %{{x}}: %{{z:{form}}}<extra></extra>",
        )
    )


def _row_height(rows: int) -> int:
    return 26 if rows <= _MANY else 9


def _lay_out(figure: go.Figure, title: str, height: int) -> None:
    axis: dict[str, Any] = {"type": "category", "automargin": True, "showgrid": False}
    if isinstance(figure.data[0], go.Heatmap):
        figure.update_xaxes(**axis)
        figure.update_yaxes(**axis, autorange="reversed")
    figure.update_layout(
        title={"text": title, "font": {"size": 15}},
        margin={"l": 20, "r": 15, "t": 50, "b": 40},
        height=height,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": _GREY, "activecolor": BAR_COLOUR},
        font={"family": "system-ui, sans-serif"},
    )
