"""The scatter of Compare: what a metric says of a model against what people recognise."""

import pandas as pd
import plotly.graph_objects as go

from semsim.metrics import MetricSpec
from semsim.ui.compare_data import Comparison, model_key, model_name
from semsim.ui.compare_view import heading, number

_COLOUR = "#2563eb"  # readable on white and on near-black
_GREY = "#808080"
_HEIGHT = 420  # pixels


def scatter(comparison: Comparison, spec: MetricSpec | None) -> go.Figure:
    """One point a model that has both values; a point carries its `model_key`.

    Text and grid take their colours from the page's style sheet, so that they suit light and
    dark; an empty figure says why it is empty.
    """
    points = comparison.models.iloc[:0]
    if spec is not None and spec.name in comparison.models:
        points = comparison.models.dropna(subset=["recognised_rate", spec.name])
    figure = go.Figure()
    if spec is not None and len(points):
        figure.add_trace(_trace(comparison, points, spec))
    else:
        figure.update_layout(xaxis_visible=False, yaxis_visible=False)
        figure.add_annotation(
            text="No model has both a verdict of people and a score yet.",
            showarrow=False,
            font={"color": _GREY, "size": 15},
        )
    figure.update_layout(
        height=_HEIGHT,
        margin={"l": 60, "r": 20, "t": 20, "b": 60},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": _GREY, "activecolor": _COLOUR},
        showlegend=False,
        xaxis={"title": heading(spec) if spec is not None else "", "zeroline": False},
        yaxis={
            "title": "People recognise (share of reconstructions)",
            "range": [-0.05, 1.05],
            "zeroline": False,
        },
    )
    return figure


def _trace(comparison: Comparison, points: pd.DataFrame, spec: MetricSpec) -> go.Scatter:
    names = [model_name(row, comparison.models) for _, row in points.iterrows()]
    texts = [
        f"{name}<br>{spec.title}: {number(row[spec.name])}<br>"
        f"people recognise {row['n_recognisable']} of {row['n_decided']}"
        for name, (_, row) in zip(names, points.iterrows(), strict=True)
    ]
    return go.Scatter(
        x=points[spec.name],
        y=points["recognised_rate"],
        mode="markers",
        marker={"size": 14, "color": _COLOUR, "line": {"width": 1.5, "color": "#ffffff"}},
        customdata=[model_key(row) for _, row in points.iterrows()],
        text=texts,
        hovertemplate="%{text}<extra></extra>",
        hoverlabel={"bgcolor": "#1f2937", "font": {"color": "#ffffff"}},
    )
