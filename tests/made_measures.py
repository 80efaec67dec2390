"""Measures of models made by hand, for tests of the statistics."""

import numpy as np

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
