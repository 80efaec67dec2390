"""Resamples that all metrics share, so that their numbers are paired, and ranges of them."""

from dataclasses import dataclass

import numpy as np

from semsim.base.stats.grouping import Layout

_ZERO = 1e-12  # equal numbers may differ by rounding
_LEVEL = (2.5, 97.5)  # per cent: the ends of a 95% interval
_FEWEST_DISTINCT = 3
_HALF = 0.5  # of the resamples, at least, have a number
FEWEST_BOOTSTRAPPED = 8  # models: with fewer the bootstrap over models covers less than 93%
# Streams of random numbers, one a purpose.
_ORIGINALS, _MODELS, _SHUFFLES, _SPLITS, _FLIPS, _SWAPS, _PEOPLE = range(7)


@dataclass(frozen=True, kw_only=True)
class Resamples:
    """B bootstrap resamples of originals and of models.

    Attributes:
        originals: (B, O), how often each original is drawn, within its data set.
        models: (B, M) uniform numbers that say which models are drawn, see `picks`.
        permutations: How many shuffles a permutation test takes where all are too many.
    """

    originals: np.ndarray
    models: np.ndarray
    permutations: int
    seed: int

    def picks(self, n: int) -> np.ndarray:
        """(B', n) int: resamples of n models with at least three different ones, B' ≤ B."""
        drawn = (self.models[:, :n] * n).astype(int)
        ordered = np.sort(drawn, axis=1)
        distinct = 1 + (np.diff(ordered, axis=1) > 0).sum(axis=1)
        return drawn[distinct >= _FEWEST_DISTINCT]

    @property
    def n(self) -> int:
        return len(self.models)

    def shuffles(self, n: int) -> np.ndarray:
        """(permutations, n) int: random orders of n models."""
        orders = np.tile(np.arange(n), (self.permutations, 1))
        return _stream(self.seed, _SHUFFLES, n).permuted(orders, axis=1)

    def splits(self) -> np.random.Generator:
        """Return the generator that chooses splits of annotators where all are too many."""
        return _stream(self.seed, _SPLITS)

    def flips(self) -> np.random.Generator:
        """Return the generator of signs by which the models of a pair are compared."""
        return _stream(self.seed, _FLIPS)

    def people(self) -> np.ndarray:
        """(B, M) standard normal numbers: errors of people's shares."""
        return _stream(self.seed, _PEOPLE).standard_normal(self.models.shape)

    def swaps(self) -> np.random.Generator:
        """Return the generator of swaps by which two metrics are compared, the same for all."""
        return _stream(self.seed, _SWAPS)


def resample(layout: Layout, bootstraps: int, permutations: int, seed: int) -> Resamples:
    """The resamples of a study; the same seed gives the same ones."""
    originals = draw_originals(layout.dataset, bootstraps, _stream(seed, _ORIGINALS))
    models = _stream(seed, _MODELS).random((bootstraps, layout.n_models))
    return Resamples(originals=originals, models=models, permutations=permutations, seed=seed)


def draw_originals(dataset: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """(n, O) float64: how often each original is drawn, as many of each data set as there are.

    Args:
        dataset: (O,) int from 0, the data set of each original. Whole originals are drawn, with all
            their images: what people say of images of one original is not independent.
    """
    drawn = np.zeros((len(dataset), n)).T  # an original's own lie together
    for one in range(int(dataset.max(initial=-1)) + 1):
        own = np.flatnonzero(dataset == one)
        drawn[:, own] = rng.multinomial(len(own), np.full(len(own), 1 / len(own)), n)
    return drawn


def interval(draws: np.ndarray) -> tuple[float, float]:
    """Return what holds 95% of (B,) resampled statistics; NaN stands for "none".

    Resamples without a number are left out; where less than half have one, both ends are NaN.
    """
    return _reasoned(draws)[:2]


def varied_interval(draws: np.ndarray) -> tuple[float, float, str | None]:
    """As `interval`, and why there is none; there is none where all say the same.

    Such draws say that the resamples could not show what chance does, not that it does nothing.
    """
    low, high, why = _reasoned(draws)
    if high - low <= _ZERO:
        return np.nan, np.nan, "every resample gives the same number"
    return low, high, why


def _reasoned(draws: np.ndarray) -> tuple[float, float, str | None]:
    """`interval`, and why there is none."""
    numbers = draws[~np.isnan(draws)]
    if not len(numbers) or len(numbers) < _HALF * len(draws):
        return np.nan, np.nan, "fewer than half of the resamples give a ranking"
    if np.isinf(numbers).any():  # between two infinite values there is nothing to interpolate
        low, high = np.percentile(numbers, _LEVEL, method="closest_observation")
    else:
        low, high = np.percentile(numbers, _LEVEL)
    return float(low), float(high), None


def _stream(seed: int, *purpose: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=purpose))
