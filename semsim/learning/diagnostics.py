"""Measurements watched while SemSim learns, and the signs that it does not."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from semsim.base.errors import JobError
from semsim.base.progress import Progress, Report
from semsim.base.storage.atomic import write_json
from semsim.base.storage.records import read_object

if TYPE_CHECKING:
    from torch import Tensor

_COURSE = "course.json"
_AT_ONCE = 1024  # triplets whose features are gathered together
_CURVE_POINTS = 300  # two pixels of a curve lie between two of its last points
_EVERY = 5.0  # seconds between two writings of a course
_SAME = 1e-3  # share of the margin below which a loss is "exactly the margin" and a distance 0


@dataclass(frozen=True, kw_only=True)
class EpochRecord:
    """One epoch: means over its training triplets, and the held-out originals after it.

    Attributes:
        d_plus, d_minus: Mean distance from an original to its recognisable and unrecognisable
            reconstruction.
        violated: Share of triplets inside the margin.
        norm: Mean feature length.
        identity: Mean distance from an original to itself mildly changed, where that is minimised.
            validation_*: over all triplets of the held-out originals; None where there are none.
        validation_accuracy: Share of them with the recognisable one nearer; 0.5 is chance.
        validation_auc: Of their images, all originals together: the chance that a recognisable one
            is nearer to its original than an unrecognisable one to its own.
    """

    epoch: int
    loss: float
    d_plus: float
    d_minus: float
    violated: float
    norm: float
    validation_d_plus: float | None = None
    validation_d_minus: float | None = None
    validation_accuracy: float | None = None
    validation_auc: float | None = None
    identity: float | None = None

    def values(self) -> dict[str, float]:
        """Return the known values, by name."""
        named = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: float(value) for name, value in named if value is not None}


@dataclass(frozen=True, kw_only=True)
class Distances:
    """Distances of triplets, (T,) each, and the mean length of the features they are between."""

    plus: Tensor
    minus: Tensor
    norm: float

    def violated(self, margin: float) -> float:
        """Share of triplets whose unrecognisable one is not `margin` farther away."""
        return float((self.plus - self.minus + margin > 0).cpu().double().mean())

    def accuracy(self) -> float:
        """Share of triplets whose recognisable one is nearer; a tie counts half."""
        gap = (self.minus - self.plus).cpu()
        return float((gap > 0).double().mean() + 0.5 * (gap == 0).double().mean())


def distances(anchors: Tensor, positives: Tensor, negatives: Tensor) -> Distances:
    """Distances between features (T, d) of originals and their reconstructions."""
    import torch  # the curves on a page need none

    features = torch.cat([anchors, positives, negatives])
    return Distances(
        plus=torch.linalg.vector_norm(anchors - positives, dim=1),
        minus=torch.linalg.vector_norm(anchors - negatives, dim=1),
        norm=float(torch.linalg.vector_norm(features, dim=1).mean()),
    )


def triplet_distances(features: Tensor, triplets: np.ndarray) -> Distances:
    """`distances` of the features (N, d) that triplets (T, 3) number, so many at a time.

    A study has a hundred triplets an original, and features may be as long as its pictures.
    """
    import torch

    rows = torch.from_numpy(triplets)
    parts = [
        distances(*(features[part[:, role]] for role in range(3))) for part in rows.split(_AT_ONCE)
    ]
    norms = torch.linalg.vector_norm(features, dim=1)
    return Distances(
        plus=torch.cat([part.plus for part in parts]),
        minus=torch.cat([part.minus for part in parts]),
        norm=float(norms[rows.T.reshape(-1)].mean()),
    )


def auc(distances: Tensor, recognisable: np.ndarray) -> float | None:
    """The chance that a recognisable image is nearer than an unrecognisable one; ties count half.

    Args:
        distances: (M,), recognisable: (M,) bool. None where either kind is missing.
    """
    near, far = distances[recognisable].numpy(), np.sort(distances[~recognisable].numpy())
    if len(near) == 0 or len(far) == 0:
        return None
    nearer = len(far) - np.searchsorted(far, near, side="right")
    tied = len(far) - np.searchsorted(far, near, side="left") - nearer
    return float((nearer + 0.5 * tied).mean() / len(far))


def best_epoch(records: Sequence[EpochRecord]) -> int:
    """The first epoch, counted from 1, with the highest AUC on held-out originals."""
    aucs = [-1.0 if r.validation_auc is None else r.validation_auc for r in records]
    return records[int(np.argmax(aucs))].epoch


def collapsed(record: EpochRecord, margin: float) -> bool:
    """Return whether all images lie at one point, or the loss is stuck at its value there."""
    stuck = abs(record.loss - margin) < _SAME * margin
    pointlike = max(record.d_plus, record.d_minus) < _SAME * max(record.norm, margin)
    return stuck or pointlike


def reason_to_stop(
    records: Sequence[EpochRecord], *, margin: float, patience: int, collapse_patience: int
) -> str:
    """Return the reason to stop, in words for people; empty while a further epoch is worthwhile.

    Args:
        patience: Epochs without a better AUC on held-out originals.
        collapse_patience: Collapsed ones in a row. 0 is never.
    """
    lately = records[-collapse_patience:]
    if 0 < collapse_patience <= len(records) and all(collapsed(r, margin) for r in lately):
        return f"The features were collapsed for {collapse_patience} epochs in a row."
    if patience > 0 and records and len(records) - best_epoch(records) >= patience:
        best = best_epoch(records)
        return (
            f"Held-out AUC has not risen for {patience} epochs; the weights are those of epoch "
            f"{best}."
        )
    return ""


def warnings_about(records: Sequence[EpochRecord], margin: float) -> tuple[str, ...]:
    """Return the faults of a finished training, in words for people; empty if there are none."""
    if not records:
        return ()
    last = records[-1]
    found = []
    if collapsed(last, margin):
        found.append(
            f"The features collapsed: the loss is {last.loss:.4g} at a margin of {margin:g}, the "
            f"distances are {last.d_plus:.2g} and {last.d_minus:.2g}, so all images look alike to "
            "this SemSim. Train again with a lower learning rate or with normalised features."
        )
    accuracy = last.validation_accuracy
    if accuracy is not None and accuracy <= 0.5:
        found.append(
            f"On held-out originals the recognisable reconstruction is nearer in {accuracy:.0%} of "
            "triplets; guessing gives 50%. This SemSim does not work on new images."
        )
    return tuple(found)


class Course:
    """A report that keeps what curves are drawn from in the training's folder, and passes it on.

    The file of all reports may be very long. Kept are batches, and ends of epochs, each at least
    `1 / _CURVE_POINTS` of the way so far behind the one before: so a course grows with the
    logarithm of the epochs.
    """

    def __init__(self, folder: Path, report: Report) -> None:
        self._folder, self._report = folder, report
        self._kept, self._written = course_in(folder), -math.inf

    def __call__(self, progress: Progress) -> None:
        """Keep it where it is one of those, and only once what a resume does again."""
        values = {name: one for name, one in progress.values.items() if math.isfinite(one)}
        if {"epoch", "loss"} <= values.keys():
            now, alike = values["epoch"], self._kept["ends" if "d_plus" in values else "batches"]
            while alike and alike[-1]["epoch"] >= now:
                alike.pop()
            if now - (alike[-1]["epoch"] if alike else 0.0) >= now / _CURVE_POINTS:
                alike.append(values)
        if time.monotonic() - self._written >= _EVERY:
            self.write()
        self._report(progress)

    def write(self) -> None:
        """Write what was kept."""
        write_json(self._folder / _COURSE, self._kept)
        self._written = time.monotonic()


def course_in(folder: Path) -> dict[str, list[dict[str, float]]]:
    """Return what a `Course` has kept in a training's folder: "batches" and "ends" of epochs."""
    path = folder / _COURSE
    return read_object(path, JobError) if path.exists() else {"batches": [], "ends": []}
