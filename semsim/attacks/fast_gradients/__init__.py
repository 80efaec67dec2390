"""The parameter gradient of every image on its own, for many images in one pass.

Where every layer is known (`plan`) the gradients come from `passes`, which work on the inputs of
each layer and the slopes of its outputs (Goodfellow 2015, arXiv:1510.01799, for linear layers;
Rochette et al. 2019, arXiv:1912.06015, for convolutions). Everything else goes through
`torch.func.vmap`, or, one image at a time, through automatic differentiation alone.
"""

from collections.abc import Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from semsim.attacks.batch_norm import BatchNorm, batch_norm_mode
from semsim.attacks.fast_gradients.passes import EachGradient, EachProduct
from semsim.attacks.fast_gradients.plan import plan_for
from semsim.attacks.fast_gradients.surrogate_curvature import lending
from semsim.targets.each_image import gradients_by_vmap
from semsim.types import AttackedModel


def parameter_gradients(model: AttackedModel, images: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
    """Gradient of the mean cross-entropy with respect to every parameter of `model`.

    Args:
        images: (N, C, H, W) in [0, 1]; where they require a gradient the result can be
            differentiated by them.
        labels: (N,) class indices, or (N, classes) probabilities.
    """
    loss = F.cross_entropy(model(images), labels)
    return torch.autograd.grad(loss, tuple(model.parameters()), create_graph=images.requires_grad)


def gradient_of_each(
    model: AttackedModel,
    images: Tensor,
    labels: Tensor,
    *,
    batch_norm: BatchNorm = "eval",
    curvature: float = 0.0,
) -> tuple[Tensor, ...]:
    """`parameter_gradients` of each image alone, one (N, *parameter.shape) a parameter.

    The result can be differentiated once by images that require a gradient.

    Args:
        batch_norm: "train" normalises each image by its own statistics.
        curvature: Share of `lent_curvature` that ReLUs have where the result is differentiated. The
            gradients themselves do not depend on it.
    """
    plan = plan_for(model, images, labels) if batch_norm == "eval" else None
    if plan is not None:
        found: tuple[Tensor, ...] = EachGradient.apply(images, labels, plan, curvature)
        return found
    with batch_norm_mode(model, batch_norm), lending(curvature):
        if len(images) > 1 and isinstance(model, nn.Module):
            return gradients_by_vmap(model, images, labels)
        alone = map(partial(parameter_gradients, model), images.split(1), labels.split(1))
        return tuple(torch.stack(each) for each in zip(*alone, strict=True))


def products_of_each(
    model: AttackedModel,
    images: Tensor,
    labels: Tensor,
    targets: Sequence[Tensor],
    *,
    joint: bool,
    batch_norm: BatchNorm = "eval",
    curvature: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """⟨g, t⟩ and ‖g‖² of each image, with g as `gradient_of_each` and t from `targets`.

    Both (N, parameters), or, if `joint`, of groups of parameters. The gradients are not written
    out where every layer is known and none shares its parameters.
    """
    plan = plan_for(model, images, labels) if batch_norm == "eval" else None
    if plan is not None and not plan.shares:
        how = plan, curvature, joint
        products: tuple[Tensor, Tensor] = EachProduct.apply(images, labels, how, *targets)
        return products
    found = gradient_of_each(model, images, labels, batch_norm=batch_norm, curvature=curvature)
    pairs = zip(found, targets, strict=True)
    return torch.stack([sums(a * b) for a, b in pairs], dim=1), squares_of_each(found)


def squares_of_each(gradients: Sequence[Tensor]) -> Tensor:
    """The squared norm of each tensor of each image, (N, tensors).

    Args:
        gradients: One (N, *parameter.shape) a parameter.
    """
    return torch.stack([sums(gradient.square()) for gradient in gradients], dim=1)


def sums(values: Tensor) -> Tensor:
    """The sum over all but the first dimension: (N, …) to (N,)."""
    if len(values) == 1:  # one long sum is faster, and adds up as the authors' code does
        return values.sum()[None]
    return values.flatten(1).sum(1)
