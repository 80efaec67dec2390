"""How often chance alone ranks models as well: permutation tests of rank correlations."""

import itertools
from dataclasses import dataclass
from functools import cache

import numpy as np

from semsim.analysis.correlation import kendall_rows, spearman_rows
from semsim.analysis.resampling import Resamples

EXACT_UP_TO = 8  # models: 8! = 40,320 orders
_SLACK = 1e-12  # two orders of the same correlation may differ by rounding


@dataclass(frozen=True, kw_only=True)
class PermutationP:
    """Two-sided p of ρ and of τ-b; kind is "exact" or "Monte Carlo"."""

    rho: float
    tau: float
    kind: str


def permutation_p(x: np.ndarray, y: np.ndarray, resamples: Resamples) -> PermutationP:
    """Two-sided p: the share of orders of `x` that correlate with `y` at least as strongly.

    x, y: (n,), not constant. Up to `EXACT_UP_TO` models all orders are counted; above it the
    seeded shuffles, with (1 + count) / (1 + shuffles) so that p is never 0 (Phipson and Smyth
    2010, "Permutation p-values should never be zero").
    """
    exact = len(x) <= EXACT_UP_TO
    orders = _all_orders(len(x)) if exact else resamples.shuffles(len(x))
    extra = 0 if exact else 1
    p = {}
    for name, correlate in (("rho", spearman_rows), ("tau", kendall_rows)):
        seen = abs(correlate(x[None], y[None])[0])
        as_strong = np.abs(correlate(x[orders], y[None])) >= seen - _SLACK
        p[name] = float((as_strong.sum() + extra) / (len(orders) + extra))
    return PermutationP(**p, kind="exact" if exact else "Monte Carlo")


@cache
def _all_orders(n: int) -> np.ndarray:
    return np.array(list(itertools.permutations(range(n))))
