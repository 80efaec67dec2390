"""Whether one metric agrees with people better than another."""

import itertools
from typing import Any

import numpy as np
import pandas as pd

from semsim.analysis.correlation import rank_agreement, spearman_rows
from semsim.analysis.measures import Measure, both_have
from semsim.analysis.resampling import Resamples, interval
from semsim.analysis.result import DIFFERENCE_COLUMNS

_ZERO = 1e-12  # equal correlations may differ by rounding


def difference_table(people: Measure, metrics: list[Measure], resamples: Resamples) -> pd.DataFrame:
    """Every two metrics: ρ of the first minus ρ of the second, columns `DIFFERENCE_COLUMNS`.

    Over the models that people and both metrics rank. The interval and p are of a paired bootstrap
    over models: both metrics see the same resamples. p_holm is corrected for all pairs.
    """
    rows = [_row(people, a, b, resamples) for a, b in itertools.combinations(metrics, 2)]
    table = pd.DataFrame(rows).reindex(columns=list(DIFFERENCE_COLUMNS))
    table["p_holm"] = holm(table["p"].to_numpy(dtype=float))
    return table


def holm(p: np.ndarray) -> np.ndarray:
    """p of several tests corrected for their number; NaN stays and does not count.

    Holm 1979, "A simple sequentially rejective multiple test procedure".
    """
    corrected = np.full(len(p), np.nan)
    order = np.argsort(p)[: int((~np.isnan(p)).sum())]  # NaN is sorted last
    steps = p[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return corrected


def _row(people: Measure, a: Measure, b: Measure, resamples: Resamples) -> dict[str, Any]:
    models = both_have([people, a, b])
    x, *sides = (measure.oriented[models] for measure in (people, a, b))
    found = [rank_agreement(x, side) for side in sides]
    row: dict[str, Any] = {
        **{"metric_a": a.name, "title_a": a.title, "metric_b": b.name, "title_b": b.title},
        "n": len(models),
        "undefined": found[0].undefined or found[1].undefined,
    }
    if found[0].rho is None or found[1].rho is None:
        return row
    picks = resamples.picks(len(models))
    first, second = (spearman_rows(x[picks], side[picks]) for side in sides)
    low, high = interval(first - second)
    difference = found[0].rho - found[1].rho
    return {**row, "difference": difference, "low": low, "high": high, "p": _p(first - second)}


def _p(draws: np.ndarray) -> float:
    """Two-sided bootstrap p: twice the smaller share of resamples on one side of 0."""
    draws = draws[~np.isnan(draws)]
    if not len(draws):
        return np.nan
    fewer = min((draws <= _ZERO).sum(), (draws >= -_ZERO).sum())
    return float(min(1.0, 2 * (fewer + 1) / (len(draws) + 1)))
