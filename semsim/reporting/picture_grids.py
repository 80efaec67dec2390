"""Grids of pictures, after figures of the COPA and Ensembler papers: what attacks give back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from semsim.images import to_uint8
from semsim.reporting import canvas
from semsim.reporting.canvas import Drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

_TITLES = {
    "original": "Original",
    "rgap": "R-GAP",
    "copa": "COPA",
    "copa denoised": "COPA, denoised",
    "copa-prior": "COPA-prior",
}
_WORDS = 9.0  # mm below a picture of a pair of cuts


@dataclass(frozen=True, kw_only=True)
class GridPicture:
    """Reconstruction of an image by a method: (3, H, W) in [0, 1], or None where it failed.

    Attributes:
        mse: Before clamping to [0, 1].
    """

    variant: int
    method: str
    image: Tensor | None
    mse: float


@dataclass(frozen=True, kw_only=True)
class Cut:
    """One pair of cuts.

    Attributes:
        h, t: Units of the client at the start and at the end.
        images: (3, H, W) in [0, 1], a few reconstructions as one picture.
        ssim, psnr: Means; NaN where there is none.
    """

    h: int
    t: int
    images: Tensor
    ssim: float
    psnr: float


@dataclass(frozen=True, kw_only=True)
class Row:
    """Reconstructions by attacks on one system.

    Attributes:
        title: The system, and how it was attacked.
        images: By the name of an attack, (N, 3, H, W) in [0, 1]; an attack that was not made is
            left out.
        ssim, psnr: By the same names, means over all images; NaN where there is none.
    """

    title: str
    images: Mapping[str, Tensor]
    ssim: Mapping[str, float]
    psnr: Mapping[str, float]


def method_figure(shown: Sequence[GridPicture], number: int, activation: str) -> Drawn:
    """One row an image and variant, one column a method, in the order they come in."""
    frame = pd.DataFrame(
        {
            "variant": [one.variant for one in shown],
            "method": [one.method for one in shown],
            "mse": [one.mse for one in shown],
            "picture": [None if one.image is None else to_uint8(one.image) for one in shown],
        }
    )
    return Drawn(
        title=f"Images from layer-wise inversion ({activation})",
        caption=(
            "Each row is one image on one variant of CNN3; below each picture its mean squared "
            f"error before clamping to [0, 1]. After Figure {number} of the COPA paper."
        ),
        frame=frame,
        paint=_paint_methods,
        name=f"copa-{number}",
    )


def cut_figure(cuts: Sequence[Cut], originals: Tensor, title: str) -> Drawn:
    """One row a first cut, one column a second cut, the originals in front.

    Args:
        originals: (3, H, W) in [0, 1], arranged as `Cut.images` are.
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
    return Drawn(
        title=title,
        caption=(
            "Downwards the units that the client runs first (h), to the right those it runs last "
            "(t, counted from the end). Below each picture: mean SSIM and PSNR over all images. "
            "After Figures 2 and 3 of the Ensembler paper."
        ),
        frame=frame,
        paint=_paint_cuts,
        name="cuts",
    )


def defence_figure(rows: Sequence[Row], originals: Tensor, title: str, number: int) -> Drawn:
    """One row a system, a block of columns an attack, the originals above each block.

    Args:
        originals: (N, 3, H, W) in [0, 1], in the order of every row's images.
        number: Of the paper's figure.
    """
    attacks = list(dict.fromkeys(name for row in rows for name in row.images))
    none = dict.fromkeys(attacks, float("nan"))
    same = Row(title="Originals", images=dict.fromkeys(attacks, originals), ssim=none, psnr=none)
    cells = [
        (row.title, name, row.ssim[name], row.psnr[name], _strip(images))
        for row in (same, *rows)
        for name, images in row.images.items()
    ]
    return Drawn(
        title=title,
        caption=(
            f"Originals on top, below them the reconstructions of {' and '.join(attacks)} behind "
            "each defence, one seed; above each strip mean SSIM and PSNR over all images. After "
            f"Figure {number} of the Ensembler paper."
        ),
        frame=pd.DataFrame(cells, columns=["system", "attack", "ssim", "psnr", "picture"]),
        paint=_paint_defences,
        name="defences",
    )


def _strip(images: Tensor) -> np.ndarray:
    """(N, 3, H, W) in [0, 1] side by side, (H, N·W, 3) bytes."""
    return to_uint8(torch.cat(list(images), dim=2))


def _paint_methods(frame: pd.DataFrame, width: float) -> "Drawing":
    methods = list(dict.fromkeys(frame["method"]))
    rows = len(frame) // len(methods)
    side = width / (len(methods) + 0.3)
    figure = canvas.blank(width, rows * (side + 3) + 6)
    axes = figure.subplots(rows, len(methods), squeeze=False)
    for place, row in enumerate(frame.to_dict("records")):
        one = axes[place // len(methods)][place % len(methods)]
        first = place % len(methods) == 0
        title = _TITLES.get(row["method"], row["method"]) if place < len(methods) else ""
        canvas.label(one, y=f"Variant {row['variant']}" if first else "", title=title)
        _picture_of_method(one, row)
    return figure


def _picture_of_method(axes: "Axes", row: dict[Any, Any]) -> None:
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


def _paint_cuts(frame: pd.DataFrame, width: float) -> "Drawing":
    first, cuts = frame.iloc[0], frame.iloc[1:]
    downs, rights = sorted(set(cuts["h"])), sorted(set(cuts["t"]))
    side = min(width / (len(rights) + 1.3), 40.0)
    figure = canvas.blank(width, len(downs) * (side + _WORDS) + 8)
    axes = figure.subplots(len(downs), len(rights) + 1, squeeze=False)
    for one in axes.flat:
        one.axis("off")
    axes[0][0].imshow(first["picture"], interpolation="nearest")
    canvas.label(axes[0][0], title="originals")
    for cut in cuts.to_dict("records"):
        one = axes[downs.index(cut["h"])][rights.index(cut["t"]) + 1]
        one.imshow(cut["picture"], interpolation="nearest")
        canvas.label(one, title=f"h={cut['h']}, t={cut['t']}")
        scores = f"SSIM {cut['ssim']:.3f}\n{cut['psnr']:.2f} dB"
        canvas.note(one, 0.5, -0.03, scores, ha="center", va="top", transform=one.transAxes)
    return figure


def _paint_defences(frame: pd.DataFrame, width: float) -> "Drawing":
    systems, attacks = (list(dict.fromkeys(frame[name])) for name in ("system", "attack"))
    if not attacks:
        return canvas.empty(width, "No system was attacked.")
    height, across = frame["picture"].iloc[0].shape[:2]
    strip = (width / len(attacks) - 3) * height / across
    figure = canvas.blank(width, len(systems) * (strip + 5) + 2)
    axes = figure.subplots(len(systems), len(attacks), squeeze=False)
    for one in axes.flat:
        one.axis("off")
    for cell in frame.to_dict("records"):
        one = axes[systems.index(cell["system"])][attacks.index(cell["attack"])]
        one.imshow(cell["picture"], interpolation="nearest")
        scores = f", SSIM {cell['ssim']:.2f}, {cell['psnr']:.1f} dB"
        first = f"{cell['system']}, {cell['attack']}"
        text = first if cell["system"] == "Originals" else cell["system"] + scores
        one.set_title(text, fontsize=canvas.SMALL, color=canvas.INK, loc="left", pad=2)
    return figure
