"""The parameter gradient of every image on its own, for many images in one pass.

Where every layer is known the gradients come from `second_order`, which works on the inputs of
each layer and the slopes of its outputs (Goodfellow 2015, arXiv:1510.01799, for linear layers;
Rochette et al. 2019, arXiv:1912.06015, for convolutions). Everything else goes through
`torch.func.vmap`, or, one image at a time, through automatic differentiation alone.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from semsim.attacks.batch_norm import BatchNorm, batch_norm_mode
from semsim.attacks.lent_curvature import lending
from semsim.attacks.matching import (
    Distance,
    Targets,
    cosine_of_each,
    distance_of_each,
)
from semsim.attacks.second_order import plan_of, planned_gradients, planned_products
from semsim.types import AttackedModel


def gradient_of_each(
    model: AttackedModel,
    images: Tensor,
    labels: Tensor,
    *,
    differentiable: bool,
    batch_norm: BatchNorm = "eval",
    curvature: float = 0.0,
) -> tuple[Tensor, ...]:
    """Gradient of each image's cross-entropy with respect to every parameter of `model`.

    images: (N, C, H, W) in [0, 1]. labels: (N,) class indices, or (N, classes) probabilities.
    differentiable: the result can be differentiated by `images`, once.
    batch_norm: "train" normalises each image by its own statistics.
    curvature: share of `lent_curvature` that ReLUs have where the result is differentiated. The
    gradients themselves do not depend on it.
    Returns one (N, *parameter.shape) a parameter, in the order of `model.parameters()`.
    """
    with batch_norm_mode(model, batch_norm), lending(curvature):
        if batch_norm == "eval" and labels.dim() == 1 and isinstance(model, nn.Module):
            plan = plan_of(model)
            if plan is not None:
                return planned_gradients(plan, images, labels, curvature=curvature)
        if len(images) == 1:
            return _of_one(model, images, labels, differentiable)
        if isinstance(model, nn.Module) and not _has_layer_norm(model):
            return _by_vmap(model, images, labels, differentiable)
        alone = [
            _of_one(model, image[None], label[None], differentiable)
            for image, label in zip(images, labels, strict=True)
        ]
        return tuple(torch.cat(each) for each in zip(*alone, strict=True))


def cosine_distance_of_each(
    model: AttackedModel,
    images: Tensor,
    targets: Targets,
    distance: Distance,
    *,
    batch_norm: BatchNorm = "eval",
    curvature: float = 0.0,
) -> Tensor:
    """`distance_of_each` of `gradient_of_each`, by one of the cosines.

    The gradients are not written out where every layer is known and none shares its parameters.
    """
    if batch_norm == "eval" and isinstance(model, nn.Module):
        with batch_norm_mode(model, batch_norm):
            plan = plan_of(model)
        if plan is not None and not plan.shares:
            asked = plan, images, targets.labels, targets.gradients
            joint = distance == "cosine"
            dots, squares = planned_products(*asked, joint=joint, curvature=curvature)
            return cosine_of_each(dots, squares, targets.squares, distance)
    found = gradient_of_each(
        model,
        images,
        targets.labels,
        differentiable=True,
        batch_norm=batch_norm,
        curvature=curvature,
    )
    return distance_of_each(found, targets.gradients, distance)


def _of_one(
    model: AttackedModel, image: Tensor, label: Tensor, differentiable: bool
) -> tuple[Tensor, ...]:
    loss = F.cross_entropy(model(image), label)
    found = torch.autograd.grad(loss, tuple(model.parameters()), create_graph=differentiable)
    return tuple(gradient[None] for gradient in found)


def _has_layer_norm(model: nn.Module) -> bool:
    # Under vmap the slope of a layer norm's gradient is off by some thousandths (torch 2.13).
    return any(isinstance(layer, nn.LayerNorm) for layer in model.modules())


def _by_vmap(
    model: nn.Module, images: Tensor, labels: Tensor, differentiable: bool
) -> tuple[Tensor, ...]:
    named = dict(model.named_parameters())

    def loss(parameters: dict[str, Tensor], image: Tensor, label: Tensor) -> Tensor:
        logits = functional_call(model, parameters, (image[None],))
        return F.cross_entropy(logits, label[None])

    parameters = {name: parameter.detach() for name, parameter in named.items()}
    with torch.set_grad_enabled(differentiable):
        found = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, images, labels)
    return tuple(found[name] for name in named)
