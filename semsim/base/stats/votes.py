"""Answers of annotators to images: the votes there are, not all that there could be."""

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True, kw_only=True)
class SparseVotes:
    """One number a vote: V votes of A annotators on R images, sorted by image, then annotator.

    A table of all pairs would hold R · A numbers; of a million votes by a thousand people it has
    two hundred times as many cells as votes.

    image, annotator: (V,) int. values: (V,) float64, NaN where a vote does not say this.
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
    """`above` / `below`, NaN where there is nothing to divide by."""
    return np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below > 0)
