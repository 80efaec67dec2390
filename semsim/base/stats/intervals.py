"""The one rule for 95% intervals: how far a number moves when each original is left out in turn.

What people say of pictures of one original goes together, so originals are the units, not pictures
or votes. The jackknife over them needs no random numbers, and Student's t stands for how badly few
of them tell their own spread. `python -m benchmarks.coverage` measures how often each printed
interval holds the true value.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import gammaincinv, ndtri, stdtrit

from semsim.base.words import counted, percent

FEWEST = 6  # units: with fewer there is no interval
RULE = (
    f"Intervals are at 95%, from {FEWEST} originals on: each original is left out in turn "
    "(jackknife), with Student's t of the originals; shares and AUCs have Wilson's score interval "
    "with as many trials as that error is worth."
)
_UPPER = 0.975
Z = float(ndtri(_UPPER))  # for formulas whose variance is known
_MOST = 250  # groups of originals: more say hardly more and cost time
_PRIOR = 2  # originals, each one trial, that temper a measured design effect
_RARE = 3.0  # trials of the rarer outcome, up to which the end is Poisson's
_TAIL = 0.05  # of Poisson's end
_ZERO = 1e-9  # sums that are added in another order differ by less
Ends = tuple[np.ndarray, np.ndarray]


def left_out(n: int) -> np.ndarray:
    """(1 + G, n): how often each of n originals counts: once, then all but one group of them.

    A group is one original, or of more than 250 as many as make 250 groups, dealt at random.
    """
    groups = min(n, _MOST)
    weights = np.ones((1 + groups, n))
    dealt = np.arange(n) if n <= _MOST else np.random.default_rng(0).permutation(n)
    weights[1 + dealt % max(groups, 1), np.arange(n)] = 0
    return weights


def error(values: np.ndarray, units: np.ndarray | int) -> np.ndarray:
    """(...) the standard error of a statistic, by the jackknife about its value.

    Args:
        values: (1 + G, ...), of the rows of `left_out`.
        units: (...), the originals it hangs on. NaN where it lacks a number. Efron and Tibshirani
            1993, "An Introduction to the Bootstrap", 11.5.
    """
    k = np.clip(units, 1, _MOST)
    with np.errstate(invalid="ignore"):
        moved = ((values[1:] - values[0]) ** 2).sum(axis=0)
    return np.asarray(np.where(np.isfinite(moved), np.sqrt((k - 1) / k * moved), np.nan))


def student(value: np.ndarray, spread: np.ndarray, units: np.ndarray | int) -> Ends:
    """`value` ± Student's t of the units times its error, `spread`; all of shape (n,), or numbers.

    NaN below `FEWEST` units, or where no unit changes the value: that is no certainty.
    """
    reach = _t(units) * np.where(np.asarray(spread) > _ZERO, spread, np.nan)
    return value - reach, value + reach


def fisher(rho: np.ndarray, spread: np.ndarray, units: np.ndarray | int) -> Ends:
    """As `student`, of (n,) correlations, on the scale of Fisher's z."""
    inside = np.where(np.abs(rho) < 1 - _ZERO, rho, np.nan)
    low, high = student(np.arctanh(inside), spread / (1 - inside**2), units)
    return np.tanh(low), np.tanh(high)


def share_ends(share: np.ndarray, spread: np.ndarray, units: np.ndarray | int) -> Ends:
    """(n,) each: `wilson` of a mean of numbers in [0, 1] whose error is `spread`.

    It counts as many trials as units divided by the design effect, the squared error over that of
    one trial a unit. Few units measure it badly, so two more of which it is 1 are added. Franco,
    Little, Louis and Slud 2019, "Comparative study of confidence intervals for proportions in
    complex sample surveys".
    """
    binomial = share * (1 - share)
    alone = np.ones(np.shape(binomial))
    effect = np.divide(spread**2 * (units - 1), binomial, out=alone, where=binomial > _ZERO)
    effect = np.where(np.isnan(effect), 1.0, effect)
    return wilson(share, units * (units + _PRIOR) / (units * effect + _PRIOR), units)


def crossed_ends(hits: np.ndarray, units: Sequence[np.ndarray]) -> tuple[float, float]:
    """The ends of `share_ends` of a mean of (N,) hits, 0 to 1, whose units are crossed.

    A hit belongs to one unit of each kind, as to a client and a seed; the squared errors over the
    kinds add up, and each combination counts as a unit. A kind with one unit adds no error. The
    error is as uncertain as the kind with the fewest units makes it: Cameron, Gelbach and Miller
    2011, "Robust inference with multiway clustering".

    Args:
        units: By kind, (N,) names.
    """
    trials = fewest = len(set(zip(*units, strict=True)))
    square = 0.0
    for names in units:
        found, codes = np.unique(names, return_inverse=True)
        if len(found) > 1:
            weights = left_out(len(found))[:, codes]
            square += float(error(weights @ hits / weights.sum(axis=1), len(found))) ** 2
            fewest = min(fewest, len(found))
    wider = stdtrit(fewest - 1, _UPPER) / stdtrit(trials - 1, _UPPER)
    low, high = share_ends(np.array(hits.mean()), np.array(wider * square**0.5), trials)
    return float(low), float(high)


def pairs_ends(share: np.ndarray, spread: np.ndarray, units: np.ndarray | int) -> Ends:
    """(n,) each: `wilson` of a share of pairs, as an AUC is, in as many trials as its error says.

    There are many pairs a unit, so the error is well measured.

    Args:
        units: Of an AUC the originals with the rarer kind of image. Where none of them changes it,
            as at 0 and 1, each is one trial.
    """
    trials = np.full(np.shape(share), units, dtype=float)
    np.divide(share * (1 - share), spread**2, out=trials, where=np.asarray(spread) > _ZERO)
    return wilson(share, trials, units)


def wilson(share: np.ndarray, trials: np.ndarray, units: np.ndarray | int) -> Ends:
    """(n,) each: the ends of the score interval of a share of `trials`, from `FEWEST` units on.

    Wilson 1927 with Student's t of the units. Up to three trials of the rarer outcome the end on
    its side is Poisson's, as Brown, Cai and DasGupta 2001 ("Interval estimation for a binomial
    proportion", 4.1.1) have it: Wilson's own leaves out too many small shares.
    """
    share = np.asarray(share, dtype=float)
    trials = np.where(np.asarray(trials) > 0, trials, np.nan)
    low, high = _lower(share, trials, units), 1 - _lower(1 - share, trials, units)
    return low, high


def _lower(share: np.ndarray, trials: np.ndarray, units: np.ndarray | int) -> np.ndarray:
    far = _t(units) ** 2 / trials
    half = np.sqrt(far * share * (1 - share) + far**2 / 4)
    low = np.maximum((share + far / 2 - half) / (1 + far), 0)  # rounding goes below 0
    count = share * trials
    rare = (count > _ZERO) & (count <= _RARE + _ZERO)
    poisson = gammaincinv(np.where(rare, count, 1.0), _TAIL) / trials
    return np.where(rare, np.minimum(low, poisson) + 0 * far, low)


def _t(units: np.ndarray | int) -> np.ndarray:
    """Student's quantile, NaN below `FEWEST` units."""
    enough = np.asarray(units) >= FEWEST
    return np.where(enough, stdtrit(np.maximum(units, FEWEST) - 1, _UPPER), np.nan)


def of_means(*sides: np.ndarray, noun: str) -> tuple[float, str | None]:
    """Return half of the interval of a mean, or of the difference of two, or NaN and why not.

    Args:
        sides: One or two, (n,) units each. Student's t; of two sides with Welch's error and
            Satterthwaite's degrees of freedom.
        noun: What a unit is called.
    """
    units = min(map(len, sides))
    with np.errstate(invalid="ignore"):
        parts = np.array([side.var(ddof=1) / len(side) if units > 1 else 0.0 for side in sides])
    spread = float(np.sqrt(parts.sum()))
    if (why := why_none(units, spread, noun)) is not None:
        return np.nan, why
    free = parts.sum() ** 2 / sum(parts**2 / np.array([len(side) - 1 for side in sides]))
    return float(stdtrit(free, _UPPER)) * spread, None


def half_words(half: float, why: str | None, digits: int = 3) -> str:
    """Return what `of_means` found in words: " ± 0.031", or ", no interval: …"."""
    return f" ± {half:.{digits}f}" if why is None else f", {why}"


def share_words(share: float, units: int, noun: str = "original") -> str:
    """Return a share of pictures of so many units in words: "60% [32, 83]", or why no interval.

    A unit is one trial of `wilson`, however many pictures it has: their shares differ by no more
    than trials do.
    """
    low, high = wilson(np.array(share), np.array(units), units)
    return percent(share, float(low), float(high), too_few(units, noun))


def too_few(units: int, noun: str = "original") -> str | None:
    """Return why so few units have no interval, or None where they are enough."""
    if units >= FEWEST:
        return None
    return f"no interval: {counted(units, noun)}, fewer than {FEWEST}"


def why_none(units: int, spread: float, noun: str = "original") -> str | None:
    """Return why `student`, `fisher` and `of_means` have no ends, or None where they have."""
    if (few := too_few(units, noun)) is not None:
        return few
    if np.isnan(spread):
        return f"no interval: without some {noun} there is no number"
    return None if spread > _ZERO else f"no interval: no {noun} that is left out changes it"
