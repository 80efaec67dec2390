"""Which class the private image has, read off the gradient before any optimisation.

With softmax cross-entropy the gradient of the last bias is the predicted probabilities less the
one-hot label, so that only the true class has a negative entry (Zhao, Mopuri and Bilen 2020,
arXiv:2001.02610, §3.2). Without a bias the rows of the last weight tell the same where the features
do not change sign.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from semsim.errors import AttackFailedError
from semsim.types import GradientObservation

Label = Literal["known", "inferred"]  # told with the observation, or read off the gradient


def infer_label(seen: GradientObservation) -> int:
    """The class index of the one private image behind `seen`.

    Exact for an undisturbed gradient; under noise or pruning the most negative entry wins.
    Raises `AttackFailedError` where the gradient of the last layer is zero or not finite.
    """
    evidence = class_evidence(seen.gradients)
    if not torch.isfinite(evidence).all() or not evidence.any():
        raise AttackFailedError(
            "The label cannot be inferred: the last layer's gradient is zero or not finite."
        )
    return int(evidence.argmin())


def infer_labels(gradients: Sequence[Tensor], count: int, *, prediction: Tensor) -> list[int]:
    """The class indices of a batch of `count` images behind one mean gradient, sorted.

    prediction: (classes,), the mean probabilities that the model gives to images like the private
        ones, such as a mid-grey image on an untrained net; sums to 1.
    With softmax cross-entropy the gradient of the last bias is that mean less each class's share of
    the batch, so `count` × (prediction − gradient) estimates how many images a class has. Classes
    with a negative gradient certainly are in the batch and come first; then one image at a time,
    the largest estimate first, each lowering its class's estimate by one. Exact as far as
    `prediction` is. The last layer must have a bias. Raises `AttackFailedError` where it has not,
    or where the gradient is not finite.
    """
    evidence = gradients[-1]
    if evidence.dim() != 1 or not torch.isfinite(evidence).all():
        raise AttackFailedError(
            "The labels cannot be inferred: the gradient of a last bias is missing or not finite."
        )
    certain = torch.nonzero(evidence < 0).flatten()
    labels = [int(label) for label in certain[evidence[certain].argsort()][:count]]
    left = count * (prediction.to(evidence) - evidence)
    for label in labels:
        left[label] -= 1
    while len(labels) < count:
        best = int(left.argmax())
        labels.append(best)
        left[best] -= 1
    return sorted(labels)


def class_evidence(gradients: Sequence[Tensor]) -> Tensor:
    """One value a class, (classes,): negative for a class speaks for images of that class.

    The last tensor is the last layer's bias, or its weight where it has no bias; then the row
    sums stand in, which is right for features of one sign, as behind ReLU or sigmoid.
    """
    last = gradients[-1]
    return last if last.dim() == 1 else last.flatten(1).sum(1)


def label_of(seen: GradientObservation, label: Label) -> int:
    """The class index that an attack works with, as its setting says.

    Raises `AttackFailedError` where it is to be known but was not told.
    """
    if label == "inferred":
        return infer_label(seen)
    if seen.label is None:
        raise AttackFailedError(
            'The label is not known to this attacker; set label="inferred" to read it off the '
            "gradient."
        )
    return seen.label
