"""The kernel distance between two feature clouds: an unbiased squared MMD."""

from dataclasses import dataclass

import numpy as np

from semsim.metrics.frechet import check_clouds


@dataclass(frozen=True)
class KernelDistance:
    """An estimate and its jackknife standard error, None for fewer than three rows."""

    value: float
    standard_error: float | None


def kernel_distance(first: np.ndarray, second: np.ndarray) -> KernelDistance:
    """Unbiased squared maximum mean discrepancy with the kernel (x·y / d + 1)³.

    first, second: (N, d), N ≥ 2; row i of one belongs to row i of the other, so the terms
    k(xᵢ, yᵢ), which are no draws of independent images, are left out. Around 0 for equal
    distributions, and exactly 0 for equal clouds. Raises `DataError` as `frechet_distance`.
    Bińkowski et al. 2018, "Demystifying MMD GANs"; the U-statistic is equation 4
    of Gretton et al. 2012, "A kernel two-sample test".
    """
    check_clouds(first, second)
    x, y = first.astype(np.float64), second.astype(np.float64)
    cross = _kernel(x, y)
    terms = _kernel(x, x) + _kernel(y, y) - cross - cross.T
    np.fill_diagonal(terms, 0.0)
    n = len(terms)
    return KernelDistance(float(terms.sum()) / (n * (n - 1)), _jackknife(terms.sum(axis=1)))


def _jackknife(rows: np.ndarray) -> float | None:
    """Standard error of a U-statistic whose symmetric terms sum to `rows`, row by row."""
    n = len(rows)
    if n < 3:
        return None
    without = (rows.sum() - 2 * rows) / ((n - 1) * (n - 2))
    return float(np.sqrt((n - 1) / n * np.square(without - without.mean()).sum()))


def _kernel(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x @ y.T / x.shape[1] + 1) ** 3
