"""Measures of models made by hand, for tests of the statistics."""

import numpy as np
from scipy import stats

from semsim.analysis.measures import Measure


def measure(name, means, resampled=None, sign=1.0, of_images=True):
    """A measure of models with the values `means`; without resamples it has none."""
    means = np.asarray(means, dtype=float)
    return Measure(
        name=name,
        title=name.upper(),
        sign=sign,
        means=means,
        resampled=np.empty((0, len(means))) if resampled is None else np.asarray(resampled, float),
        n_inf=np.zeros(len(means), dtype=int),
        of_images=of_images,
    )


def widened(draws, n):
    """The expanded percentile interval of Hesterberg 2015 of a statistic of n originals."""
    far = np.sqrt(n / (n - 1)) * stats.t.ppf(0.975, n - 1)
    return tuple(np.percentile(draws, [100 * stats.norm.sf(far), 100 * stats.norm.cdf(far)]))
