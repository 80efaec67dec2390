"""Comparison of how well two metrics tell images apart: paired, image by image."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from semsim.base.metric_spec import MetricSpec
from semsim.base.stats.evidence import Evidence
from semsim.base.stats.grouping import layout_of
from semsim.base.stats.human import verdict
from semsim.base.stats.intervals import error, student, why_none
from semsim.base.stats.measures import sign_of
from semsim.base.stats.result import AnalysisSettings
from semsim.base.stats.roc import POOLED, WITHIN, contest_of, originals_of_kinds, pooled_auc

# `difference` is the AUC of the metric minus that of the other, on the images both judge.
COLUMNS = (
    *("metric", "title", "scope", "auc", "other_auc", "difference", "low", "high", "n_originals"),
    *("interval_undefined", "undefined"),
)
_NO_CONTEST = "no images of both kinds that both judge"


def auc_differences(
    own: MetricSpec,
    others: Iterable[MetricSpec],
    evidence: Evidence,
    settings: AnalysisSettings,
    scope: str = POOLED,
) -> pd.DataFrame:
    """One row an other metric of images: AUC of `own` less its, columns `COLUMNS`.

    scope: `POOLED`, or `WITHIN` where a metric's scale differs by original, see `scopes_by`.
    Both are of the images both have scores of. The interval is `student`, originals being left out
    of both metrics at once; `interval_undefined` says why there is none. NaN where there is no AUC,
    and `undefined` says why.
    """
    layout = layout_of(evidence.images)
    human = verdict(evidence, settings.headline)
    rows = []
    for other in (spec for spec in others if spec.per_image):
        values = [sign_of(spec) * evidence.scores[spec.name] for spec in (own, other)]
        used = ~np.isnan(values[0]) & ~np.isnan(values[1]) & ~np.isnan(human) & (human != 0.5)
        original = layout.original[used]
        groups = original if scope == WITHIN else np.zeros_like(original)
        seen = human[used] > 0.5
        contests = [contest_of(side[used], seen, groups, original) for side in values]
        row: dict[str, Any] = {"metric": other.name, "title": other.title, "scope": scope}
        if not contests[0].n_groups:
            rows.append({**row, "n_originals": 0, "undefined": _NO_CONTEST})
            continue
        a, b = (pooled_auc(contest, layout.left_out) for contest in contests)
        units = min(originals_of_kinds(contests[0]))
        spread = error(a - b, units)
        low, high = map(float, student(a[0] - b[0], spread, units))
        rows.append(
            {
                **row,
                **{"auc": a[0], "other_auc": b[0], "difference": a[0] - b[0]},
                **{"low": low, "high": high, "n_originals": len(np.unique(original))},
                "interval_undefined": why_none(units, float(spread)),
            }
        )
    return pd.DataFrame(rows).reindex(columns=list(COLUMNS))
