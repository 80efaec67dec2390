"""What is watched while SemSim learns, and the signs that it does not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

_SAME = 1e-3  # share of the margin below which a loss is "exactly the margin" and a distance 0


@dataclass(frozen=True, kw_only=True)
class EpochRecord:
    """One epoch: means over its training triplets, and the held-out originals after it.

    d_plus, d_minus: mean distance from an original to its recognisable and unrecognisable
        reconstruction. violated: share of triplets inside the margin. norm: mean feature length.
    validation_*: over all triplets of the held-out originals; None where none are held out.
        validation_accuracy: share of them with the recognisable one nearer; 0.5 is chance.
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

    def values(self) -> dict[str, float]:
        """What is known, by name."""
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
        return float((self.plus - self.minus + margin > 0).double().mean())

    def accuracy(self) -> float:
        """Share of triplets whose recognisable one is nearer; a tie counts half."""
        gap = self.minus - self.plus
        return float((gap > 0).double().mean() + 0.5 * (gap == 0).double().mean())


def distances(anchors: Tensor, positives: Tensor, negatives: Tensor) -> Distances:
    """Distances between features (T, d) of originals and their reconstructions."""
    features = torch.cat([anchors, positives, negatives])
    return Distances(
        plus=torch.linalg.vector_norm(anchors - positives, dim=1),
        minus=torch.linalg.vector_norm(anchors - negatives, dim=1),
        norm=float(torch.linalg.vector_norm(features, dim=1).mean()),
    )


def warnings_about(records: Sequence[EpochRecord], margin: float) -> tuple[str, ...]:
    """What is wrong with a finished training, in words for people; empty when nothing is."""
    if not records:
        return ()
    last = records[-1]
    found = []
    if _collapsed(last, margin):
        found.append(
            f"The features collapsed: the loss is {last.loss:.4g} at a margin of {margin:g}, the "
            f"distances are {last.d_plus:.2g} and {last.d_minus:.2g}, so all images look alike to "
            "this SemSim. Train again with a lower learning rate or with normalised features."
        )
    accuracy = last.validation_accuracy
    if accuracy is not None and accuracy <= 0.5:
        found.append(
            f"On held-out originals the recognisable reconstruction is nearer in {accuracy:.0%} of "
            "triplets; guessing gives 50%. This SemSim says nothing about new images."
        )
    return tuple(found)


def last_by_epoch(values: Sequence[Mapping[str, float]]) -> list[Mapping[str, float]]:
    """One mapping an epoch, in order: an epoch repeated after a resume counts as it ended."""
    latest = {round(row["epoch"]): row for row in values if "d_plus" in row}
    return [latest[epoch] for epoch in sorted(latest)]


def _collapsed(last: EpochRecord, margin: float) -> bool:
    stuck = abs(last.loss - margin) < _SAME * margin
    pointlike = max(last.d_plus, last.d_minus) < _SAME * max(last.norm, margin)
    return stuck or pointlike
