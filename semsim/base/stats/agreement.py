"""Agreement of each metric with people on the ranking of models, and its certainty."""

import itertools
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import scipy

from semsim.base.stats.correlation import (
    kendall_rows,
    pearson_rows,
    rank_agreement,
    spearman_rows,
)
from semsim.base.stats.intervals import too_few
from semsim.base.stats.measures import Measure, both_have
from semsim.base.stats.resampling import FEWEST_BOOTSTRAPPED, Resamples, varied_interval
from semsim.base.stats.result import AGREEMENT_COLUMNS

EXACT_UP_TO = 8  # models: 8! = 40,320 orders
_SLACK = 1e-12  # two orders of the same correlation may differ by rounding
_CORRELATIONS = (("rho", spearman_rows), ("tau", kendall_rows))


@dataclass(frozen=True, kw_only=True)
class PermutationP:
    """Two-sided p of ρ and of τ-b; kind is "exact" or "Monte Carlo"."""

    rho: float
    tau: float
    kind: str


def agreement_table(
    people: Measure, metrics: list[Measure], labels: list[str], resamples: Resamples
) -> pd.DataFrame:
    """One row a metric, the one that agrees best first; columns `AGREEMENT_COLUMNS`.

    labels: what each model is called. A model counts for a metric where both people and the metric
    have a value. A metric of sets is held fixed in the cluster bootstrap: its value for resampled
    images is not known. That bootstrap adds the noise of the images once more, so its ranges lean
    towards 0 where models lie close together: they show how steady a ranking is and are no
    confidence intervals.
    """
    rows = [agreement_row(people, metric, labels, resamples) for metric in metrics]
    table = pd.DataFrame(rows).reindex(columns=list(AGREEMENT_COLUMNS))
    return best_first(table)


def best_first(table: pd.DataFrame) -> pd.DataFrame:
    """The rows by ρ, the largest first; those with a mark below all others."""
    marked, rho = table["mark"].ne("").to_numpy(), table["rho"].to_numpy(dtype=float)
    return table.iloc[np.lexsort((-rho, marked))].reset_index(drop=True)


def agreement_row(
    people: Measure, metric: Measure, labels: list[str], resamples: Resamples
) -> dict[str, Any]:
    """One row of `agreement_table`; only n and the reason where there is no correlation."""
    models = both_have([people, metric])
    x, y = people.oriented[models], metric.oriented[models]
    found = rank_agreement(x, y)
    row: dict[str, Any] = {
        "metric": metric.name,
        "title": metric.title,
        "mark": metric.mark,
        "n": found.n,
        "undefined": found.undefined,
    }
    if found.rho is None or found.tau is None:
        return row
    rho, tau = (ends or (np.nan, np.nan) for ends in (found.rho_interval, found.tau_interval))
    p = permutation_p(x, y, resamples)
    return {
        **row,
        **{"rho": found.rho, "tau": found.tau},
        **{"abs_rho": abs(found.rho), "abs_tau": abs(found.tau)},
        **{"p_rho": p.rho, "p_tau": p.tau, "p_kind": p.kind},
        **{"rho_bw_low": rho[0], "rho_bw_high": rho[1]},
        **{"tau_score_low": tau[0], "tau_score_high": tau[1]},
        "interval_undefined": too_few(found.n, "model"),
        **_over_models(x, y, resamples),
        **_over_images(people, metric, models, resamples.originals.shape[1]),
        **leave_one_out(x, y, [labels[model] for model in models]),
    }


def _over_models(x: np.ndarray, y: np.ndarray, resamples: Resamples) -> dict[str, Any]:
    """Intervals of the bootstrap over models, and how many resamples had no ranking."""
    if len(x) < FEWEST_BOOTSTRAPPED:
        why = f"{len(x)} models; a bootstrap over models needs at least {FEWEST_BOOTSTRAPPED}"
        return {"models_undefined": why}
    picks = resamples.picks(len(x))
    return _intervals(x[picks], y[picks], "models", resamples.n)


def _over_images(people: Measure, metric: Measure, models: np.ndarray, n: int) -> dict[str, Any]:
    """Ranges of the cluster bootstrap over `n` originals."""
    if (few := too_few(n)) is not None:
        return {"images_undefined": few}
    x, y = people.oriented_resampled[:, models], metric.oriented_resampled[:, models]
    return _intervals(x, y, "images", len(x))


def _intervals(x: np.ndarray, y: np.ndarray, kind: str, asked: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, correlate in _CORRELATIONS:
        draws = np.full(asked, np.nan)
        draws[: len(x)] = correlate(x, y)
        low, high, why = varied_interval(draws)
        found |= {f"{name}_{kind}_low": low, f"{name}_{kind}_high": high}
        # ρ and τ are flat, or without a ranking, in the same resamples.
        found |= {f"{kind}_undefined": why, f"left_out_{kind}": int(np.isnan(draws).sum())}
    return found


def permutation_p(x: np.ndarray, y: np.ndarray, resamples: Resamples) -> PermutationP:
    """Two-sided p: the share of orders of `x` that correlate with `y` at least as strongly.

    x, y: (n,), not constant. Up to `EXACT_UP_TO` models all orders are counted; above it the
    seeded shuffles, with (1 + count) / (1 + shuffles) so that p is never 0 (Phipson and Smyth
    2010, "Permutation p-values should never be zero").
    """
    exact = len(x) <= EXACT_UP_TO
    orders = _all_orders(len(x)) if exact else resamples.shuffles(len(x))
    extra = 0 if exact else 1
    first, second = scipy.stats.rankdata(np.stack([x, y]), axis=1)  # another order has these, too
    p = {}
    for name, correlate in (("rho", pearson_rows), ("tau", kendall_rows)):
        seen = abs(correlate(first[None], second[None])[0])
        as_strong = np.abs(correlate(first[orders], second[None])) >= seen - _SLACK
        p[name] = float((as_strong.sum() + extra) / (len(orders) + extra))
    return PermutationP(**p, kind="exact" if exact else "Monte Carlo")


@cache
def _all_orders(n: int) -> np.ndarray:
    return np.array(list(itertools.permutations(range(n))))


def leave_one_out(x: np.ndarray, y: np.ndarray, labels: list[str]) -> dict[str, Any]:
    """The range of ρ and τ when each of n models in turn is left out, and whose absence makes it.

    x, y: (n,). The models named are those whose absence makes ρ smallest and largest, and those
    without which there is no ranking, since all others have one value. Empty below four models, and
    where no ranking is left.
    """
    n = len(x)
    if n < 4:
        return {}
    others = np.array([np.delete(np.arange(n), one) for one in range(n)])
    rho, tau = (correlate(x[others], y[others]) for correlate in (spearman_rows, kendall_rows))
    if np.isnan(rho).all():
        return {}
    return {
        **{"loo_rho_min": float(np.nanmin(rho)), "loo_rho_max": float(np.nanmax(rho))},
        **{"loo_tau_min": float(np.nanmin(tau)), "loo_tau_max": float(np.nanmax(tau))},
        "loo_model_min": labels[int(np.nanargmin(rho))],
        "loo_model_max": labels[int(np.nanargmax(rho))],
        "loo_undefined": ", ".join(labels[one] for one in np.flatnonzero(np.isnan(rho))) or None,
    }
