"""Does a metric rank models as people do?"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import ndtr

from semsim.base.errors import DataError
from semsim.base.stats.intervals import FEWEST, Z
from semsim.base.stats.votes import ratio
from semsim.base.words import counted

FEW_MODELS = 10  # below this a rank correlation can hardly tell metrics apart
_CELLS = 250_000  # of a table of pairs held at once: what a processor's cache holds
_FARTHEST = 40.0  # standard errors: further out a p is below the smallest float
_ZERO = 1e-12  # equal correlations may differ by rounding
_MOST_STEPS = 100  # to a crossing, which takes some ten
Ends = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class RankAgreement:
    """Rank correlations of a metric with people over `n` models.

    Attributes:
        rho, tau: Spearman's ρ and Kendall's τ-b; positive agrees with people.
        rho_interval, tau_interval: 95% over models, see `bonett_wright` and `kendall_score`; None
            below six models.
        undefined: Why there is no number, or None where there is.
    """

    n: int
    rho: float | None = None
    tau: float | None = None
    rho_interval: tuple[float, float] | None = None
    tau_interval: tuple[float, float] | None = None
    undefined: str | None = None


def rank_agreement(human: np.ndarray, metric: np.ndarray) -> RankAgreement:
    """Compute how well `metric` ranks models the way people do.

    Undefined, with the reason, for fewer than three models, a missing value, or a constant.

    Args:
        human: (M,), how much people recognise in each model's reconstructions; higher is more.
        metric: (M,), its value for each model, oriented so that higher is more leakage, too;
            infinite values rank last or first.

    Raises:
        DataError: Where the two differ in length.
    """
    people, values = (np.asarray(side, dtype=np.float64) for side in (human, metric))
    if people.ndim != 1 or people.shape != values.shape:
        raise DataError(f"Got {people.shape} human and {values.shape} metric values; need (M,).")
    n = len(people)
    why = _why_undefined(people, values)
    if why is not None:
        return RankAgreement(n=n, undefined=why)
    # Rounded: equal rankings come out as 0.9999999999999999, which is no correlation below 1.
    rho = round(float(spearman_rows(people[None], values[None])[0]), 12)
    tau = float(kendall_rows(people[None], values[None])[0])
    return RankAgreement(
        n=n,
        rho=rho,
        tau=tau,
        rho_interval=bonett_wright(rho, n),
        tau_interval=kendall_score(tau, n),
    )


def spearman_rows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Spearman's ρ of each row of `x` with the same row of `y`.

    Args:
        x, y: (B, M), or (1, M) to be used for every row.

    Returns:
        (B,); NaN where a row is constant or lacks a value. Tied values share their mean rank.
    """
    return pearson_rows(mean_ranks(x), mean_ranks(y))


def mean_ranks(values: np.ndarray) -> np.ndarray:
    """Rank `values`, (M,) or each row of (B, M), from 1 for the smallest; ties share their mean.

    NaN has no rank. Importing `scipy.stats` for the same takes a second and 40 MB.
    """
    return pd.DataFrame(np.atleast_2d(values)).rank(axis=1).to_numpy().reshape(values.shape)


def pearson_rows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Pearson's r of each row of `x` with the same row of `y`: Spearman's ρ where they are ranks.

    Args:
        x, y: (B, M), or (1, M) to be used for every row.

    Returns:
        (B,); NaN where a row is constant or lacks a value.
    """
    first, second = _centred(x), _centred(y)
    spread = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    return ratio((first * second).sum(axis=1), spread)


def weighted_spearman(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(B,) Spearman's ρ of x and y, both (N,), each value as often as `weights`, (B, N), says.

    Tied values share their mean rank; NaN where what is left of x or y is constant.
    """
    total = weights.sum(axis=1, keepdims=True)
    sides = []
    for values in (x, y):
        found, place = np.unique(values, return_inverse=True)
        order = np.argsort(place, kind="stable")
        starts = np.searchsorted(place[order], np.arange(len(found)))
        of_value = np.add.reduceat(weights[:, order], starts, axis=1)
        rank = (of_value.cumsum(axis=1) - of_value / 2)[:, place]
        sides.append(rank - total / 2)  # the mean rank
    first, second = sides
    spread = np.sqrt((weights * first**2).sum(axis=1) * (weights * second**2).sum(axis=1))
    return ratio((weights * first * second).sum(axis=1), spread)


def weighted_kendall(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(B,) Kendall's τ-b of x and y, both (N,), each value as often as `weights`, (B, N), says.

    As of rows in which each pair of values stands so often; two copies of one are tied. NaN where
    what is left of x or y is constant. Holds all N² pairs at once.
    """
    first, second = (
        np.greater.outer(side, side) * 1.0 - np.less.outer(side, side) for side in (x, y)
    )
    agreeing, in_x, in_y = (
        ((weights @ pairs) * weights).sum(axis=1)
        for pairs in (first * second, np.abs(first), np.abs(second))
    )
    return ratio(agreeing, np.sqrt(in_x * in_y))


def kendall_rows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Kendall's τ-b of each row of `x` with the same row of `y`.

    Args:
        x, y: (B, M), or (1, M) to be used for every row.

    Returns:
        (B,); NaN where a row is constant or lacks a value.
    """
    rows = max(len(x), len(y))
    step = max(1, _CELLS // max(1, x.shape[1] ** 2))
    parts = [
        _kendall(*(side if len(side) == 1 else side[start : start + step] for side in (x, y)))
        for start in range(0, rows, step)
    ]
    return np.concatenate(parts) if parts else np.empty(0)


def _kendall(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    first, second = _order_of_pairs(x), _order_of_pairs(y)
    untied = np.count_nonzero(first, axis=1) * np.count_nonzero(second, axis=1)
    agreeing = np.multiply(first, second).sum(axis=1, dtype=np.int64)
    missing = np.isnan(x).any(axis=1) | np.isnan(y).any(axis=1)
    return np.where(missing, np.nan, ratio(agreeing, np.sqrt(untied)))


def _order_of_pairs(values: np.ndarray) -> np.ndarray:
    """(B, M (M - 1) / 2) int8: 1, 0 or -1 as the first of a pair is larger, equal or smaller."""
    i, j = np.triu_indices(values.shape[1], 1)
    first, second = values[:, i], values[:, j]
    return (first > second).view(np.int8) - (first < second).view(np.int8)


def _centred(ranks: np.ndarray) -> np.ndarray:
    return ranks - ranks.mean(axis=1, keepdims=True)


def _why_undefined(people: np.ndarray, values: np.ndarray) -> str | None:
    if len(people) < 3:
        return f"{counted(len(people), 'model')}; a ranking needs at least 3"
    for side, name in ((people, "people"), (values, "metric")):
        if np.isnan(side).any():
            return f"{name}: {counted(int(np.isnan(side).sum()), 'model')} without a value"
        if (side == side[0]).all():
            return f"{name}: the same value for every model"
    return None


def bonett_wright(rho: float, n: int, z: float = Z) -> Ends | None:
    """Interval of Spearman's ρ over `n` models, or None below `FEWEST` models.

    Bonett and Wright 2000, "Sample size requirements for estimating Pearson, Kendall and Spearman
    correlations": Fisher's z with variance (1 + ρ²/2) / (n − 3).

    Args:
        z: 1.96 gives 95%. Fisher's z of 1 is infinite: the interval of ρ = 1 goes from the lower
            end of the next ρ below it, of one swap of neighbours, to 1; so does that of a ρ between
            both, which takes ties; that of −1 likewise.
    """
    if n < FEWEST:
        return None
    most = _next_to_one(n)
    held = min(max(rho, -most), most)
    centre, half = np.arctanh(held), z * np.sqrt((1 + held**2 / 2) / (n - 3))
    low = -1.0 if rho < -most - _ZERO else float(np.tanh(centre - half))
    high = 1.0 if rho > most + _ZERO else float(np.tanh(centre + half))
    return low, high


def interval_note(rho: float, n: int, of: str = "with ties") -> str | None:
    """Return what stands beside `bonett_wright` where |ρ| lies between 1 and the next, else None.

    Args:
        rho, n: As of `bonett_wright`.
        of: Why it lies there.
    """
    between = n >= FEWEST and _next_to_one(n) + _ZERO < abs(rho) < 1 - _ZERO
    return f"{of}: the interval of |ρ| = 1" if between else None


def kendall_score(tau: float, n: int) -> Ends | None:
    """95% interval of Kendall's τ over `n` models, or None below `FEWEST` models.

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

    Args:
        rho_ab: Ρ of a with b, as both are ranked over the same models. Zou 2007, "Toward using
            confidence intervals to compare correlations": how far the interval of either ρ reaches,
            joined by how far the two go together. That is a formula of Pearson's correlations which
            n models estimate badly, so it counts for (n − 4) / n of what it says.
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

    The level at which `difference_interval` just reaches 0: p is below 0.05 where the 95%
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
    far = _FARTHEST if low(_FARTHEST) > 0 else _crossing(low, 0.0, _FARTHEST)
    return float(2 * ndtr(-far))


def _next_to_one(n: int) -> float:
    """The largest ρ below 1 of `n` models without ties: two neighbours change places."""
    return 1 - 12 / (n * (n**2 - 1))


def _lowest_tau(tau: float, n: int) -> float:
    step = 2 / (n * (n - 1))

    def beyond(true: float) -> float:
        return tau - true - step - Z * np.sqrt(max(0.0, kendall_variance(true, n)))

    return -1.0 if beyond(-1.0) <= 0 else _crossing(beyond, -1.0, tau)


def _crossing(of: Callable[[float], float], above: float, below: float) -> float:
    """Return where `of`, positive at `above` and not at `below`, is 0, by the Illinois rule."""
    here, at_above, at_below, kept = below, of(above), of(below), ""
    for _ in range(_MOST_STEPS):
        before, here = here, (above * at_below - below * at_above) / (at_below - at_above)
        value = of(here)
        if value == 0 or abs(here - before) < _ZERO:
            break
        if value > 0:
            above, at_above = here, value
            at_below = at_below / 2 if kept == "below" else at_below
            kept = "below"
        else:
            below, at_below = here, value
            at_above = at_above / 2 if kept == "above" else at_above
            kept = "above"
    return float(here)


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
