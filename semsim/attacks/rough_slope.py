"""An attack's slope in bfloat16 as long as it points where float32 does.

Near the picture the distance of gradients is a difference of almost equal numbers, of which
bfloat16 keeps little; far from it a step needs no more. So the slope is compared now and then, and
float32 takes over for good once the two part: for each image when its own do, so that none depends
on its company. What an attack reports of its end is float32 either way, see `Apart.beside_grey`.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from semsim.errors import SettingsError
from semsim.targets.mixed_precision import COSINE

Objective = Callable[[Tensor], Tensor]
_EVERY = 20  # evaluations between two comparisons


class RoughSlope:
    """`objective`, (N, C, H, W) to (N,), whose slope comes from bfloat16 until that will not do.

    The value of an image depends on that image only. exact_from: the evaluation from which all
    images are in float32, counted from 0; None so far.
    """

    def __init__(self, objective: Objective) -> None:
        self._objective, self._count = objective, 0
        self._exact: Tensor | None = None  # (N,), which images are in float32; None: none
        self.exact_from: int | None = None

    def __call__(self, unknown: Tensor) -> Tensor:
        """The value of each image, (N,), of `unknown`, (N, C, H, W); differentiable once.

        Raises `SettingsError` where bfloat16 would turn the first step of an image.
        """
        if self.exact_from is None and self._count % _EVERY == 0:
            self._compare(unknown)
        self._count += 1
        if self.exact_from is not None:
            return self._objective(unknown)
        found: Tensor = _Rough.apply(unknown, self._objective, self._exact)
        return found

    def _compare(self, unknown: Tensor) -> None:
        _, rough = slope_of(self._objective, unknown, mixed=True)
        _, exact = slope_of(self._objective, unknown, mixed=False)
        cosine = F.cosine_similarity(rough.flatten(1), exact.flatten(1))
        parted = ~(cosine >= COSINE)  # so that NaN has parted, too
        if not parted.any():
            return
        if self._count == 0:
            raise SettingsError(
                f"mixed_precision turns this attack's first step: the cosine with float32's is "
                f"{float(cosine.min()):.3f} (at least {COSINE}). Attack without."
            )
        self._exact = parted if self._exact is None else self._exact | parted
        if self._exact.all():
            self.exact_from = self._count


def slope_of(objective: Objective, unknown: Tensor, *, mixed: bool) -> tuple[Tensor, Tensor]:
    """The value of each image, (N,), and its slope by `unknown`, (N, C, H, W), both float32."""
    with (
        torch.enable_grad(),
        torch.autocast(unknown.device.type, torch.bfloat16, enabled=mixed),
    ):
        at = unknown.detach().requires_grad_(True)
        value = objective(at)
        (slope,) = torch.autograd.grad(value.sum(), at)
    return value.detach().float(), slope.float()


class _Rough(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, unknown: Tensor, objective: Objective, exact: Tensor | None) -> Tensor:
        value, ctx.slope = slope_of(objective, unknown, mixed=True)
        if exact is not None:
            own_value, own_slope = slope_of(objective, unknown, mixed=False)
            value = torch.where(exact, own_value, value)
            ctx.slope = torch.where(exact.view(-1, 1, 1, 1), own_slope, ctx.slope)
        return value

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, by_value: Tensor) -> tuple[Tensor, None, None]:
        return ctx.slope * by_value.view(-1, 1, 1, 1), None, None
