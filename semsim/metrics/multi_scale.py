"""Structural similarity at five scales, by pytorch-msssim where that is installed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from semsim.base.metric_spec import MetricSpec
from semsim.base.storage.optional import need
from semsim.metrics.base import (
    Judge,
    OfImages,
    Resources,
    Scores,
    as_array,
    as_exact,
    check_side,
    checked_pairs,
)

if TYPE_CHECKING:
    from torch import Tensor

_LIBRARY = "pytorch-msssim"
_SIDE = 10 * 2**4 + 1  # the library's own bound: the window of 11 pixels at the fifth scale
_BATCH = 16


def ms_ssim(originals: Tensor, reconstructions: Tensor) -> Tensor:
    """Structural similarity at five scales of each pair; higher means more leakage.

    Wang, Simoncelli and Bovik 2003, "Multi-scale structural similarity", equation 7.

    Args:
        originals: (N, 3, H, W) float32 in [0, 1], sides of 161 pixels or more.
        reconstructions: As `originals`.

    Returns:
        (N,) float64 in [0, 1] on the device of the originals, differentiable in both.

    Raises:
        DataError: For other images.
        WeightsError: Where pytorch-msssim is not installed.

    >>> import torch
    >>> images = torch.rand(1, 3, 161, 161)
    >>> round(ms_ssim(images, images).item(), 6)
    1.0
    """
    import torch

    MsSsim().files(Resources())
    from pytorch_msssim import ms_ssim as score

    both = checked_pairs(originals, reconstructions)
    check_side(originals, MsSsim().spec, "it halves them four times")
    parts = zip(*(images.split(_BATCH) for images in both), strict=True)
    values = [score(a, b, data_range=1.0, size_average=False) for a, b in parts]
    return as_exact(torch.cat(values), originals.device)


@dataclass(frozen=True, kw_only=True)
class MsSsim(OfImages):
    """Multi-scale structural similarity, with the window and weights of Wang et al. 2003."""

    @property
    def spec(self) -> MetricSpec:
        return MetricSpec(
            name="ms-ssim",
            title="MS-SSIM",
            higher_means_more_leakage=True,
            per_image=True,
            libraries=(_LIBRARY,),
            smallest_side=_SIDE,
        )

    def __call__(self, originals: Tensor, reconstructions: Tensor) -> Tensor:
        return ms_ssim(originals, reconstructions)

    def files(self, resources: Resources) -> tuple[Path, ...]:
        need(_LIBRARY.replace("-", "_"), "MS-SSIM", "ms-ssim")
        return ()

    def prepare(self, resources: Resources) -> Judge:
        self.files(resources)
        return lambda pairs: Scores(values=as_array(self, pairs, resources.device))
