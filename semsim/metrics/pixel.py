"""Mean squared error and peak signal-to-noise ratio, image by image, by scikit-image."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from skimage.metrics import mean_squared_error, peak_signal_noise_ratio
from torch import Tensor

from semsim.metrics.base import Judge, MetricSpec, Pairs, Resources, Scores, check_pairs


@dataclass(frozen=True, kw_only=True)
class Mse:
    """Mean squared error of pixels in [0, 1]."""

    @property
    def spec(self) -> MetricSpec:
        return MetricSpec(name="mse", title="MSE", higher_means_more_leakage=False, per_image=True)

    def files(self, resources: Resources) -> tuple[Path, ...]:
        return ()

    def prepare(self, resources: Resources) -> Judge:
        return lambda pairs: Scores(values=mse(pairs.originals, pairs.reconstructions))


@dataclass(frozen=True, kw_only=True)
class Psnr:
    """Peak signal-to-noise ratio; infinite where the images are identical."""

    @property
    def spec(self) -> MetricSpec:
        return MetricSpec(
            name="psnr",
            title="PSNR",
            unit="dB",
            higher_means_more_leakage=True,
            per_image=True,
        )

    def files(self, resources: Resources) -> tuple[Path, ...]:
        return ()

    def prepare(self, resources: Resources) -> Judge:
        return _judge_psnr


def mse(originals: Tensor, reconstructions: Tensor) -> np.ndarray:
    """Mean squared error over channels and pixels of each pair.

    originals, reconstructions: (N, 3, H, W) float32 in [0, 1]. Returns (N,) float64 in [0, 1].
    """
    return each_pair(mean_squared_error, originals, reconstructions)


def psnr(originals: Tensor, reconstructions: Tensor) -> np.ndarray:
    """Peak signal-to-noise ratio of each pair with peak 1, never of a pooled error.

    originals, reconstructions: (N, 3, H, W) float32 in [0, 1]. Returns (N,) float64 in dB,
    +inf for identical images.
    """
    with warnings.catch_warnings(), np.errstate(divide="ignore"):  # of identical images: +inf
        warnings.filterwarnings("ignore", "divide by zero", RuntimeWarning)
        return each_pair(
            lambda a, b: peak_signal_noise_ratio(a, b, data_range=1.0), originals, reconstructions
        )


def each_pair(
    score: Callable[[np.ndarray, np.ndarray], float], originals: Tensor, reconstructions: Tensor
) -> np.ndarray:
    """`score` of each pair of (H, W, 3) float64 arrays in [0, 1], as (N,) float64."""
    check_pairs(originals, reconstructions)
    pairs = zip(_arrays(originals), _arrays(reconstructions), strict=True)
    values = [score(a.astype(np.float64), b.astype(np.float64)) for a, b in pairs]
    return np.array(values, dtype=np.float64)


def _judge_psnr(pairs: Pairs) -> Scores:
    values = psnr(pairs.originals, pairs.reconstructions)
    identical = int(np.isinf(values).sum())
    note = f"{identical} of {len(values)} reconstructions equal their original: PSNR is infinite"
    return Scores(values=values, notes=(note,) if identical else ())


def _arrays(images: Tensor) -> np.ndarray:
    return images.detach().permute(0, 2, 3, 1).cpu().numpy()
