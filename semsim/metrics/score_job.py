"""Scoring a study, and fetching weights, as jobs, so that no page need be kept open for them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semsim.base.progress import Report
from semsim.device import pick_device
from semsim.metrics import Resources
from semsim.metrics.scoring import pair_sets_of_labels, read_labels, score_sets
from semsim.weights import download

SCORE_JOB, WEIGHTS_JOB = "score", "weights"
LABELS_FILE = "labels.parquet"  # in the folder of a job that scores


@dataclass(frozen=True, kw_only=True)
class ScoreOrder:
    """Metrics to compute of the labels in the job's folder. scores: where they are kept."""

    metrics: tuple[str, ...]
    scores: Path
    checkpoints: Path
    device: str = "auto"


@dataclass(frozen=True, kw_only=True)
class WeightsOrder:
    """The weight file to fetch into `checkpoints`."""

    name: str
    checkpoints: Path


def do_score(order: ScoreOrder, folder: Path, report: Report) -> dict[str, Any]:
    """Compute what is missing; say how much that was, why the rest is not there, and the means."""
    resources = Resources(checkpoints=order.checkpoints, device=pick_device(order.device))
    pair_sets = pair_sets_of_labels(read_labels(folder / LABELS_FILE))
    book = score_sets(pair_sets, order.metrics, resources, order.scores, report)
    return book.record()


def do_fetch(order: WeightsOrder, folder: Path, report: Report) -> dict[str, Any]:
    """Fetch the file of the order."""
    del folder
    return {"file": str(download(order.name, order.checkpoints, report))}


def fetched(outcome: Mapping[str, Any]) -> str:
    """Say where the file of a job lies."""
    return str(outcome["file"])
