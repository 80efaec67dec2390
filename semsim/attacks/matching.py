"""Shared core of attacks that match gradients: distance, prior, and the optimisation loop."""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from semsim.errors import AttackFailedError
from semsim.progress import Progress, Report
from semsim.types import AttackedModel

REPORT_EVERY = 20


def parameter_gradients(
    model: AttackedModel, images: Tensor, labels: Tensor, *, differentiable: bool
) -> tuple[Tensor, ...]:
    """Gradient of the mean cross-entropy with respect to every parameter of `model`.

    images: (N, C, H, W) in [0, 1]. labels: (N,) class indices.
    differentiable: keep the graph, so that the result can be differentiated again.
    """
    loss = F.cross_entropy(model(images), labels)
    return torch.autograd.grad(loss, tuple(model.parameters()), create_graph=differentiable)


def cosine_distance(found: Sequence[Tensor], target: Sequence[Tensor]) -> Tensor:
    """One minus the cosine of two gradients, all tensors joined (Geiping et al. 2020, Eq. 4)."""
    dot = torch.stack([(a * b).sum() for a, b in zip(found, target, strict=True)]).sum()
    norm = torch.stack([a.square().sum() for a in found]).sum().sqrt()
    target_norm = torch.stack([b.square().sum() for b in target]).sum().sqrt()
    return 1 - dot / (norm * target_norm).clamp_min(1e-12)


def total_variation(images: Tensor) -> Tensor:
    """Anisotropic total variation: mean |dx| + mean |dy| of (N, C, H, W)."""
    dx = (images[..., :, 1:] - images[..., :, :-1]).abs().mean()
    dy = (images[..., 1:, :] - images[..., :-1, :]).abs().mean()
    return dx + dy


def minimise_by_signed_adam(
    objective: Callable[[Tensor], Tensor],
    start: Tensor,
    *,
    bounds: tuple[Tensor, Tensor],
    steps: int,
    lr: float,
    report: Report,
) -> tuple[Tensor, float]:
    """Adam on the sign of the gradient, step size ×0.1 at 3/8, 5/8 and 7/8, boxed each step.

    Returns the last iterate and its objective. Raises `AttackFailedError` when the objective is
    no longer finite: a diverged attack has no image.
    """
    unknown = start.clone().requires_grad_(True)
    optimiser = torch.optim.Adam([unknown], lr=lr)
    schedule = torch.optim.lr_scheduler.MultiStepLR(
        optimiser, milestones=[round(steps * part / 8) for part in (3, 5, 7)], gamma=0.1
    )
    value = float("nan")
    for step in range(1, steps + 1):
        loss = objective(unknown)
        value = loss.item()
        if not torch.isfinite(loss):
            raise AttackFailedError(f"The objective became {value} at step {step} of {steps}.")
        (gradient,) = torch.autograd.grad(loss, unknown)
        unknown.grad = gradient.sign()
        optimiser.step()
        schedule.step()
        with torch.no_grad():
            unknown.clamp_(*bounds)
        if step % REPORT_EVERY == 0 or step == steps:
            report(Progress(step, steps, values={"objective": value}))
    return unknown.detach(), value
