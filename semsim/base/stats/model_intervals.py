"""Intervals of rank correlations over few models, from formulas that a simulation bears out.

What they say is about other models of the kind that was studied: the models are the sample. Ranks
see no monotone scale, so the normal pairs behind the formulas stand for every pair of scales that
turns into them. `python -m benchmarks.statistics` measures how often they hold the true value.
"""

import numpy as np
import scipy

from semsim.base.stats.intervals import FEWEST, Z

_FARTHEST = 40.0  # standard errors: further out a p is below the smallest float
_ZERO = 1e-12  # equal correlations may differ by rounding
Ends = tuple[float, float]


def bonett_wright(rho: float, n: int, z: float = Z) -> Ends | None:
    """Interval of Spearman's ρ over `n` models, or None below `FEWEST` models.

    Bonett and Wright 2000, "Sample size requirements for estimating Pearson, Kendall and
    Spearman correlations": Fisher's z with variance (1 + ρ²/2) / (n − 3). z: 1.96 gives 95 %.
    Fisher's z of 1 is infinite: the interval of ρ = 1 goes from the lower end of the next ρ below
    it, of one swap of neighbours, to 1; so does that of a ρ between both, which takes ties; that of
    −1 likewise.
    """
    if n < FEWEST:
        return None
    most = _next_to_one(n)
    held = min(max(rho, -most), most)
    centre, half = np.arctanh(held), z * np.sqrt((1 + held**2 / 2) / (n - 3))
    low = -1.0 if rho < -most - _ZERO else float(np.tanh(centre - half))
    high = 1.0 if rho > most + _ZERO else float(np.tanh(centre + half))
    return low, high


def kendall_score(tau: float, n: int) -> Ends | None:
    """95 % interval of Kendall's τ over `n` models, or None below `FEWEST` models.

    All τ from which the one that was seen is at most 1.96 standard errors away, with the standard
    error that this τ would have, as in Wilson's interval of a share; so there is one at ±1, too.
    Less half of the step from one value of τ to the next (Kendall and Gibbons 1990, "Rank
    Correlation Methods", on continuity).
    """
    if n < FEWEST:
        return None
    return _lowest_tau(tau, n), -_lowest_tau(-tau, n)


def kendall_variance(tau: float, n: int) -> float:
    """Variance of Kendall's τ over `n` normal pairs whose true value is `tau`.

    Esscher 1924, "On a method of determining correlation from the ranks of the variates".
    """
    r = np.sin(np.pi * tau / 2)
    shared = 1 / 9 - (2 / np.pi * np.arcsin(r / 2)) ** 2
    return float(2 / (n * (n - 1)) * (1 - tau**2 + 2 * (n - 2) * shared))


def difference_interval(
    rho_a: float, rho_b: float, rho_ab: float, n: int, z: float = Z
) -> Ends | None:
    """Interval of ρ of a with people minus ρ of b with people, or None below `FEWEST` models.

    rho_ab: ρ of a with b, as both are ranked over the same models.
    Zou 2007, "Toward using confidence intervals to compare correlations": how far the interval of
    either ρ reaches, joined by how far the two go together. That is a formula of Pearson's
    correlations which n models estimate badly, so it counts for (n − 4) / n of what it says.
    """
    first, second = bonett_wright(rho_a, n, z), bonett_wright(rho_b, n, z)
    if first is None or second is None:
        return None
    together = _together(rho_a, rho_b, rho_ab) * (n - 4) / n
    below = _join(rho_a - first[0], second[1] - rho_b, together)
    above = _join(first[1] - rho_a, rho_b - second[0], together)
    return rho_a - rho_b - below, rho_a - rho_b + above


def difference_p(rho_a: float, rho_b: float, rho_ab: float, n: int) -> float:
    """Two-sided p of "a and b are correlated with people alike"; NaN below `FEWEST` models.

    The level at which `difference_interval` just reaches 0: p is below 0.05 where the 95 %
    interval leaves 0 out, and only there.
    """
    if n < FEWEST:
        return np.nan
    lower, upper = sorted((rho_a, rho_b))

    def low(z: float) -> float:
        ends = difference_interval(upper, lower, rho_ab, n, z)
        return np.nan if ends is None else ends[0]

    if low(0.0) <= _ZERO:  # alike, or 1 and the next below it
        return 1.0
    far = _FARTHEST if low(_FARTHEST) > 0 else scipy.optimize.brentq(low, 0.0, _FARTHEST)
    return float(2 * scipy.stats.norm.sf(far))


def _next_to_one(n: int) -> float:
    """The largest ρ below 1 of `n` models without ties: two neighbours change places."""
    return 1 - 12 / (n * (n**2 - 1))


def _lowest_tau(tau: float, n: int) -> float:
    step = 2 / (n * (n - 1))

    def beyond(true: float) -> float:
        return tau - true - step - Z * np.sqrt(max(0.0, kendall_variance(true, n)))

    return -1.0 if beyond(-1.0) <= 0 else float(scipy.optimize.brentq(beyond, -1.0, tau))


def _together(rho_a: float, rho_b: float, rho_ab: float) -> float:
    """The correlation of two correlations that share a side; 0 where one of them is ±1."""
    spread = (1 - rho_a**2) * (1 - rho_b**2)
    if spread <= _ZERO:
        return 0.0
    left = 1 - rho_a**2 - rho_b**2 - rho_ab**2
    found = ((rho_ab - rho_a * rho_b / 2) * left + rho_ab**3) / spread
    return float(min(max(found, -1.0), 1.0))


def _join(one: float, other: float, together: float) -> float:
    return float(np.sqrt(max(0.0, one**2 + other**2 - 2 * together * one * other)))
