"""Comparison of how well two metrics agree with people."""

import itertools
from typing import Any

import numpy as np
import pandas as pd

from semsim.base.stats.correlation import rank_agreement
from semsim.base.stats.intervals import too_few
from semsim.base.stats.measures import Measure, both_have
from semsim.base.stats.model_intervals import difference_interval, difference_p
from semsim.base.stats.result import DIFFERENCE_COLUMNS


def difference_table(people: Measure, metrics: list[Measure]) -> pd.DataFrame:
    """Every two metrics: ρ of the first minus ρ of the second, columns `DIFFERENCE_COLUMNS`.

    Over the models that people and both metrics rank. p tests that among all models of the kind
    studied both metrics are correlated with people alike; see `difference_p`. p_holm is corrected
    for all pairs that have a p: whether one has depends on the number of models alone.
    """
    rows = [_row(people, a, b) for a, b in itertools.combinations(metrics, 2)]
    table = pd.DataFrame(rows).reindex(columns=list(DIFFERENCE_COLUMNS))
    table["p_holm"] = holm(table["p"].to_numpy(dtype=float))
    return table


def holm(p: np.ndarray) -> np.ndarray:
    """p of several tests, (T,), corrected for their number; NaN stays and does not count.

    Returns (T,) in [0, 1], never below `p`.

    Holm 1979, "A simple sequentially rejective multiple test procedure".
    """
    corrected = np.full(len(p), np.nan)
    order = np.argsort(p)[: int((~np.isnan(p)).sum())]  # NaN is sorted last
    steps = p[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return corrected


def _row(people: Measure, a: Measure, b: Measure) -> dict[str, Any]:
    models = both_have([people, a, b])
    x, *sides = (measure.oriented[models] for measure in (people, a, b))
    found = [rank_agreement(x, side) for side in sides]
    row: dict[str, Any] = {
        **{"metric_a": a.name, "title_a": a.title, "metric_b": b.name, "title_b": b.title},
        "n": len(models),
        "undefined": found[0].undefined or found[1].undefined,
    }
    rho_a, rho_b, rho_ab = (one.rho for one in (*found, rank_agreement(*sides)))
    if rho_a is None or rho_b is None or rho_ab is None:
        return row
    low, high = difference_interval(rho_a, rho_b, rho_ab, len(models)) or (np.nan, np.nan)
    return {
        **row,
        **{"difference": rho_a - rho_b, "low": low, "high": high},
        "p": difference_p(rho_a, rho_b, rho_ab, len(models)),
        "interval_undefined": too_few(len(models), "model"),
    }
