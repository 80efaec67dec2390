"""Standstill of the ranking of target models while votes come in, and rules that go by it.

A study is looked at each time another `STEP` of the votes asked for has come. At each look models
are parted into bands of equals; a look at which the bands are those of the look before is quiet.
A protocol may fix, before the first vote, how many quiet looks in a row let the study end.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from semsim.base.stats.pairwise_accuracy import bands, differences, in_groups
from semsim.base.stats.votes import ratio
from semsim.base.words import counted

STEP = 0.05  # of the votes asked for, between two looks
BANDS = (
    "Models of one band cannot be told apart: by the shares of votes of the same originals, the "
    "first of the band does not lead the others at p < .05. A look that finds the bands of the "
    "look before, and more than one, is quiet."
)
# By quiet looks, of 200 random orders of the 42,000 votes that the paper's authors released: the
# share that ended early, of these the share with the final bands, and the share of votes saved. As
# in benchmarks/results/stopping.json, which a test compares.
REPLAYED = {
    1: (1.0, 0.09, 0.586),
    2: (0.95, 0.479, 0.326),
    3: (0.765, 0.68, 0.182),
    4: (0.55, 0.809, 0.096),
    6: (0.195, 0.872, 0.024),
    8: (0.03, 1.0, 0.004),
}
USUAL = 4  # quiet looks of which a page tells where a study has no rule
_ZERO = 1e-12


@dataclass(frozen=True, kw_only=True)
class Standstill:
    """Bands of a study's models, look by look.

    Attributes:
        votes: (L,) int, how many there were at each look.
        bands: (L, M) int, such as 1, 2, 2, 4: models that the first of a band does not lead share
            one, at the level of `bands`; 0 for a model without a vote.
    """

    votes: np.ndarray
    bands: np.ndarray

    @property
    def quiet(self) -> np.ndarray:
        """(L,) int: how many looks in a row, up to each, found the bands of the look before.

        A look that finds one band alone is never quiet: that is how votes begin.
        """
        found = np.zeros(len(self.votes), dtype=int)
        for look in range(1, len(found)):
            same = np.array_equal(self.bands[look], self.bands[look - 1])
            same &= self.bands[look].max() > 1
            found[look] = found[look - 1] + 1 if same else 0
        return found

    @property
    def since(self) -> int | None:
        """Votes at the first look that found the bands of the last one ever since; None without."""
        return int(self.votes[-1 - self.quiet[-1]]) if len(self.votes) else None

    def met(self, looks: int) -> int | None:
        """Return the votes at the first look with so many quiet ones in a row; None without."""
        reached = np.flatnonzero(self.quiet >= looks)
        return int(self.votes[reached[0]]) if looks and len(reached) else None


def evidence(looks: int) -> str:
    """Return sentences on what a rule of so many quiet looks has saved, and what it has missed."""
    asked = max((n for n in REPLAYED if n <= looks), default=USUAL)
    early, final, saved = REPLAYED[asked]
    return (
        f"In 200 random orders of 42,000 votes of real people, {counted(asked, 'quiet look')} in a "
        f"row came before the end in {early:.0%} of the orders and saved {saved:.0%} of the votes, "
        f"mean of all orders. In {final:.0%} of the orders that ended early the bands were the "
        "final ones. This is no advice to end: no rule that was tried had the final bands by half "
        "of the votes in 95% of the orders."
    )


def model_leads(shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean share of each target model, and p of its lead over each other one.

    Args:
        shares: (M, O), the share of votes that recognise each model's image of each original, NaN
            without a vote.

    Returns:
        (M,), NaN for a model without a vote, and (M, M), the normal approximation of `lead_p`.
    """
    pairs = np.nan_to_num(differences(in_groups(shares)))
    total, spread = pairs.sum(axis=1), np.sqrt((pairs**2).sum(axis=1))
    ahead = np.divide(total, spread, out=np.zeros_like(total), where=spread > _ZERO)
    p = np.full((len(shares), len(shares)), 0.5)
    upper = np.triu_indices(len(shares), 1)
    p[upper], p.T[upper] = ndtr(-ahead), ndtr(ahead)
    known = ~np.isnan(shares)
    return ratio(np.nan_to_num(shares).sum(axis=1), known.sum(axis=1)), p


def watched(
    model: np.ndarray, original: np.ndarray, recognised: np.ndarray, wanted: int
) -> Standstill:
    """Look at votes in the order they came.

    Args:
        model: (V,) int from 0, of each vote.
        original: (V,) int from 0.
        recognised: (V,) in [0, 1], how much each vote recognises.
        wanted: Votes that the protocol asks for.
    """
    shape = int(model.max(initial=-1)) + 1, int(original.max(initial=-1)) + 1
    looks = np.arange(1, int(len(model) / (STEP * wanted)) + 1)
    votes = np.unique(np.ceil(looks * STEP * wanted - _ZERO).astype(int))
    cell = model * shape[1] + original
    total, given = np.zeros((2, shape[0] * shape[1]))
    found = np.zeros((len(votes), shape[0]), dtype=int)
    for look, new in enumerate(map(slice, [0, *votes[:-1]], votes)):
        total += np.bincount(cell[new], recognised[new], len(total))
        given += np.bincount(cell[new], minlength=len(total))
        found[look] = bands(*model_leads(ratio(total, given).reshape(shape)))
    return Standstill(votes=votes, bands=found)
