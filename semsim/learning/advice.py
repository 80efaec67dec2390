"""What to expect of a training before it starts: which preset suits so many votes, and how sure a
test of so many originals can be."""

from semsim.learning.splits import Counts
from semsim.words import counted

# The smallest label budget of Sun et al. 2023, Fig. 7A. With the 8 originals of half the built-in
# study LeNet lost to pixels by triplets and pooled, from every start (`benchmarks.question`).
FEW_ORIGINALS, FEW_TRIPLETS = 50, 500
# Half a 95 % interval of a difference of AUC on n originals is about this over √n: on 8 originals
# of the built-in study 0.08 to 0.2.
_SPREAD = 0.3
_EXPECTED = {
    "mixed": "too little to train a network on, so the preset mixed weighs pixels against a "
    "network that stays as it is: expect about what the best of MSE, PSNR and SSIM reaches",
    "pooled": "as much as the paper's smallest study had, so the preset pooled trains a network; "
    "whether it beats pixels and its own start only the test can say",
}


def default_preset(n_originals: int, n_triplets: int) -> str:
    """The preset for a training that has so many originals of both kinds and triplets."""
    few = n_originals < FEW_ORIGINALS or n_triplets < FEW_TRIPLETS
    return "mixed" if few else "pooled"


def preset_for(counts: Counts) -> str:
    """`default_preset` of what a split leaves to learn from."""
    return default_preset(len(counts.training.usable), counts.training.n_triplets)


def expectation(counts: Counts) -> str:
    """In one sentence, what to expect of a training by its default preset and of its test.

    Empty where there is nothing to learn from.
    """
    usable, n_test = len(counts.training.usable), counts.n_test_originals
    if not usable:
        return ""
    sure = _SPREAD / max(1, n_test) ** 0.5
    return (
        f"With {counted(usable, 'original')} and {counted(counts.training.n_triplets, 'triplet')} "
        f"there is {_EXPECTED[preset_for(counts)]}; on {counted(n_test, 'held-out original')} a "
        f"difference of AUC below about {sure:.2f} cannot be told from chance."
    )
