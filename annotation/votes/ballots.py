"""Counted votes as arrays, and the resamples of originals that all statistics of them share."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import ndtri

from annotation.domain import StimulusKind, VoteStatus
from annotation.votes.aggregate import ORIGINAL

BOOTSTRAPS = 1000
NO_VOTES = "there are no votes yet"
ONE_ORIGINAL = "no interval: it takes at least two originals"
WILSON = (
    "Where every resample gives the same share, as at 0% and 100%, the interval is Wilson's score "
    "interval (1927), each original being one trial."
)
_LEVEL = (2.5, 97.5)  # per cent: the ends of a 95 % interval
_Z = float(ndtri(0.975))
_NO_WIDTH = 1e-9  # sums that are added in another order differ by less


@dataclass(frozen=True, kw_only=True)
class Ballots:
    """V counted votes of I items by A annotators about O originals.

    votes: the rows themselves, sorted by item and annotator, so that nothing depends on the order
        in which they came.
    item, annotator, original: (V,) int from 0; `annotators` are their names, sorted.
    weights: (1 + B, O), how often each original counts: once in the first row, which makes the
        statistic itself, and as often as it was drawn in each of the B bootstrap resamples.
    """

    votes: pd.DataFrame
    item: np.ndarray
    annotator: np.ndarray
    original: np.ndarray
    annotators: tuple[str, ...]
    weights: np.ndarray

    @property
    def first(self) -> np.ndarray:
        """(I,) where each item's first vote is, in the order of items."""
        return np.unique(self.item, return_index=True)[1]

    def per_original(self, where: np.ndarray, amount: np.ndarray | None = None) -> np.ndarray:
        """(O,) float: how many elements, or how much of `amount`, fall on each original."""
        return np.bincount(where, amount, minlength=self.weights.shape[1]).astype(float)


def ballots_of(
    votes: pd.DataFrame,
    rng: np.random.Generator,
    *,
    kinds: Sequence[str] = (StimulusKind.RECONSTRUCTION.value,),
    bootstraps: int = BOOTSTRAPS,
) -> Ballots:
    """The counted votes on items of these kinds, out of a table with `exports.VOTE_COLUMNS`.

    A resample draws whole originals, as many of each data set as there are, with all their items
    of all models: what people say of reconstructions of the same original is not independent.
    """
    wanted = (votes["status"] == VoteStatus.COUNTED.value) & votes["kind"].isin(list(kinds))
    kept = votes[wanted].sort_values(["item", "annotator"], ignore_index=True)
    annotator, names = pd.factorize(kept["annotator"], sort=True)
    original = kept.groupby(ORIGINAL).ngroup().to_numpy()  # by data set first
    sizes = kept.drop_duplicates(ORIGINAL).groupby("dataset").size()
    n = int(sizes.sum())
    drawn = [rng.multinomial(m, np.full(m, 1 / m), bootstraps) for m in sizes]
    return Ballots(
        votes=kept,
        item=pd.factorize(kept["item"])[0],
        annotator=annotator,
        original=original,
        annotators=tuple(map(str, names)),
        weights=np.vstack([np.ones((1, n)), *([np.hstack(drawn)] if n > 1 else [])]).astype(float),
    )


def interval(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The 95 % percentile intervals of (1 + B, ...) statistics, each end (...).

    The first row, the statistic itself, is not part of it. NaN stands for "none": such resamples
    are left out, and where they are more than half, or the statistic itself is NaN, both ends are.
    """
    value, drawn = draws[0], draws[1:]
    missing = np.isnan(drawn)
    usable = ~np.isnan(value) & (len(drawn) > 0) & (2 * missing.sum(axis=0) <= len(drawn))
    ends = np.full((2, *value.shape), np.nan)
    if usable.any():
        some = drawn[:, usable] if value.ndim else drawn[:, None]
        ends[:, usable] = np.nanpercentile(some, _LEVEL, axis=0).reshape(ends[:, usable].shape)
    return ends[0], ends[1]


def share_interval(draws: np.ndarray, n_originals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The `interval` of shares, (1 + B, ...) in [0, 1]; Wilson's where that has no width.

    Resamples of 24 items that nobody recognised all say 0, but [0, 0] would promise that nothing
    can be. n_originals: (...), how many originals each share is of; each is one trial, however
    many votes there are on it, as those are not independent.
    """
    low, high = interval(draws)
    certain = high - low < _NO_WIDTH
    least, most = wilson(draws[0] * n_originals, np.asarray(n_originals, float))
    return np.where(certain, least, low), np.where(certain, most, high)


def wilson(count: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The 95 % interval of a share, Wilson 1927; NaN where n is 0."""
    share = ratio(count, n)
    spread = ratio(np.full(np.shape(n), _Z**2), n)
    middle = (share + spread / 2) / (1 + spread)
    half = np.sqrt(spread * share * (1 - share) + spread**2 / 4) / (1 + spread)
    # Rounding must not put an end beyond the shares there are.
    return np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)


def ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """`above` / `below`, NaN where there is nothing to divide by."""
    return np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below > 0)
