"""People and metrics as what ranks models: one value a model, its error and its bootstrap."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from semsim.base.columns import MODEL_KEY
from semsim.base.metric_spec import MetricSpec
from semsim.base.stats.evidence import Evidence
from semsim.base.stats.grouping import Layout, model_means
from semsim.base.stats.intervals import error
from semsim.base.stats.resampling import Resamples
from semsim.base.stats.verdict import human_score

PEOPLE = "people"
OF_MODELS = "people's shares are of models, not of single pictures"


@dataclass(frozen=True, kw_only=True)
class People:
    """Human score of a study: what models are ranked by.

    Attributes:
        scores: (R,) in [0, 1], NaN where people have not decided.
        errors: (M,), or (1,) for all, standard error of each model's mean over people, 0 where the
            source states none. That of votes is in the spread over originals.
        of_models: Scores are shares of whole models, the same for all pictures of one.
    """

    scores: np.ndarray
    errors: np.ndarray = field(default_factory=lambda: np.zeros(1))
    of_models: bool = False

    @classmethod
    def of(cls, evidence: Evidence, rule: str, layout: Layout) -> "People":
        """Return the human score `rule` of a study; raises as `human_score`."""
        scores = human_score(evidence, rule)
        of_models = rule in evidence.given and not evidence.has_votes and _by_model(scores, layout)
        each = np.nan_to_num(evidence.given_errors.get(rule, np.zeros(len(scores))))
        if of_models:
            errors = np.nan_to_num(model_means(layout, each, layout.left_out[:1])[0])
        else:
            squares = np.bincount(layout.model, each**2, layout.n_models)
            errors = np.sqrt(squares) / np.maximum(layout.counts(~np.isnan(scores)), 1)
        return cls(scores=scores, errors=errors, of_models=of_models)

    @property
    def no_pictures(self) -> str | None:
        """Reason for which they judge no single picture, or None."""
        return OF_MODELS if self.of_models else None


def _by_model(scores: np.ndarray, layout: Layout) -> bool:
    """Return whether each model's scores are one share, of several pictures or of all alike."""
    table = layout.table(scores)
    known = ~np.isnan(table)
    lowest = np.where(known, table, np.inf).min(axis=1)
    highest = np.where(known, table, -np.inf).max(axis=1)
    several = (known.sum(axis=1) > 1).any() or layout.n_originals == 1
    return bool(several and (lowest >= highest).all() and ((lowest > 0) & (lowest < 1)).any())


@dataclass(frozen=True, kw_only=True)
class Measure:
    """Measure that gives each of M models a value.

    Attributes:
        sign: 1 where a larger value means more leakage, -1 where it means less.
        means: (M,), as the measure has them; NaN where a model has none.
        resampled: (B, M), the same under the cluster bootstrap over originals.
        n_inf: (M,) int, infinite values kept out of each mean.
        errors, units: (M,) the error of each mean, and of how many originals it is; NaN and 0 for a
            metric of sets.
        of_images: False for a metric of sets, whose value a resample of images cannot change.
        is_share: Means are shares, of values in [0, 1].
        mark: As of its `MetricSpec`.
    """

    name: str
    title: str
    sign: float
    means: np.ndarray
    resampled: np.ndarray
    n_inf: np.ndarray
    errors: np.ndarray
    units: np.ndarray
    of_images: bool = True
    is_share: bool = False
    mark: str = ""

    @property
    def oriented(self) -> np.ndarray:
        """(M,): more means more leakage."""
        return self.sign * self.means

    @property
    def oriented_resampled(self) -> np.ndarray:
        """(B, M): more means more leakage."""
        return self.sign * self.resampled


def people_measure(people: People, layout: Layout, resamples: Resamples) -> Measure:
    """Return a human score as a measure.

    A resample draws originals with the scores their images have: the annotators stay the same, and
    what Dawid-Skene thinks of them is not estimated again. Where the source states standard errors,
    a resample draws each model's mean from a normal distribution of that width, too.
    """
    means, resampled, errors, units = _means(people.scores, layout, resamples)
    if people.errors.any():
        resampled = np.clip(resampled + people.errors * resamples.people(), 0, 1)
        errors = np.hypot(errors, people.errors)
    return Measure(
        name=PEOPLE,
        title="People",
        sign=1.0,
        means=means,
        resampled=resampled,
        n_inf=np.zeros(layout.n_models, dtype=int),
        errors=errors,
        units=units,
        is_share=True,
    )


def metric_measure(
    spec: MetricSpec,
    evidence: Evidence,
    human: np.ndarray,
    layout: Layout,
    resamples: Resamples,
) -> Measure:
    """A metric as a measure, over the images on which people have decided.

    Args:
        human: (R,), NaN where they have not: both sides then speak of the same images.
    """
    if spec.per_image:
        values = np.where(np.isnan(human), np.nan, evidence.scores[spec.name])
        n_inf = layout.counts(np.isinf(values))
        means, resampled, errors, units = _means(values, layout, resamples)
    else:
        means = set_values(spec.name, evidence, layout)
        resampled = np.broadcast_to(means, (resamples.n, layout.n_models))
        n_inf = np.isinf(means).astype(int)
        errors, units = np.full(len(means), np.nan), np.zeros(len(means), dtype=int)
    return Measure(
        name=spec.name,
        title=spec.title,
        sign=spec.sign,
        means=means,
        resampled=resampled,
        n_inf=n_inf,
        errors=errors,
        units=units,
        of_images=spec.per_image,
        is_share=spec.yes_or_no,
        mark=spec.mark,
    )


def set_values(name: str, evidence: Evidence, layout: Layout) -> np.ndarray:
    """(M,): the value of a metric of sets for each model, NaN where it has none."""
    table = evidence.set_scores[name]
    return layout.models[MODEL_KEY].merge(table, on=MODEL_KEY, how="left")["value"].to_numpy()


def both_have(measures: Sequence[Measure]) -> np.ndarray:
    """Return the rows of models that have a value under each of `measures`, (n,) int, in order.

    The order is that of the values themselves, so that what is drawn at random does not depend
    on what models are called.
    """
    values = np.stack([measure.oriented for measure in measures])
    rows = np.flatnonzero(~np.isnan(values).any(axis=0))
    return rows[np.lexsort(values[::-1, rows])]


def _means(
    values: np.ndarray, layout: Layout, resamples: Resamples
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Means, resampled, errors and units of `Measure`."""
    means, units = model_means(layout, values, layout.left_out), layout.units(np.isfinite(values))
    resampled = model_means(layout, values, resamples.originals)
    return means[0], resampled, error(means, units), units
