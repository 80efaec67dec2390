"""Remarks on the metrics of a comparison that a reader needs beside its statistics."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from semsim.analysis.result import Analysis
from semsim.base.errors import WeightsError
from semsim.base.words import counted
from semsim.comparison.seen_originals import namesakes_words
from semsim.learning.baselines import control_remarks
from semsim.metrics import MetricSpec
from semsim.metrics.learned import learned_by
from semsim.metrics.provenance import Training, checkpoint_of, read_training
from semsim.reporting.notation import number

_UNKNOWN = "not known which of these originals it learned from"


def training_remarks(analysis: Analysis, checkpoints: Path) -> list[str]:
    """Say of each SemSim who voted for it, which originals it saw and if it beats its own start.

    Of one whose file is missing or cannot be read, as where scores came with the data, say that
    it is not known.
    """
    remarks = []
    images = analysis.evidence.images
    for spec in analysis.specs:
        checkpoint = checkpoint_of(spec.name)
        if not checkpoint:
            continue
        path = checkpoints / f"{checkpoint}.safetensors"
        try:
            said = _origin_of(read_training(path), images)
        except WeightsError:
            remarks.append(f"{spec.title}: {_UNKNOWN}, as no checkpoint here says it.")
            continue
        beside = control_remarks(spec, analysis, path)
        remarks += [f"{spec.title}: {'; '.join(said)}."] if said else []
        remarks += [f"{spec.title}: {words}" for words in beside]
    return remarks


def _origin_of(training: Training, images: pd.DataFrame) -> list[str]:
    """Return remarks on who voted for a SemSim, and on which of these originals it has seen."""
    said = ["trained on simulated votes"] if training.simulated else []
    found = learned_by(training).among(images)
    if found.seen:
        originals = counted(len(found.told), "original")
        by_name = ", going by their names" if found.seen & found.by_name else ""
        said.append(f"in-sample: it learned from {len(found.seen)} of these {originals}{by_name}")
    elif found.unknown:
        said.append(_UNKNOWN)
    return [*said, *namesakes_words(found)]


def metric_remarks(specs: Sequence[MetricSpec], facts: pd.DataFrame | None) -> list[str]:
    """Return the metrics' notes on themselves, and the standard errors of those of sets.

    facts: as of a `ScoreBook`; None where scores came without them.
    """
    if facts is None:
        return []
    remarks = []
    for spec in specs:
        own = facts[facts["metric"] == spec.name]
        remarks += [f"{spec.title}: {note}" for note in own["notes"].drop_duplicates() if note]
        if own["standard_error"].notna().any():
            largest = number(own["standard_error"].max())
            remarks.append(f"{spec.title}: standard error of a model's value up to {largest}.")
    return remarks
