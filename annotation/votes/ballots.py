"""Counted votes as arrays, and the resamples of originals that all statistics of them share."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from annotation.domain import StimulusKind, VoteStatus

BOOTSTRAPS = 1000
ORIGINAL = ["dataset", "image_id"]
NO_VOTES = "there are no votes yet"
ONE_ORIGINAL = "no interval: it takes at least two originals"
_LEVEL = (2.5, 97.5)  # per cent: the ends of a 95 % interval


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

    A resample draws whole originals, with all their items of all models: what people say of
    reconstructions of the same original is not independent.
    """
    wanted = (votes["status"] == VoteStatus.COUNTED.value) & votes["kind"].isin(list(kinds))
    kept = votes[wanted].sort_values(["item", "annotator"], ignore_index=True)
    annotator, names = pd.factorize(kept["annotator"], sort=True)
    original = kept.groupby(ORIGINAL).ngroup().to_numpy()
    n = int(original.max(initial=-1)) + 1
    drawn = rng.multinomial(n, np.full(n, 1 / n), bootstraps) if n > 1 else np.ones((0, n))
    return Ballots(
        votes=kept,
        item=pd.factorize(kept["item"])[0],
        annotator=annotator,
        original=original,
        annotators=tuple(map(str, names)),
        weights=np.vstack([np.ones((1, n)), drawn]).astype(float),
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


def ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """`above` / `below`, NaN where there is nothing to divide by."""
    return np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below > 0)
