"""Figures 1 and 2 of the COPA paper: what each method gives back from each network."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
from torch import Tensor

from semsim.images import to_uint8
from semsim.reporting import canvas
from semsim.reporting.drawn import Drawn
from semsim.reporting.figures import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

TITLES = {
    "original": "Original",
    "rgap": "R-GAP",
    "copa": "COPA",
    "copa denoised": "COPA, denoised",
    "copa-prior": "COPA-prior",
}


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A picture of the figure: (3, H, W) in [0, 1], or None where the method failed.

    mse: before clamping to [0, 1].
    """

    variant: int
    method: str
    image: Tensor | None
    mse: float


def pictures(shown: Sequence[Shown], number: int, activation: str) -> Figure:
    """One row an image and variant, one column a method, in the order they come in."""
    frame = pd.DataFrame(
        {
            "variant": [one.variant for one in shown],
            "method": [one.method for one in shown],
            "mse": [one.mse for one in shown],
            "picture": [None if one.image is None else to_uint8(one.image) for one in shown],
        }
    )
    drawn = Drawn(
        title=f"What layer-wise inversion gets back ({activation})",
        caption=(
            "Each row is one image on one variant of CNN3; below each picture its mean squared "
            f"error before clamping to [0, 1]. After Figure {number} of the COPA paper."
        ),
        frame=frame,
        paint=_paint,
    )
    return Figure(name=f"copa-{number}", metric=None, drawn=drawn)


def _paint(frame: pd.DataFrame, width: float) -> "Drawing":
    methods = list(dict.fromkeys(frame["method"]))
    rows = len(frame) // len(methods)
    side = width / (len(methods) + 0.3)
    figure = canvas.blank(width, rows * (side + 3) + 6)
    axes = figure.subplots(rows, len(methods), squeeze=False)
    for place, row in enumerate(frame.to_dict("records")):
        one = axes[place // len(methods)][place % len(methods)]
        first = place % len(methods) == 0
        title = TITLES.get(row["method"], row["method"]) if place < len(methods) else ""
        canvas.label(one, y=f"Variant {row['variant']}" if first else "", title=title)
        _picture(one, row)
    return figure


def _picture(axes: "Axes", row: dict) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_visible(False)
    if row["picture"] is None:
        axes.set_aspect("equal")
        canvas.note(axes, 0.5, 0.5, "failed", ha="center")
        return
    axes.imshow(row["picture"], interpolation="nearest")
    if row["method"] != "original":
        axes.set_xlabel(f"{row['mse']:.2g}", fontsize=canvas.SMALL, color=canvas.INK, labelpad=1)
