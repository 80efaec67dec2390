"""The kernel distance between two feature clouds: an unbiased squared MMD."""

from dataclasses import dataclass

import numpy as np

from semsim.base.stats.intervals import FEWEST
from semsim.metrics.frechet import check_clouds


@dataclass(frozen=True)
class KernelDistance:
    """An estimate and its jackknife standard error, None below `FEWEST` rows."""

    value: float
    standard_error: float | None


def kernel_distance(first: np.ndarray, second: np.ndarray) -> KernelDistance:
    """Unbiased squared maximum mean discrepancy with the kernel (x·y / d + 1)³.

    first, second: (N, d), N ≥ 2, of equal counts. The mean of k over pairs within either cloud, xᵢ
    with itself left out, less twice the mean over all pairs across: the estimator behind published
    KIDs. Around 0 for independent draws of equal distributions, and so below 0 for about half of
    them and for clouds that are equal. Raises `DataError` as `frechet_distance`.
    The standard error is the jackknife's, which leaves out one row of both clouds at a time.
    Bińkowski et al. 2018, "Demystifying MMD GANs", equation 4; Gretton et al. 2012, "A kernel
    two-sample test", equation 3.
    """
    check_clouds(first, second)
    x, y = first.astype(np.float64), second.astype(np.float64)
    within = _kernel(x, x) + _kernel(y, y)
    np.fill_diagonal(within, 0.0)
    across = _kernel(x, y)
    inside, outside, n = within.sum(), across.sum(), len(x)
    return KernelDistance(float(_estimate(inside, outside, n)), _jackknife(within, across))


def _estimate(inside: np.ndarray, outside: np.ndarray, n: int) -> np.ndarray:
    """The distance from the sums of all terms within the clouds, and of all across, n rows each."""
    return inside / (n * (n - 1)) - 2 * outside / n**2


def _jackknife(within: np.ndarray, across: np.ndarray) -> float | None:
    """The standard error over leaving out row and column i of both (n, n), one i at a time."""
    n = len(within)
    if n < FEWEST:
        return None
    inside = within.sum() - 2 * within.sum(axis=1)
    outside = across.sum() - across.sum(axis=0) - across.sum(axis=1) + np.diagonal(across)
    without = _estimate(inside, outside, n - 1)
    return float(np.sqrt((n - 1) / n * np.square(without - without.mean()).sum()))


def _kernel(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x @ y.T / x.shape[1] + 1) ** 3
