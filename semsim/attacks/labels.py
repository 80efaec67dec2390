"""Class of the private image, read off the gradient before any optimisation.

With softmax cross-entropy the gradient of the last bias is the predicted probabilities less the
one-hot label, so that only the true class has a negative entry (Zhao, Mopuri and Bilen 2020,
arXiv:2001.02610, §3.2). Without a bias the rows of the last weight tell the same where the features
do not change sign.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from semsim.attacks.batch_norm import batch_norm_mode
from semsim.attacks.fast_gradients import parameter_gradients
from semsim.base.errors import AttackFailedError
from semsim.types import GradientObservation, UpdateObservation

Label = Literal["known", "inferred"]  # told with the observation, or read off the gradient


def infer_label(seen: GradientObservation) -> int:
    """The class index of the one private image behind `seen`.

    Exact for an undisturbed gradient; under noise or pruning the most negative entry wins.
    Where the last layer has no bias the row sums of its weight stand in, which is right for
    features of one sign, as behind ReLU or sigmoid.
    Raises `AttackFailedError` where the gradient of the last layer is zero or not finite, or where
    there is no such layer.
    """
    (label,) = infer_labels(seen.gradients[last_layer(seen)], 1)
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


def labels_of(seen: UpdateObservation, label: Label) -> tuple[int, ...]:
    """The class indices that an attack works with, as its setting says; see `label_of`."""
    if label == "inferred":
        last = seen.mean_gradient()[last_layer(seen)]
        return infer_labels(last, seen.pictures, chances_of_grey(seen) if seen.pictures > 1 else 0)
    if seen.labels is None:
        raise AttackFailedError(
            'The labels are not known to this attacker; set label="inferred" to count them in the '
            "update."
        )
    return seen.labels


@torch.no_grad()
def chances_of_grey(seen: GradientObservation | UpdateObservation) -> Tensor:
    """Return the probabilities of grey, (classes,); if untrained, any picture has about these."""
    with batch_norm_mode(seen.model, "eval"):
        found: Tensor = seen.model(_grey(seen)).softmax(1)[0]
    return found


def last_layer(seen: GradientObservation | UpdateObservation) -> int:
    """Return the place of the last bias, or else the last weight, among the model's parameters.

    It need not be the last of them, and is known by its gradient of grey: of the bias that is the
    slope of the loss by the logits, and of the weight that slope times what the layer sees. Where
    a function behind the logits hides that, the last parameter is taken that has a row a class.
    Raises `AttackFailedError` where none has.
    """
    chances = chances_of_grey(seen)
    label = chances.argmin()
    slope = chances - F.one_hot(label, len(chances))
    with batch_norm_mode(seen.model, "eval"):
        found = parameter_gradients(seen.model, _grey(seen), label[None])
    rows = [place for place, one in enumerate(found) if one.shape[:1] == slope.shape]
    if not rows:
        raise AttackFailedError(
            'The label cannot be inferred: this network has no last layer; set label="known".'
        )
    biases = [place for place in rows if found[place].dim() == 1]
    weights = [place for place in rows if found[place].dim() > 1]
    known = [place for place in (*weights, *biases) if _is_of(slope, found[place], label)]
    return known[-1] if known else rows[-1]


def _is_of(slope: Tensor, gradient: Tensor, label: Tensor) -> bool:
    """Check that a gradient, (classes, …), is `slope`, (classes,), times a layer's input, or 1."""
    rows = gradient.view(len(slope), -1)
    seen = rows[label] / slope[label] if gradient.dim() > 1 else slope.new_ones(1)
    expected = slope[:, None] * seen
    return bool(rows.any()) and torch.allclose(rows, expected, rtol=1e-3, atol=1e-6)


def _grey(seen: GradientObservation | UpdateObservation) -> Tensor:
    return torch.full((1, *seen.shape), 0.5).to(next(seen.model.parameters()))


def infer_labels(last: Tensor, count: int, chances: Tensor | float = 0.0) -> tuple[int, ...]:
    """The class indices of `count` pictures, from the mean gradient of the last layer's bias.

    Args:
        last: (classes,), or the weight's (classes, features) for one picture, as `infer_label`.
        chances: (classes,), a guess at what the model says of such a picture, 0 for none. An entry
            is the mean chance of a class less the share of the pictures that have it, so the
            largest share is taken, counted off, and so on. Exact while what is left of the chances,
            added up over the pictures, differs between any two classes by less than 1.

    Raises:
        AttackFailedError: Where nothing can be counted.
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
