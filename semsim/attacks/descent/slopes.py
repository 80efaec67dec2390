"""The value of an objective of images and its slope by them: what attacks descend on."""

from collections.abc import Callable

import torch
from torch import Tensor

Objective = Callable[[Tensor], Tensor]
Sloped = Callable[[Tensor], tuple[Tensor, Tensor]]


def slope_of(objective: Objective, unknown: Tensor) -> tuple[Tensor, Tensor]:
    """The value of each image, (N,), and its slope by `unknown`, (N, …), of that shape."""
    with torch.enable_grad():
        at = unknown.detach().requires_grad_(True)
        values = objective(at)
        (slope,) = torch.autograd.grad(values.sum(), at)
    return values.detach(), slope
