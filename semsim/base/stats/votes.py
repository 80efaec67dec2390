"""Answers of annotators to images, the votes there are, and when they decide."""

from dataclasses import dataclass, replace

import numpy as np

_ROUNDING = 1e-9  # of a threshold such as 2.3 times a number of votes


@dataclass(frozen=True, kw_only=True)
class SparseVotes:
    """One number a vote: V votes of A annotators on R images, sorted by image, then annotator.

    A table of all pairs would hold R · A numbers; of a million votes by a thousand people it has
    two hundred times as many cells as votes.

    Attributes:
        image, annotator: (V,) int.
        values: (V,) float64, NaN where a vote does not say this.
        shape: (R, A).
    """

    image: np.ndarray
    annotator: np.ndarray
    values: np.ndarray
    shape: tuple[int, int]

    def __len__(self) -> int:
        """Return the number of votes that have a value."""
        return int((~np.isnan(self.values)).sum())

    def of(self, values: np.ndarray) -> "SparseVotes":
        """Another number, (V,), of the same votes."""
        return replace(self, values=np.asarray(values, dtype=np.float64))

    def by(self, chosen: np.ndarray) -> "SparseVotes":
        """The votes of the annotators `chosen`, (A,) bool, who keep their numbers."""
        own = chosen[self.annotator]
        names = ("image", "annotator", "values")
        return replace(self, **{name: getattr(self, name)[own] for name in names})

    @property
    def counts(self) -> np.ndarray:
        """(R,) int: how many votes say something of each image."""
        return np.bincount(self.image[~np.isnan(self.values)], minlength=self.shape[0])

    @property
    def totals(self) -> np.ndarray:
        """(R,) float64: the sum of what is said of each image, 0 where nothing is."""
        given = np.nan_to_num(self.values, nan=0.0)
        return np.bincount(self.image, given, minlength=self.shape[0])

    @property
    def means(self) -> np.ndarray:
        """(R,): the mean of what is said of each image, NaN where nothing is."""
        return ratio(self.totals, self.counts)


def ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """(...) `above` / `below`, of one shape, NaN where there is nothing to divide by."""
    return np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below > 0)


def votes_needed(votes: np.ndarray, votes_per_item: np.ndarray | int) -> np.ndarray:
    """Count the votes of a majority: more than half of K, or of all `votes` where more have come.

    Three of five decide whatever the others will say, and an extra vote that makes it 3 to 3 takes
    the decision back. The human study has the same rule for its labels and its results.

    Args:
        votes: (R,) int, those on each image.
        votes_per_item: K, one for all or (R,).

    Returns:
        (R,) int.
    """
    return np.maximum(votes, votes_per_item) // 2 + 1


def majority(yes: np.ndarray, votes: np.ndarray, votes_per_item: np.ndarray | int) -> np.ndarray:
    """(R,) float64: 1 or 0 once as many votes agree as `votes_needed` says, else NaN.

    Args:
        yes, votes: (R,), how many recognise each image, and how many there are.
    """
    needed = votes_needed(votes, votes_per_item)
    return _decided(yes >= needed, votes - yes >= needed)


def at_threshold(
    total: np.ndarray, missing: np.ndarray, line: np.ndarray, ends: tuple[float, float]
) -> np.ndarray:
    """(R,) float64: 1 where a sum reaches `line` whatever is still to come, 0 where it cannot.

    NaN where that is open.

    Args:
        total: (R,) the sum of the ratings there are.
        missing: (R,) how many are still to come.
        line: (R,) the sum from which the mean of all is at the threshold.
        ends: the lowest and the highest rating.
    """
    lowest, highest = (total + end * missing for end in ends)
    return _decided(lowest >= line - _ROUNDING, highest < line - _ROUNDING)


def _decided(yes: np.ndarray, no: np.ndarray) -> np.ndarray:
    values = np.full(len(yes), np.nan)
    values[yes], values[no] = 1.0, 0.0
    return values
