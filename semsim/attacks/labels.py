"""Which class the private image has, read off the gradient before any optimisation.

With softmax cross-entropy the gradient of the last bias is the predicted probabilities less the
one-hot label, so that only the true class has a negative entry (Zhao, Mopuri and Bilen 2020,
arXiv:2001.02610, §3.2). Without a bias the rows of the last weight tell the same where the features
do not change sign.
"""

from typing import Literal

import torch

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
    last = seen.gradients[-1]
    evidence = last if last.dim() == 1 else last.flatten(1).sum(1)
    if not torch.isfinite(evidence).all() or not evidence.any():
        raise AttackFailedError(
            "The label cannot be inferred: the last layer's gradient is zero or not finite."
        )
    return int(evidence.argmin())


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
