"""Values that a network hides from layer-wise inversion, and those that equations determine."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from semsim.reporting import canvas
from semsim.reporting.canvas import Drawn
from semsim.systems.audit.advice import described, signed, stated
from semsim.systems.audit.security_index import SecurityIndex

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

_ROW = 13.0  # mm a layer
_LEAKS, _HIDDEN = canvas.METRIC, canvas.PEOPLE


def leak_figure(index: SecurityIndex, name: str) -> Drawn:
    """A bar a convolution: the values of its input that are determined, and those that are hidden.

    Args:
        name: Of the network, for the title.
    """
    frame = pd.DataFrame(
        {
            "place": [layer.place for layer in index.layers],
            "layer": [described(layer) for layer in index.layers],
            "known": [layer.rank for layer in index.layers],
            "hidden": [layer.hidden for layer in index.layers],
            "contribution": [layer.contribution for layer in index.layers],
        }
    )
    return Drawn(
        title=f"Values that {name} hides from the attacker: {stated(index)}",
        caption=(
            "For each convolution the values of its input that weights and gradient determine "
            "(rank U), and those hidden from the attacker (n − rank U). On the right its part of "
            "c(M), which counts early layers more."
        ),
        frame=frame,
        paint=_paint,
        name="security",
    )


def _paint(frame: pd.DataFrame, width: float) -> "Drawing":
    if frame.empty:
        return canvas.empty(width, "There is no convolution: every value is determined.")
    figure = canvas.blank(width, _ROW * len(frame) + 24)
    axes = figure.add_subplot()
    canvas.quiet(axes, grid="x")
    rows = np.arange(len(frame))
    axes.barh(rows, frame["known"], height=0.5, color=_LEAKS, label="determined (rank U)")
    axes.barh(
        rows,
        frame["hidden"],
        left=frame["known"],
        height=0.5,
        color="none",
        edgecolor=_HIDDEN,
        hatch="////",
        linewidth=[0.8 if hidden else 0.0 for hidden in frame["hidden"]],
        label="hidden (n − rank U)",
    )
    canvas.rows_axis(axes, [f"{row.place}: {row.layer}" for row in frame.itertuples()], width=20)
    _parts_of_index(axes, frame)
    canvas.label(axes, x="Values of the layer's input")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.locator_params(axis="x", nbins=4 if width < canvas.NARROW else 7)
    canvas.legend(figure, axes, width)
    return figure


def _parts_of_index(axes: "Axes", frame: pd.DataFrame) -> None:
    canvas.beside(axes, -0.5, "part of c(M)")
    for place, value in enumerate(frame["contribution"]):
        canvas.beside(axes, place, signed(value))
