"""Advice before a training starts: how much there is to learn from, and what its test decides."""

from semsim.base.stats.intervals import FEWEST
from semsim.base.words import counted
from semsim.learning.splits import SplitCounts

# The smallest label budget of Sun et al. 2023, Fig. 7A.
FEW_ORIGINALS, FEW_TRIPLETS = 50, 500


def expectation(counts: SplitCounts) -> str:
    """Return what to expect of a training and of its test; "" where there is nothing to learn from.

    How much there is to learn from is compared with the paper's smallest study.
    """
    usable, n_test = len(counts.training.usable), counts.n_test_originals
    if not usable:
        return ""
    triplets = counts.training.n_triplets
    few = usable < FEW_ORIGINALS or triplets < FEW_TRIPLETS
    return (
        f"{counted(usable, 'original')} with {counted(triplets, 'triplet')} are "
        f"{'less' if few else 'no less'} than the paper's smallest study had, {FEW_ORIGINALS} with "
        f"{FEW_TRIPLETS}. Only its test shows whether a SemSim beats pixels, the calibrated "
        "baseline and its initial weights. "
        f"On {counted(n_test, 'held-out original')} {_told(n_test)}."
    )


def _told(n_test: int) -> str:
    """Return which differences a test of so many originals can tell from chance."""
    if n_test < FEWEST:
        return f"no difference is significant; that takes {FEWEST}"
    return "the interval of each difference shows whether chance could make it"
