"""Structural similarity, image by image, with the Gaussian window or a uniform one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from semsim.base.metric_spec import MetricSpec
from semsim.base.registry import Checked
from semsim.metrics.base import Judge, NoFiles, Pairs, Resources, Scores, check_side
from semsim.metrics.pixel import exact_chunks
from semsim.metrics.windows import GAUSSIAN, UNIFORM, ssim_in_place

if TYPE_CHECKING:
    from torch import Tensor

Window = Literal["gaussian", "uniform"]
_WINDOWS = {"gaussian": GAUSSIAN, "uniform": UNIFORM}
_NAMES: dict[Window, tuple[str, str]] = {
    "gaussian": ("ssim", "SSIM"),
    "uniform": ("ssim-uniform", "SSIM (uniform window)"),
}


@dataclass(frozen=True, kw_only=True)
class Ssim(Checked, NoFiles):
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
            smallest_side=_WINDOWS[self.window].side,
        )

    def prepare(self, resources: Resources) -> Judge:
        return self._judge

    def _judge(self, pairs: Pairs) -> Scores:
        return Scores(values=ssim(pairs.originals, pairs.reconstructions, self.window))


def ssim(originals: Tensor, reconstructions: Tensor, window: Window = "gaussian") -> np.ndarray:
    """`semsim.metrics.ssim` as an array, (N,); raises `DataError` as that."""
    parts = exact_chunks(originals, reconstructions)
    spec, found = Ssim(window=window).spec, _WINDOWS[window]
    check_side(originals, spec, f"its window is {found.side} wide")
    return np.concatenate([ssim_in_place(a, b, found) for a, b in parts])
