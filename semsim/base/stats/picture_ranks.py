"""Does a metric rank pictures as people do? Where models are too few to be ranked, pictures are."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from semsim.base.metric_spec import MetricSpec
from semsim.base.stats.correlation import weighted_kendall, weighted_spearman
from semsim.base.stats.evidence import Evidence
from semsim.base.stats.grouping import Layout, layout_of
from semsim.base.stats.human import human_score
from semsim.base.stats.intervals import error, fisher, why_none
from semsim.base.stats.measures import sign_of
from semsim.base.stats.result import AnalysisSettings

_CELLS = 2**16  # weights of images looked at together: what a core's cache holds
_FEWEST = 3  # pictures that make a ranking
# One row a metric of images.
PICTURE_COLUMNS = (
    *("metric", "title", "n", "n_originals", "rho", "rho_low", "rho_high"),
    *("tau", "tau_low", "tau_high", "interval_undefined", "undefined"),
)
_CORRELATIONS = (("rho", weighted_spearman), ("tau", weighted_kendall))
Correlate = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def picture_agreement(
    evidence: Evidence, specs: Sequence[MetricSpec], settings: AnalysisSettings
) -> pd.DataFrame:
    """Spearman's ρ and Kendall's τ-b with people over pictures: columns `PICTURE_COLUMNS`.

    One row a metric of images that has scores, positive where it agrees. A picture counts where
    both people, by `settings.headline`, and the metric have a value. Pictures of one original are
    not independent, so originals are left out with all their pictures. Intervals are `fisher`.
    """
    layout = layout_of(evidence.images)
    human = human_score(evidence, settings.headline)
    rows = [
        _row(spec, sign_of(spec) * evidence.scores[spec.name], human, layout)
        for spec in specs
        if spec.per_image and spec.name in evidence.scores
    ]
    return pd.DataFrame(rows).reindex(columns=list(PICTURE_COLUMNS))


def over_originals(
    correlate: Correlate,
    values: np.ndarray,
    human: np.ndarray,
    layout: Layout,
) -> np.ndarray:
    """(1 + G,): a correlation over the images that have both, by the weights `layout.left_out`.

    correlate: as `weighted_spearman`. values, human: (R,), NaN where there is none.
    """
    used = ~np.isnan(values) & ~np.isnan(human)
    weights = layout.left_out
    draws = np.full(len(weights), np.nan)
    step = max(1, _CELLS // max(1, int(used.sum())))
    for start in range(0, len(weights), step):
        part = slice(start, start + step)
        each = weights[part][:, layout.original[used]]
        draws[part] = correlate(values[used], human[used], each)
    return draws


def _row(spec: MetricSpec, values: np.ndarray, human: np.ndarray, layout: Layout) -> dict[str, Any]:
    used = ~np.isnan(values) & ~np.isnan(human)
    row: dict[str, Any] = {
        **{"metric": spec.name, "title": spec.title, "n": int(used.sum())},
        "n_originals": len(np.unique(layout.original[used])),
        "undefined": _why_undefined(values[used], human[used]),
    }
    if row["undefined"] is not None:
        return row
    for name, correlate in _CORRELATIONS:
        draws = over_originals(correlate, values, human, layout)
        spread = error(draws, row["n_originals"])
        low, high = fisher(draws[0], spread, row["n_originals"])
        row |= {name: float(draws[0]), f"{name}_low": float(low), f"{name}_high": float(high)}
        row["interval_undefined"] = why_none(row["n_originals"], float(spread))
    return row


def _why_undefined(values: np.ndarray, human: np.ndarray) -> str | None:
    if len(values) < _FEWEST:
        return f"a ranking needs at least {_FEWEST} pictures; there are {len(values)}"
    for side, name in ((human, "people"), (values, "metric")):
        if len(np.unique(side)) == 1:
            return f"{name}: the same value for every picture"
    return None
