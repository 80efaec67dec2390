"""Advice before a training starts: the preset for so many votes, and whether its test decides."""

from semsim.base.stats.intervals import FEWEST
from semsim.base.words import counted
from semsim.learning.settings import MIXED
from semsim.learning.splits import SplitCounts

# The smallest label budget of Sun et al. 2023, Fig. 7A.
FEW_ORIGINALS, FEW_TRIPLETS = 50, 500
_FOUND = {
    "mixed": "too little to train a network on",
    "pooled": "as much as the paper's smallest study had",
}
_MIXES = (
    "the preset {} weighs pixels against a network that stays as it is: expect about what the best "
    "of MSE, PSNR and SSIM reaches"
)
_TRAINS = (
    "the preset {} trains a network; whether it beats pixels and its own start only the test can "
    "say"
)
_ON_TOO_LITTLE = (
    "the preset {} trains one all the same; whether it beats pixels and its own start only the "
    "test can say"
)


def default_preset(n_originals: int, n_triplets: int) -> str:
    """The preset for a training that has so many originals of both kinds and triplets."""
    few = n_originals < FEW_ORIGINALS or n_triplets < FEW_TRIPLETS
    return "mixed" if few else "pooled"


def preset_for(counts: SplitCounts) -> str:
    """`default_preset` of what a split leaves to learn from."""
    return default_preset(len(counts.training.usable), counts.training.n_triplets)


def expectation(counts: SplitCounts, preset: str, loss: str) -> str:
    """In one sentence, what to expect of a training with `preset` and of its test.

    Args:
        loss: Of its settings, which may be other than the preset's own. Empty where there is
            nothing to learn from.
    """
    usable, n_test = len(counts.training.usable), counts.n_test_originals
    if not usable:
        return ""
    return (
        f"With {counted(usable, 'original')} and {counted(counts.training.n_triplets, 'triplet')} "
        f"there is {_expected(preset, loss, preset_for(counts))}; on "
        f"{counted(n_test, 'held-out original')} {_told(n_test)}."
    )


def _told(n_test: int) -> str:
    """Return which differences a test of so many originals can tell from chance."""
    if n_test < FEWEST:
        return f"no difference can be told from chance, which takes {FEWEST}"
    return "the interval of each difference shows whether chance could make it"


def _expected(preset: str, loss: str, default: str) -> str:
    trains = _ON_TOO_LITTLE if default == MIXED else _TRAINS
    words = _MIXES if loss == MIXED else trains
    joined = "so" if preset == default and words != _ON_TOO_LITTLE else "but"
    return f"{_FOUND[default]}, {joined} {words.format(preset)}"
