"""The same training on shuffled votes, many times: what is reached where votes say nothing."""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from semsim.base.errors import TrainingFailedError
from semsim.base.jobs.folders import read_json
from semsim.base.progress import Progress, Report
from semsim.base.stats.roc import POOLED
from semsim.base.storage.atomic import write_json
from semsim.base.words import counted
from semsim.learning.orders import Order
from semsim.learning.settings import MIXED, TrainSettings

SHUFFLED = "shuffled"  # their name among controls, and of their row among metrics
SURE = 0.05  # p up to which the votes are said to have taught something
OF_MIXED, OF_NETWORKS = 20, 5  # 20 can show a p below 0.05, 5 cannot
LONG = 1800  # seconds of shuffles after which no further one begins
_TIE = 1e-9


def how_many(settings: TrainSettings) -> int:
    """Return how many shuffles stand beside a training where they do not take too long."""
    return OF_MIXED if settings.loss == MIXED else OF_NETWORKS


def train_shuffles(
    order: Order,
    labels: pd.DataFrame,
    judge: Callable[[Path], Mapping[str, Any]],
    folder: Path,
    report: Report,
) -> list[dict[str, Any]]:
    """Train as `order` says on votes dealt out anew, `how_many` times, and judge each.

    Votes are dealt out among the reconstructions of each original; all else is the same, the start
    too. After half an hour no further one begins. What `folder` has is not done again.
    judge: the row of a checkpoint, as of `metric_rows`. report: told of all as one bar with the
    training, see `part_of`.
    Returns of each rho, tau, AUCs by scope, and seconds; or `why` where its training failed.
    """
    found: list[dict[str, Any]] = []
    n = how_many(order.settings)
    while len(found) < n and sum(row["seconds"] for row in found) <= LONG:
        number = len(found) + 1
        done = folder / f"{number}.json"
        if not done.exists():
            place, tell = folder / str(number), part_of(report, number, n)
            write_json(done, _shuffle(order, number, labels, judge, place, tell))
            shutil.rmtree(place, ignore_errors=True)
        found.append(read_json(done))
    return found


def _shuffle(
    order: Order,
    number: int,
    labels: pd.DataFrame,
    judge: Callable[[Path], Mapping[str, Any]],
    folder: Path,
    report: Report,
) -> dict[str, Any]:
    from semsim.learning.train_job import learn  # with torch, and only a job needs it

    began, settings = time.monotonic(), replace(order.settings, shuffle=number)
    shuffled = replace(order, checkpoints=folder, settings=settings)
    try:
        learn(shuffled, labels, folder, report)
        row = judge(shuffled.checkpoint)
    except TrainingFailedError as error:
        return {"why": str(error), "seconds": time.monotonic() - began}
    aucs = {scope: found["auc"] for scope, found in row["auc"].items()}
    measured = {"rho": row["rho"], "tau": row["tau"], "auc": aucs}
    return {**measured, "seconds": time.monotonic() - began}


def part_of(report: Report, number: int, n: int) -> Report:
    """Return what the training (number 0) or one of its `n` shuffles reports to, as one bar.

    The curves of shuffles would mix with the training's, so only their places and words are told.
    """

    def tell(progress: Progress) -> None:
        done, total = number * progress.total + progress.done, (1 + n) * progress.total
        if number == 0:
            report(replace(progress, done=done, total=total))
        else:
            report(Progress(done, total, f"control, shuffle {number} of {n}, {progress.note}"))

    return tell


def distribution(
    rows: Sequence[Mapping[str, Any]], own: float | None, scope: str = POOLED
) -> dict[str, Any] | None:
    """Return what shuffles reach beside `own`, the training's AUC; ready for JSON.

    rows: of `train_shuffles`. scope: of AUC, see `scopes_by`. p: of a permutation test, (1 + those
    that reach `own`) / (1 + all). None where none of them, or the training, has an AUC.
    """
    judged = [row for row in rows if "why" not in row]
    aucs = [row["auc"][scope] for row in judged]
    if own is None or not aucs or None in aucs:
        return None
    reach = sum(auc >= own - _TIE for auc in aucs)
    return {
        **{"n": len(aucs), "failed": len(rows) - len(aucs), "reach": reach},
        "p": (1 + reach) / (1 + len(aucs)),
        **{"mean": float(np.mean(aucs)), "low": min(aucs), "high": max(aucs)},
        "each": [{key: row[key] for key in ("rho", "tau", "auc")} for row in judged],
    }


def shuffled_row(found: Mapping[str, Any], like: Mapping[str, Any]) -> dict[str, Any]:
    """A `distribution` as a row among `metric_rows`: means, and lowest and highest as the ends.

    like: the row of the training itself.
    """
    each = found["each"]
    numbers = {key: _spread([row[key] for row in each]) for key in ("rho", "tau")}
    return {
        "metric": SHUFFLED,
        "title": f"{counted(len(each), 'shuffle')} of the votes: mean [lowest, highest]",
        **{"n_models": like["n_models"], "undefined": like["undefined"]},
        **{key: ends[0] for key, ends in numbers.items()},
        **{f"{key}_low": ends[1] for key, ends in numbers.items()},
        **{f"{key}_high": ends[2] for key, ends in numbers.items()},
        "auc": {
            scope: {
                **own,
                **dict(zip(("auc", "low", "high"), _spread(_of(each, scope)), strict=True)),
            }
            for scope, own in like["auc"].items()
        },
    }


def _of(each: Sequence[Mapping[str, Any]], scope: str) -> list[float | None]:
    return [row["auc"].get(scope) for row in each]


def _spread(values: Sequence[float | None]) -> tuple[float | None, float | None, float | None]:
    """Mean, lowest and highest of those that are known."""
    known = [value for value in values if value is not None]
    return (float(np.mean(known)), min(known), max(known)) if known else (None, None, None)
