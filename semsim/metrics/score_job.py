"""Scoring a study, and fetching weights, as jobs, so that no page need be kept open for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semsim.base.cli.terminal import text_table
from semsim.base.progress import Report
from semsim.device import pick_device
from semsim.metrics import Resources, summarise
from semsim.metrics.scoring import ScoreBook, pair_sets_of_labels, read_labels, score_sets
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
    return {
        "computed": len(book.facts),
        "unavailable": book.unavailable,
        "refused": [
            {"set": title, "metric": name, "reason": reason}
            for (title, name), reason in book.refused.items()
        ],
        "rows": summaries(book),
    }


def do_fetch(order: WeightsOrder, folder: Path, report: Report) -> dict[str, Any]:
    """Fetch the file of the order."""
    del folder
    return {"file": str(download(order.name, order.checkpoints, report))}


def fetched(outcome: Mapping[str, Any]) -> str:
    """Say where the file of a job lies."""
    return str(outcome["file"])


def rows_of(outcome: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of `summaries` that a job has left."""
    return list(outcome["rows"])


def told(outcome: Mapping[str, Any]) -> str:
    """Return what a job found as text: the means, and what is unavailable or refused."""
    unavailable = outcome["unavailable"].items()
    lines = [f"{name} is unavailable: {reason}" for name, reason in unavailable]
    lines += [f"{one['metric']} of {one['set']}: {one['reason']}" for one in outcome["refused"]]
    return "\n".join([summary_text(outcome["rows"]), *lines])


def exit_code(outcome: Mapping[str, Any] | None) -> int:
    """Return 0 where all that was asked for was computed, else 1."""
    return int(outcome is None or bool(outcome["unavailable"] or outcome["refused"]))


def summaries(book: ScoreBook) -> list[dict[str, Any]]:
    """Return a row for each model and metric: mean, deviation and counts."""
    keys = ["dataset", "attack", "model", "metric"]
    rows = []
    for named, part in book.scores.groupby(keys, sort=False):
        found = summarise(part["value"].to_numpy())
        facts = {"mean": found.mean, "sd": found.sd, "n": found.n, "n_inf": found.n_inf}
        rows.append(dict(zip(keys, map(str, named), strict=True)) | facts)
    return rows


def summary_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return `summaries` as a table for a terminal."""
    header = ["dataset", "attack", "model", "metric", "mean", "sd", "values", "infinite"]
    told = [
        [number(fact) if key in ("mean", "sd") else str(fact) for key, fact in row.items()]
        for row in rows
    ]
    return text_table(header, told)


def number(value: float | None) -> str:
    """Return a mean or deviation as a terminal has it, "-" where there is none."""
    return "-" if value is None else f"{value:.6g}"
