"""The lead of the map's best metric over each other one, rows and columns drawn anew.

Cells of one attack, and of one target, are not independent: a sample of the map is a sample of its
attacks and of its targets. As a two-way cluster bootstrap (Owen 2007, "The pigeonhole bootstrap").
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from semsim.analysis.correlation import weighted_spearman
from semsim.analysis.resampling import interval as holding
from semsim.metrics import MetricSpec
from semsim.reporting.notation import interval, number
from semsim.reporting.tables import Table
from semsim.reproduce.simulated_votes import SAYS_NOTHING
from semsim.terminal import rows_of

OK = "ok"  # the status of a cell that has pictures
DRAWS = 2000
_COLUMNS = ["metric", "title", "other", "other_title", "difference", "low", "high"]


def differences(
    cells: pd.DataFrame, specs: Sequence[MetricSpec], draws: int = DRAWS, seed: int = 0
) -> pd.DataFrame:
    """Compare the metric of the highest ρ with each other.

    Args:
        cells: `Map.cells`; those with status "ok" count, where every metric has a number.
        specs: the metrics to compare.
        draws: how often attacks and targets are drawn anew, each with replacement.
        seed: of the draws.

    Returns:
        A row for each other metric, nearest first: metric, title, other, other_title, difference
        of the two ρ, and low and high, the 2.5 and 97.5 percentiles of that difference. Empty
        where fewer than two metrics have a ρ.
    """
    names = [spec.name for spec in specs]
    own = cells[cells["status"] == OK].dropna(subset=["people", *names])
    targets = own["network"] + "/" + own["strategy"]
    weights = _drawn(own["attack"], draws, seed) * _drawn(targets, draws, seed + 1)
    all_once = np.ones((1, len(own)))
    people = own["people"].to_numpy(float)
    found = {}
    for spec in specs:
        sign = 1 if spec.higher_means_more_leakage else -1
        values = sign * own[spec.name].to_numpy(float)
        found[spec.name] = weighted_spearman(people, values, np.concatenate([all_once, weights]))
    titles = {spec.name: spec.title for spec in specs}
    ranked = sorted((n for n in names if np.isfinite(found[n][0])), key=lambda n: -found[n][0])
    rows = []
    for other in ranked[1:]:
        best = ranked[0]
        apart = found[best] - found[other]
        rows.append([best, titles[best], other, titles[other], apart[0], *holding(apart[1:])])
    return pd.DataFrame(rows, columns=_COLUMNS)


def differences_table(found: pd.DataFrame) -> Table:
    """Return `differences` as a table to read."""
    lines = [
        [
            row["title"],
            row["other_title"],
            number(row["difference"], 2),
            interval(row["low"], row["high"]),
        ]
        for row in rows_of(found)
    ]
    return Table(
        name="differences",
        title="Is the best metric ahead by more than chance?",
        caption=(
            "Difference of Spearman's ρ. The range holds 95 % of resamples of attacks and targets; "
            "where it holds 0, chance could do it. The best was picked by the same cells, which no "
            f"range takes in. {SAYS_NOTHING}"
        ),
        frame=found,
        cells=pd.DataFrame(lines, columns=["metric", "ahead of", "by", "range"]),
    )


def _drawn(units: pd.Series, draws: int, seed: int) -> np.ndarray:
    """(draws, N) how often each cell's unit is in a sample of as many units."""
    codes, found = pd.factorize(units)
    n = max(len(found), 1)
    counts = np.random.default_rng(seed).multinomial(n, [1 / n] * n, size=draws)
    return counts[:, codes].astype(float)
