"""Notes that a reader needs before any number."""

import numpy as np
import pandas as pd

from semsim.base.stats.correlation import FEW_MODELS
from semsim.base.stats.evidence import Evidence
from semsim.base.stats.grouping import Layout
from semsim.base.stats.human import judged, title_of, verdict
from semsim.base.stats.measures import Measure
from semsim.base.stats.result import AnalysisSettings
from semsim.base.words import agreeing, counted


def notes_of(
    evidence: Evidence,
    settings: AnalysisSettings,
    layout: Layout,
    metrics: list[Measure],
    agreement: pd.DataFrame,
) -> tuple[str, ...]:
    """Plain sentences, the gravest first."""
    notes = [
        *_of_votes(evidence, settings),
        *_of_models(layout),
        *_of_metrics(metrics),
        *_of_resamples(agreement, settings),
        *evidence.notes,
    ]
    return tuple(notes)


def _of_votes(evidence: Evidence, settings: AnalysisSettings) -> list[str]:
    notes = []
    score, title = judged(evidence, settings.headline), title_of(evidence, settings.headline)
    undecided = int(np.isnan(score.values).sum())
    if score.undefined:
        notes.append(f"The human score '{title}' is undefined: {score.undefined}.")
    elif undecided:
        notes.append(
            f"{undecided} of {counted(len(score.values), 'image')} "
            f"{agreeing(undecided, 'is', 'are')} undecided under the rule '{title}' "
            "and left out."
        )
    half = int((verdict(evidence, settings.headline) == 0.5).sum())
    if half:
        halves = counted(half, "image has", "images have")
        notes.append(f"{halves} a human score of exactly one half, which AUC leaves out.")
    return notes


def _of_models(layout: Layout) -> list[str]:
    notes = []
    n, backbones = layout.n_models, layout.models["backbone"].nunique()
    if n < FEW_MODELS:
        notes.append(
            f"Only {counted(n, 'model')}: with fewer than {FEW_MODELS} a rank correlation can "
            "hardly tell metrics apart. Look at the intervals, and at the AUC of images."
        )
    for key, what in (("dataset", "data sets"), ("attack", "attacks")):
        several = layout.models[key].nunique()
        if several > 1:
            notes.append(
                f"Models of {several} {what} are ranked together: a metric also gains or loses by "
                f"how it ranks the {what}."
            )
    if 0 < backbones < n:
        notes.append(
            f"The {n} models have {counted(backbones, 'backbone')} between them and are not "
            "independent: intervals over models are narrower than they should be."
        )
    return notes


def _of_metrics(metrics: list[Measure]) -> list[str]:
    notes = [
        f"{metric.title}: {counted(n, 'infinite score is', 'infinite scores are')} counted and "
        "kept out of the means, ranking first or last among images. A model that has some may leak "
        "more, or less, than the mean of its other images says."
        for metric in metrics
        if (n := int(metric.n_inf[np.isfinite(metric.means)].sum()))
    ]
    fixed = [metric.title for metric in metrics if not metric.of_images]
    if fixed:
        notes.append(
            f"{', '.join(fixed)}: one value a set of images, so the cluster bootstrap holds it "
            "fixed and resamples people only."
        )
    return notes


def _of_resamples(agreement: pd.DataFrame, settings: AnalysisSettings) -> list[str]:
    notes = []
    for kind, what in (("models", "models"), ("images", "originals")):
        # Mostly every metric loses the same resamples: those that drew too few models.
        left_out = agreement[f"left_out_{kind}"].to_numpy(dtype=float)
        for count in np.unique(left_out[left_out > 0]):
            titles = agreement.loc[left_out == count, "title"]
            who = "All metrics" if len(titles) == len(agreement) else ", ".join(titles)
            notes.append(
                f"{who}: {int(count)} of {counted(settings.bootstraps, 'resample')} of {what} gave "
                f"no ranking and {agreeing(int(count), 'is', 'are')} left out of what is said of "
                "them."
            )
    return notes
