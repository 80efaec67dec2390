"""Does a metric rank models as people do?"""

from dataclasses import dataclass

import numpy as np
import scipy

from semsim.base.errors import DataError
from semsim.base.stats.model_intervals import bonett_wright, kendall_score
from semsim.base.words import counted

FEW_MODELS = 10  # below this a rank correlation can hardly tell metrics apart
_CELLS = 250_000  # of a table of pairs held at once: what a processor's cache holds


@dataclass(frozen=True, kw_only=True)
class RankAgreement:
    """Rank correlations of a metric with people over `n` models.

    rho, tau: Spearman's ρ and Kendall's τ-b; positive agrees with people.
    rho_interval, tau_interval: 95 % over models, see `bonett_wright` and `kendall_score`; None
        below six models.
    undefined: why there is no number, or None where there is.
    """

    n: int
    rho: float | None = None
    tau: float | None = None
    rho_interval: tuple[float, float] | None = None
    tau_interval: tuple[float, float] | None = None
    undefined: str | None = None


def rank_agreement(human: np.ndarray, metric: np.ndarray) -> RankAgreement:
    """Compute how well `metric` ranks models the way people do.

    human: (M,), how much people recognise in each model's reconstructions; higher is more.
    metric: (M,), its value for each model, oriented so that higher is more leakage, too; infinite
        values rank last or first.
    Undefined, with the reason, for fewer than three models, a missing value, or a constant.
    Raises `DataError` where the two differ in length.
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

    x, y: (B, M), or (1, M) to be used for every row. Returns (B,); NaN where a row is constant or
    lacks a value. Tied values share their mean rank.
    """
    return pearson_rows(scipy.stats.rankdata(x, axis=1), scipy.stats.rankdata(y, axis=1))


def pearson_rows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Pearson's r of each row of `x` with the same row of `y`: Spearman's ρ where they are ranks.

    x, y: (B, M), or (1, M) to be used for every row. Returns (B,); NaN where a row is constant or
    lacks a value.
    """
    first, second = _centred(x), _centred(y)
    spread = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    return _ratio((first * second).sum(axis=1), spread)


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
    return _ratio((weights * first * second).sum(axis=1), spread)


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
    return _ratio(agreeing, np.sqrt(in_x * in_y))


def kendall_rows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Kendall's τ-b of each row of `x` with the same row of `y`.

    x, y: (B, M), or (1, M) to be used for every row. Returns (B,); NaN where a row is constant or
    lacks a value.
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
    return np.where(missing, np.nan, _ratio(agreeing, np.sqrt(untied)))


def _order_of_pairs(values: np.ndarray) -> np.ndarray:
    """(B, M (M - 1) / 2) int8: 1, 0 or -1 as the first of a pair is larger, equal or smaller."""
    i, j = np.triu_indices(values.shape[1], 1)
    first, second = values[:, i], values[:, j]
    return (first > second).view(np.int8) - (first < second).view(np.int8)


def _centred(ranks: np.ndarray) -> np.ndarray:
    return ranks - ranks.mean(axis=1, keepdims=True)


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)


def _why_undefined(people: np.ndarray, values: np.ndarray) -> str | None:
    if len(people) < 3:
        return f"{counted(len(people), 'model')}; a ranking needs at least 3"
    for side, name in ((people, "people"), (values, "metric")):
        if np.isnan(side).any():
            return f"{name}: {counted(int(np.isnan(side).sum()), 'model')} without a value"
        if (side == side[0]).all():
            return f"{name}: the same value for every model"
    return None
