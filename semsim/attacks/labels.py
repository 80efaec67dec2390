"""Which class the private image has, read off the gradient before any optimisation.

With softmax cross-entropy the gradient of the last bias is the predicted probabilities less the
one-hot label, so that only the true class has a negative entry (Zhao, Mopuri and Bilen 2020,
arXiv:2001.02610, §3.2). Without a bias the rows of the last weight tell the same where the features
do not change sign.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from semsim.errors import AttackFailedError
from semsim.types import GradientObservation

Label = Literal["known", "inferred"]  # told with the observation, or read off the gradient


def infer_label(seen: GradientObservation) -> int:
    """The class index of the one private image behind `seen`.

    Exact for an undisturbed gradient; under noise or pruning the most negative entry wins.
    Where the last layer has no bias the row sums of its weight stand in, which is right for
    features of one sign, as behind ReLU or sigmoid.
    Raises `AttackFailedError` where the gradient of the last layer is zero or not finite.
    """
    (label,) = infer_labels(seen.gradients[-1], 1)
    return label


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


def infer_labels(last: Tensor, count: int, chances: Tensor | float = 0.0) -> tuple[int, ...]:
    """The class indices of `count` pictures, from the mean gradient of the last layer's bias.

    last: (classes,), or the weight's (classes, features) for one picture, as `infer_label`.
    chances: (classes,), a guess at what the model says of such a picture, 0 for none.
    An entry is the mean chance of a class less the share of the pictures that have it, so the
    largest share is taken, counted off, and so on. Exact while what is left of the chances, added
    up over the pictures, differs between any two classes by less than 1.
    Raises `AttackFailedError` where nothing can be counted.
    """
    if last.dim() > 1 and count > 1:
        raise AttackFailedError(
            "The labels of several pictures are counted in the last layer's bias, and this network "
            'has none there; set label="known".'
        )
    evidence = -(last if last.dim() == 1 else last.flatten(1).sum(1))
    if not torch.isfinite(evidence).all() or not evidence.any():
        raise AttackFailedError(
            "The label cannot be inferred: the last layer's gradient is zero or not finite."
        )
    found, left = [], evidence + chances
    for _ in range(count):
        found.append(int(left.argmax()))
        left = left - F.one_hot(left.argmax(), len(left)) / count
    return tuple(found)
