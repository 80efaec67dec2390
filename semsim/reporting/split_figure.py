"""Figures 2 and 3 of the Ensembler paper: what the server gets back, by where a network is cut."""

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

_WORDS = 9.0  # mm below a picture


@dataclass(frozen=True, kw_only=True)
class Cut:
    """One pair of cuts. h, t: units of the client at the start and at the end.

    images: (3, H, W) in [0, 1], a few reconstructions as one picture.
    ssim, psnr: means; NaN where there is none.
    """

    h: int
    t: int
    images: Tensor
    ssim: float
    psnr: float


def cut_figure(cuts: Sequence[Cut], originals: Tensor, title: str) -> Figure:
    """One row a first cut, one column a second cut, the originals in front.

    originals: (3, H, W), arranged as `Cut.images` are.
    """
    frame = pd.DataFrame(
        {
            "h": [0, *(cut.h for cut in cuts)],
            "t": [0, *(cut.t for cut in cuts)],
            "ssim": [1.0, *(cut.ssim for cut in cuts)],
            "psnr": [float("inf"), *(cut.psnr for cut in cuts)],
            "picture": [to_uint8(originals), *(to_uint8(cut.images) for cut in cuts)],
        }
    )
    drawn = Drawn(
        title=title,
        caption=(
            "Downwards the units that the client runs first (h), to the right those it runs last "
            "(t, counted from the end); below each picture mean SSIM and PSNR over all images. "
            "After Figures 2 and 3 of the Ensembler paper."
        ),
        frame=frame,
        paint=_paint,
    )
    return Figure(name="cuts", metric=None, drawn=drawn)


def _paint(frame: pd.DataFrame, width: float) -> "Drawing":
    first, cuts = frame.iloc[0], frame.iloc[1:]
    downs, rights = sorted(set(cuts["h"])), sorted(set(cuts["t"]))
    side = min(width / (len(rights) + 1.3), 40.0)
    figure = canvas.blank(width, len(downs) * (side + _WORDS) + 8)
    axes = figure.subplots(len(downs), len(rights) + 1, squeeze=False)
    for row in axes:
        for one in row:
            one.axis("off")
    _picture(axes[0][0], first["picture"], "originals")
    for cut in cuts.to_dict("records"):
        one = axes[downs.index(cut["h"])][rights.index(cut["t"]) + 1]
        words = f"h={cut['h']}, t={cut['t']}"
        _picture(one, cut["picture"], words)
        scores = f"SSIM {cut['ssim']:.3f}\n{cut['psnr']:.2f} dB"
        below = {"ha": "center", "va": "top", "transform": one.transAxes}
        canvas.note(one, 0.5, -0.03, scores, **below)
    return figure


def _picture(axes: "Axes", picture: object, title: str) -> None:
    axes.imshow(picture, interpolation="nearest")  # type: ignore[arg-type]
    canvas.label(axes, title=title)
