"""Tables of models: what people and metrics say of each, and under each human score."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from semsim.base.metric_spec import MetricSpec
from semsim.base.stats.correlation import rank_agreement
from semsim.base.stats.evidence import Evidence
from semsim.base.stats.grouping import Layout
from semsim.base.stats.human import judged, rules_of
from semsim.base.stats.intervals import share_ends, student
from semsim.base.stats.measures import Measure, both_have, metric_measure, people_measure
from semsim.base.stats.resampling import resample
from semsim.base.stats.result import BACKBONE_COLUMNS, RULE_COLUMNS


def model_table(
    people: Measure, metrics: list[Measure], human: np.ndarray, layout: Layout
) -> pd.DataFrame:
    """One row a model: `MODEL_COLUMNS`, then four columns a metric.

    human: (R,), the headline score, NaN where undecided. Intervals are `share_ends` of shares, else
    `student`, over originals; a metric of sets has none.
    """
    everything = np.ones(len(human), dtype=bool)
    n, decided = layout.counts(everything), layout.counts(~np.isnan(human))
    table = layout.models.drop(columns="model_key").assign(
        n_images=n, n_decided=decided, n_undecided=n - decided
    )
    low, high = _ends(people)
    columns = {"human": people.means, "human_low": low, "human_high": high}
    for metric in metrics:
        low, high = _ends(metric)
        columns |= {
            metric.name: metric.means,
            f"{metric.name}:low": low,
            f"{metric.name}:high": high,
            f"{metric.name}:n_inf": metric.n_inf,
        }
    return pd.concat([table, pd.DataFrame(columns)], axis=1)


def rule_table(specs: Sequence[MetricSpec], evidence: Evidence, layout: Layout) -> pd.DataFrame:
    """The agreement of each metric under every human score, columns `RULE_COLUMNS`.

    n_images have that score, n_left_out do not; both sides are means over the former.
    """
    rows = []
    nothing = resample(layout, bootstraps=0, permutations=0, seed=0)
    for rule in rules_of(evidence):
        score = judged(evidence, rule)
        people = people_measure(score.values, layout, nothing)
        counted = int((~np.isnan(score.values)).sum())
        for spec in specs:
            metric = metric_measure(spec, evidence, score.values, layout, nothing)
            found = _agreement(people, metric, score.undefined)
            rows.append(
                {
                    "rule": rule,
                    **found,
                    "n_images": counted,
                    "n_left_out": len(score.values) - counted,
                }
            )
    return pd.DataFrame(rows, columns=list(RULE_COLUMNS))


def matrix_table(measures: list[Measure]) -> pd.DataFrame:
    """Spearman's ρ over models of people and metrics with each other, oriented; by titles."""
    titles = [measure.title for measure in measures]
    values = np.full((len(measures), len(measures)), np.nan)
    for (i, a), (j, b) in itertools.combinations_with_replacement(enumerate(measures), 2):
        values[i, j] = values[j, i] = _agreement(a, b)["rho"]
    return pd.DataFrame(values, index=titles, columns=titles, dtype=float)


def backbone_table(people: Measure, metrics: list[Measure], backbones: list[str]) -> pd.DataFrame:
    """The agreement without the models of one backbone: columns `BACKBONE_COLUMNS`.

    backbones: (M,) names, one a model. Empty where all models have the same one.
    """
    names = sorted(set(backbones)) if len(set(backbones)) > 1 else []
    rows = [
        {**_agreement(people, metric, without=np.array(backbones) == name), "left_out": name}
        for metric in metrics
        for name in names
    ]
    return pd.DataFrame(rows, columns=list(BACKBONE_COLUMNS))


def _agreement(
    a: Measure, b: Measure, undefined: str | None = None, without: np.ndarray | None = None
) -> dict[str, Any]:
    """The two as rankings; without: (M,) bool, the models that are left out."""
    models = both_have([a, b])
    if without is not None:
        models = models[~without[models]]
    found = rank_agreement(a.oriented[models], b.oriented[models])
    return {
        "metric": b.name,
        "title": b.title,
        "n": found.n,
        "rho": np.nan if found.rho is None else found.rho,
        "tau": np.nan if found.tau is None else found.tau,
        "undefined": undefined or found.undefined,
    }


def _ends(measure: Measure) -> tuple[np.ndarray, np.ndarray]:
    """(M,) each: the ends of the interval of every model's mean."""
    ends = share_ends if measure.is_share else student
    return ends(measure.means, measure.errors, measure.units)
