"""The image plot of Compare: what a metric says of each reconstruction against what people said."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from semsim.metrics import MetricSpec
from semsim.reporting.model_figures import heading
from semsim.reporting.notation import number
from semsim.ui.compare_data import Comparison

_COLOUR = "#3b82f6"  # readable on white and on near-black
_GREY = "#808080"
_HEIGHT = 460  # pixels
_JITTER = 0.035  # of the share of votes, so that equal answers do not hide each other
_MANY = 3000  # points from which the browser draws them on its graphics card


def image_plot(comparison: Comparison, spec: MetricSpec | None) -> go.Figure:
    """One point a reconstruction that has votes and a finite score; a point carries its row.

    Points are moved a little along the share of votes; the texts say the exact share. Text and
    grid take their colours from the page's style sheet. An empty figure says why it is empty.
    """
    figure, evidence = go.Figure(), comparison.analysis.evidence
    points = comparison.images.iloc[:0]
    if spec is not None:
        scored = comparison.images.assign(value=evidence.scores[spec.name])
        points = scored[scored["share"].notna() & np.isfinite(scored["value"])]
    if spec is not None and len(points):
        figure.add_trace(_trace(points, spec))
    else:
        figure.update_layout(xaxis_visible=False, yaxis_visible=False)
        figure.add_annotation(
            text="No reconstruction has both votes and a score yet.",
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
        yaxis={"title": evidence.response_words, "zeroline": False},
    )
    return figure


def _trace(points: pd.DataFrame, spec: MetricSpec) -> go.Scatter | go.Scattergl:
    kind = go.Scattergl if len(points) > _MANY else go.Scatter
    moved = np.random.default_rng(0).uniform(-_JITTER, _JITTER, len(points))
    texts = [
        f"{row['model']}<br>{row['class_name']} ({row['image_id']})<br>{spec.title}: "
        f"{number(row['value'])}<br>"
        + row.get("said", f"{row['n_recognised']} of {row['n_votes']} recognised it")
        for _, row in points.iterrows()
    ]
    return kind(
        x=points["value"].tolist(),
        y=(points["share"] + moved).tolist(),
        mode="markers",
        marker={"size": 7, "color": _COLOUR, "opacity": 0.6},
        customdata=points.index.tolist(),
        text=texts,
        hovertemplate="%{text}<extra></extra>",
        hoverlabel={"bgcolor": "#1f2937", "font": {"color": "#ffffff"}},
    )
