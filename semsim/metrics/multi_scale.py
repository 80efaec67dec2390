"""Structural similarity at five scales, by pytorch-msssim where that is installed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from semsim.base.metric_spec import MetricSpec
from semsim.base.storage.optional import need
from semsim.metrics.base import Judge, Pairs, Resources, Scores, batches, check_side

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_LIBRARY = "pytorch-msssim"
_SIDE = 10 * 2**4 + 1  # the library's own bound: the window of 11 pixels at the fifth scale
_BATCH = 16


@dataclass(frozen=True, kw_only=True)
class MsSsim:
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

    def files(self, resources: Resources) -> tuple[Path, ...]:
        need(_LIBRARY.replace("-", "_"), "MS-SSIM", "ms-ssim")
        return ()

    def prepare(self, resources: Resources) -> Judge:
        self.files(resources)

        def judge(pairs: Pairs) -> Scores:
            check_side(pairs.originals, self.spec, "it halves them four times")
            return Scores(values=ms_ssim(pairs.originals, pairs.reconstructions, resources.device))

        return judge


def ms_ssim(originals: Tensor, reconstructions: Tensor, device: torch.device | str) -> np.ndarray:
    """`semsim.metrics.ms_ssim` as an array, (N,), the mean over RGB channels.

    Negative contrasts count as 0.
    """
    import torch
    from pytorch_msssim import ms_ssim as score

    parts = zip(
        batches(originals, _BATCH, device), batches(reconstructions, _BATCH, device), strict=True
    )
    values = [score(a, b, data_range=1.0, size_average=False).cpu() for a, b in parts]
    return torch.cat(values).double().numpy()
