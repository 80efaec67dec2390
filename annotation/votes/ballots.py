"""Counted votes as arrays, and the weights of originals that all statistics of them share."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from annotation.domain import StimulusKind, VoteStatus
from annotation.votes.aggregate import ORIGINAL
from semsim.base.stats.intervals import FEWEST, left_out, too_few

BOOTSTRAPS = 1000
NO_VOTES = "there are no votes yet"


@dataclass(frozen=True, kw_only=True)
class Ballots:
    """V counted votes of I items by A annotators about O originals.

    votes: the rows themselves, sorted by item and annotator, so that nothing depends on the order
        in which they came.
    item, annotator, original: (V,) int from 0; `annotators` are their names, sorted.
    weights: (1 + G, O), how often each original counts: once in the first row, which makes the
        statistic itself, then as `left_out` has it.
    drawn: (B, O), how often each original was drawn in each of the B bootstrap resamples.
    """

    votes: pd.DataFrame
    item: np.ndarray
    annotator: np.ndarray
    original: np.ndarray
    annotators: tuple[str, ...]
    weights: np.ndarray
    drawn: np.ndarray

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
    """The counted votes on items of these kinds, out of a table with `base.columns.VOTE_COLUMNS`.

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
        weights=left_out(n),
        drawn=np.hstack(drawn).astype(float) if n >= FEWEST else np.ones((0, n)),
    )


def few(n_originals: np.ndarray) -> np.ndarray:
    """(N,) why a number of so many originals has no interval, "" where it has one."""
    return np.array([too_few(int(n)) or "" for n in n_originals], dtype=str)
