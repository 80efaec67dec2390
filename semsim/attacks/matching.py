"""Shared core of attacks that match gradients: distances between gradients, and image priors.

Everything here works on many images at once: a gradient is one tensor (N, *parameter.shape) a
parameter, and a distance or prior is one value an image, (N,), so that no image sways another.
"""

from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from semsim.types import AttackedModel, BatchNormStatistics

Distance = Literal["cosine", "cosine-per-layer", "l2"]

_JOINED_LIMIT = 4_000_000  # values of all tensors and images together
_TINY = 1e-12  # keeps a cosine with a vanished gradient finite


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
    "cosine-per-layer": the mean over tensors of one minus the cosine of each, 0 to 2.
    "l2": squared Euclidean distance, all tensors joined (Zhu et al. 2019, Eq. 3).
    """
    if distance != "cosine-per-layer":
        found, target = _joined(found), _joined(target)
    pairs = list(zip(found, target, strict=True))
    if distance == "l2":
        return torch.stack([_sums((a - b).square()) for a, b in pairs]).sum(0)
    dots = torch.stack([_sums(a * b) for a, b in pairs])
    norms = torch.stack([_sums(a.square()) for a, _ in pairs])
    target_norms = torch.stack([_sums(b.square()) for _, b in pairs])
    if distance == "cosine":
        dots, norms, target_norms = dots.sum(0), norms.sum(0), target_norms.sum(0)
        return 1 - dots / (norms.sqrt() * target_norms.sqrt()).clamp_min(_TINY)
    # A root at exactly 0, which a layer behind dead units has, would have an infinite slope.
    lengths = norms.clamp_min(_TINY**2).sqrt() * target_norms.clamp_min(_TINY**2).sqrt()
    return (1 - dots / lengths.clamp_min(_TINY)).mean(0)


def total_variation_of_each(images: Tensor) -> Tensor:
    """Anisotropic total variation, mean |dx| + mean |dy|: (N, C, H, W) to (N,)."""
    dx = (images[..., :, 1:] - images[..., :, :-1]).abs()
    dy = (images[..., 1:, :] - images[..., :-1, :]).abs()
    return _sums(dx) / dx[0].numel() + _sums(dy) / dy[0].numel()


def cosine_distance(found: Sequence[Tensor], target: Sequence[Tensor]) -> Tensor:
    """The "cosine" distance of one image's gradient, tensor by tensor, without N; a scalar.

    As the authors' code adds it up; `distance_of_each` differs in the last bits.
    """
    dot = torch.stack([(a * b).sum() for a, b in zip(found, target, strict=True)]).sum()
    norm = torch.stack([a.square().sum() for a in found]).sum().sqrt()
    target_norm = torch.stack([b.square().sum() for b in target]).sum().sqrt()
    return 1 - dot / (norm * target_norm).clamp_min(_TINY)


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


def _joined(gradients: Sequence[Tensor]) -> Sequence[Tensor]:
    """All tensors as one, (N, parameters), where copying them costs less than many small sums."""
    if sum(gradient.numel() for gradient in gradients) > _JOINED_LIMIT:
        return gradients
    return [torch.cat([gradient.flatten(1) for gradient in gradients], dim=1)]


def _lengths(differences: Tensor) -> Tensor:
    # The norm has no slope at 0, where an attack that is right ends up.
    return (differences.square().sum(1) + _TINY).sqrt()
