"""Ranks of models, and of images: how stable they are, and where metrics and people part."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy

from semsim.base.metric_spec import MetricSpec
from semsim.base.stats.evidence import Evidence
from semsim.base.stats.grouping import Layout
from semsim.base.stats.intervals import FEWEST
from semsim.base.stats.measures import Measure, sign_of
from semsim.base.stats.resampling import interval
from semsim.base.stats.result import DISAGREEMENT_COLUMNS, STABILITY_COLUMNS


def stability_table(measures: list[Measure], layout: Layout) -> pd.DataFrame:
    """The rank of every model by people and by each metric, columns `STABILITY_COLUMNS`.

    Rank 1 leaks most; tied models share their mean rank. low and high: 95 % range under the
    cluster bootstrap over originals, NaN where these are fewer than `FEWEST`, and for metrics of
    sets, which no resample changes. A model without a value has no rank.
    """
    tables = [_ranks(measure, layout) for measure in measures]
    return pd.concat(tables, ignore_index=True)[list(STABILITY_COLUMNS)]


def disagreement_table(
    specs: Sequence[MetricSpec], evidence: Evidence, human: np.ndarray
) -> pd.DataFrame:
    """Every image by each metric of images, beside people: columns `DISAGREEMENT_COLUMNS`.

    human: (R,), the means of `response_by`. Both sides as shares of a ranking of all images
    that have both, ties sharing their mean rank. A gap of 1: the metric says it leaks most where
    people recognise least; -1: the other way round. row is a row of `evidence.images`.
    """
    tables = [_gaps(spec, evidence, human) for spec in specs if spec.per_image]
    if not tables:
        return pd.DataFrame(columns=list(DISAGREEMENT_COLUMNS))
    return pd.concat(tables, ignore_index=True)


def _ranks(measure: Measure, layout: Layout) -> pd.DataFrame:
    has_value = ~np.isnan(measure.means)
    found = np.full((3, layout.n_models), np.nan)
    found[0, has_value] = scipy.stats.rankdata(-measure.oriented[has_value])
    if layout.n_originals >= FEWEST and measure.of_images:
        drawn = scipy.stats.rankdata(-measure.oriented_resampled[:, has_value], axis=1)
        found[1:, has_value] = np.array([interval(column) for column in drawn.T]).reshape(-1, 2).T
    return layout.models[["label", "model_key"]].assign(
        measure=measure.name, title=measure.title, rank=found[0], low=found[1], high=found[2]
    )


def _gaps(spec: MetricSpec, evidence: Evidence, human: np.ndarray) -> pd.DataFrame:
    values = evidence.scores[spec.name]
    rows = np.flatnonzero(~np.isnan(values) & ~np.isnan(human))
    people, metric = _share(human[rows]), _share(sign_of(spec) * values[rows])
    columns: dict[str, Any] = {
        "metric": spec.name,
        "row": rows,
        "human": human[rows],
        "value": values[rows],
        "human_share": people,
        "metric_share": metric,
        "gap": metric - people,
    }
    return pd.DataFrame(columns)


def _share(values: np.ndarray) -> np.ndarray:
    """(N,) in [0, 1]: 0 the smallest, 1 the largest; ties share their mean."""
    return (scipy.stats.rankdata(values) - 1) / max(1, len(values) - 1)
