"""Measures of models made by hand, for tests of the statistics."""

import numpy as np

from semsim.base.stats.measures import Measure
from semsim.metrics.inception import Spread, frechet_distance


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
        errors=np.full(len(means), np.nan),
        units=np.zeros(len(means), dtype=int),
        of_images=of_images,
    )


def error_of(once, without, units):
    """The error by the jackknife about the value, of a number and those without each original."""
    return np.sqrt((units - 1) / units * sum((one - once) ** 2 for one in without))


def cloud_distance(first, second):
    """The Fréchet distance of two clouds, (N, d), each given whole."""
    spreads = Spread(), Spread()
    for spread, cloud in zip(spreads, (first, second), strict=True):
        spread.add(cloud)
    return frechet_distance(*spreads)
