"""Structural similarity, image by image: the Gaussian window here, others by scikit-image."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import skimage

from semsim.metrics.base import Judge, MetricSpec, Pairs, Resources, Scores, check_side
from semsim.metrics.pixel import exact_chunks
from semsim.metrics.registered import gaussian_ssim

if TYPE_CHECKING:
    from torch import Tensor

Window = Literal["gaussian", "uniform"]
_SIDES: dict[Window, int] = {"gaussian": 11, "uniform": 7}
_NAMES: dict[Window, tuple[str, str]] = {
    "gaussian": ("ssim", "SSIM"),
    "uniform": ("ssim-uniform", "SSIM (uniform window)"),
}


@dataclass(frozen=True, kw_only=True)
class Ssim:
    """Structural similarity.

    window: "gaussian", σ = 1.5 over 11 pixels as Wang et al. have it, or "uniform", 7 pixels.
    """

    window: Window = "gaussian"

    @property
    def spec(self) -> MetricSpec:
        name, title = _NAMES[self.window]
        return MetricSpec(
            name=name,
            title=title,
            higher_means_more_leakage=True,
            per_image=True,
            smallest_side=_SIDES[self.window],
        )

    def files(self, resources: Resources) -> tuple[Path, ...]:
        return ()

    def prepare(self, resources: Resources) -> Judge:
        return self._judge

    def _judge(self, pairs: Pairs) -> Scores:
        return Scores(values=ssim(pairs.originals, pairs.reconstructions, self.window))


def ssim(originals: Tensor, reconstructions: Tensor, window: Window = "gaussian") -> np.ndarray:
    """Structural similarity of each pair, the mean over channels.

    originals, reconstructions: (N, 1 or 3, H, W), uint8, or float32 or float64 in [0, 1]; sides
    of 11 pixels or more for the Gaussian window, 7 for the uniform one. Returns (N,) float64 in
    [-1, 1]. Raises `DataError` for other images.
    Wang, Bovik, Sheikh and Simoncelli 2004, "Image quality assessment", equation 13.
    """
    parts = exact_chunks(originals, reconstructions)
    check_side(originals, Ssim(window=window).spec, f"its window is {_SIDES[window]} wide")
    if window == "gaussian":
        return np.concatenate([gaussian_ssim(a, b) for a, b in parts])
    score = partial(
        skimage.metrics.structural_similarity,
        win_size=_SIDES[window],  # the setting of the SemSim authors' code
        data_range=1.0,
        channel_axis=-1,
    )
    values = [
        score(x, y)
        for a, b in parts
        for x, y in zip(np.moveaxis(a, 1, 3), np.moveaxis(b, 1, 3), strict=True)
    ]
    return np.array(values, dtype=np.float64)
