"""Shared core of attacks that match gradients: distances between gradients, and image priors.

Everything here works on many images at once: a gradient is one tensor (N, *parameter.shape) a
parameter, and a distance or prior is one value an image, (N,), so that no image sways another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from semsim.types import AttackedModel, BatchNormStatistics

Distance = Literal["cosine", "cosine-per-layer", "l2"]

# Share of the whole gradient's norm below which a tensor of it is taken to be rounding. A bias
# before batch norm in training mode has the gradient 0, and as computed some 1e-8 of the whole.
FLOOR = 1e-6
_TINY = 1e-12  # keeps a cosine with a vanished gradient finite


@dataclass(frozen=True, kw_only=True)
class Targets:
    """What several observations of one model ask for, stacked.

    gradients: one (N, *parameter.shape) a parameter. labels: (N,).
    """

    gradients: tuple[Tensor, ...]
    labels: Tensor

    @cached_property
    def squares(self) -> Tensor:
        """`squares_of_each` of the gradients."""
        return squares_of_each(self.gradients)


def parameter_gradients(
    model: AttackedModel, images: Tensor, labels: Tensor, *, differentiable: bool
) -> tuple[Tensor, ...]:
    """Gradient of the mean cross-entropy with respect to every parameter of `model`.

    images: (N, C, H, W) in [0, 1]. labels: (N,) class indices.
    differentiable: keep the graph, so that the result can be differentiated again.
    """
    loss = F.cross_entropy(model(images), labels)
    return torch.autograd.grad(loss, tuple(model.parameters()), create_graph=differentiable)


def distance_of_each(
    found: Sequence[Tensor], target: Sequence[Tensor], distance: Distance
) -> Tensor:
    """How far each image's gradient is from its target, (N,); 0 where they are equal.

    found, target: one (N, *parameter.shape) a parameter.
    "cosine": one minus the cosine, all tensors joined (Geiping et al. 2020, Eq. 4), 0 to 2.
    "cosine-per-layer": the mean over tensors of one minus the cosine of each, 0 to 2; without those
        whose target is below `FLOOR` of the whole target. No tensor of `found` counts as shorter
        than that share of the whole.
    "l2": squared Euclidean distance, all tensors joined (Zhu et al. 2019, Eq. 3).
    """
    pairs = list(zip(found, target, strict=True))
    if distance == "l2":
        return torch.stack([_sums((a - b).square()) for a, b in pairs]).sum(0)
    dots = torch.stack([_sums(a * b) for a, b in pairs], dim=1)
    return cosine_of_each(dots, squares_of_each(found), squares_of_each(target), distance)


def squares_of_each(gradients: Sequence[Tensor]) -> Tensor:
    """The squared norm of each tensor of each image, (N, tensors)."""
    return torch.stack([_sums(gradient.square()) for gradient in gradients], dim=1)


def cosine_of_each(
    dots: Tensor, squares: Tensor, target_squares: Tensor, distance: Distance
) -> Tensor:
    """`distance_of_each` by cosine, of the products of each tensor: all (N, tensors)."""
    if distance == "cosine":
        dots, squares, target_squares = (
            each.sum(dim=1, keepdim=True) for each in (dots, squares, target_squares)
        )
        return 1 - (dots / (squares * target_squares).sqrt().clamp_min(_TINY))[:, 0]
    least, target_least = (
        FLOOR**2 * each.sum(dim=1, keepdim=True) for each in (squares, target_squares)
    )
    # A root at exactly 0, which a layer behind dead units has, would have an infinite slope.
    lengths = squares.maximum(least).clamp_min(_TINY**2).sqrt()
    lengths = lengths * target_squares.clamp_min(_TINY**2).sqrt()
    heard = target_squares >= target_least
    apart = (1 - dots / lengths.clamp_min(_TINY)) * heard
    return apart.sum(1) / heard.sum(1)


def total_variation_of_each(images: Tensor) -> Tensor:
    """Anisotropic total variation, mean |dx| + mean |dy|: (N, C, H, W) to (N,)."""
    found: Tensor = _TotalVariation.apply(images)
    return found


class _TotalVariation(torch.autograd.Function):
    # By hand, as differentiating it costs more than the passes of a small network.
    @staticmethod
    def forward(ctx: Any, images: Tensor) -> Tensor:
        dx, dy = images.diff(dim=-1), images.diff(dim=-2)
        ctx.signs = dx.sign(), dy.sign()
        ctx.shares = 1 / dx[0].numel(), 1 / dy[0].numel()
        return _sums(dx.abs()) * ctx.shares[0] + _sums(dy.abs()) * ctx.shares[1]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, slope: Tensor) -> Tensor:
        by_dx, by_dy = (
            sign * (slope * share).view(-1, 1, 1, 1)
            for sign, share in zip(ctx.signs, ctx.shares, strict=True)
        )
        by_images = F.pad(by_dx, (1, 0)) - F.pad(by_dx, (0, 1))
        by_images[..., 1:, :] += by_dy
        by_images[..., :-1, :] -= by_dy
        return by_images


def batch_norm_distance(
    found: Sequence[tuple[Tensor, Tensor]], known: Sequence[BatchNormStatistics]
) -> Tensor:
    """Σ over layers of ‖mean − known mean‖ + ‖variance − known variance‖, one value an image.

    found: mean and variance, (N, channels) each, of every batch norm layer. known: N of them.
    Yin et al. 2021, arXiv:2104.07586; Huang et al. 2021, arXiv:2112.00059.
    """
    layers = []
    for layer, (mean, variance) in enumerate(found):
        means = torch.stack([one.means[layer] for one in known])
        variances = torch.stack([one.variances[layer] for one in known])
        layers.append(_lengths(mean - means) + _lengths(variance - variances))
    return torch.stack(layers).sum(0) if layers else torch.zeros(len(known))


def _sums(values: Tensor) -> Tensor:
    """The sum over all but the first dimension."""
    if len(values) == 1:  # one long sum is faster, and adds up as the authors' code does
        return values.sum()[None]
    return values.flatten(1).sum(1)


def _lengths(differences: Tensor) -> Tensor:
    # The norm has no slope at 0, where an attack that is right ends up.
    return (differences.square().sum(1) + _TINY).sqrt()
