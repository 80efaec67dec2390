"""What SemSim's agreement with people depends on: after Figures 7 and 9 of its paper."""

import functools
from typing import TYPE_CHECKING, Any

import pandas as pd

from semsim.reporting import canvas
from semsim.reporting.canvas import Drawn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHARE = 1.05  # of the axis: |ρ| and |τ| are at most 1


def study_figure(frame: pd.DataFrame, title: str, axis: str, number: str) -> Drawn:
    """Agreement against what is varied.

    frame: `value` as text, in order, and a column a series, each from 0 to 1 or NaN; the first two
    are SemSim's and drawn whole, the others dashed. number: of the paper's figure.
    """
    return Drawn(
        title=f"{title}: agreement with people",
        caption=(
            f"|ρ| and |τ| over models on what was held out, for each {axis}; dashed: other metrics "
            f"on the same images. After Figure {number} of Sun et al. 2023."
        ),
        frame=frame,
        paint=functools.partial(_paint, axis),
        name=f"figure{number}",
    )


def _paint(axis: str, frame: pd.DataFrame, width: float) -> "Figure":
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
