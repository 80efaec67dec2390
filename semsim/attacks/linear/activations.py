"""Activations that can be undone piece by piece, with their slopes."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from semsim.errors import SettingsError


@dataclass(frozen=True, kw_only=True)
class Activation:
    """An increasing function of one value: itself, its slope, and its inverse.

    inverse: takes any value; one that `value` never reaches counts as the nearest that it does.
    """

    name: str
    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]
    inverse: Callable[[Tensor], Tensor]


def activation_of(layer: nn.Module) -> Activation:
    """What `layer` computes; `SettingsError` names a layer that cannot be undone."""
    if isinstance(layer, nn.Tanh):
        return TANH
    if isinstance(layer, nn.Sigmoid):
        return SIGMOID
    if isinstance(layer, nn.Identity):
        return IDENTITY
    if isinstance(layer, nn.LeakyReLU) and layer.negative_slope > 0:
        return leaky(layer.negative_slope)
    raise SettingsError(
        f"Layer-wise inversion cannot undo {type(layer).__name__}. It works on convolutions and "
        "fully connected layers with Tanh, Sigmoid, LeakyReLU of positive slope or no activation."
    )


def leaky(share: float) -> Activation:
    """x above 0, `share` (above 0) of it below."""
    return Activation(
        name="LeakyReLU",
        value=lambda z: torch.where(z > 0, z, share * z),
        slope=lambda z: torch.where(z > 0, torch.ones_like(z), torch.full_like(z, share)),
        inverse=lambda x: torch.where(x > 0, x, x / share),
    )


def _undo_tanh(x: Tensor) -> Tensor:
    edge = 1 - torch.finfo(x.dtype).eps
    return x.clamp(-edge, edge).atanh()


def _undo_sigmoid(x: Tensor) -> Tensor:
    return x.logit(eps=torch.finfo(x.dtype).eps)


IDENTITY = Activation(
    name="Identity", value=lambda z: z, slope=torch.ones_like, inverse=lambda x: x
)
TANH = Activation(
    name="Tanh", value=torch.tanh, slope=lambda z: 1 - z.tanh().square(), inverse=_undo_tanh
)
SIGMOID = Activation(
    name="Sigmoid",
    value=torch.sigmoid,
    slope=lambda z: z.sigmoid() * (1 - z.sigmoid()),
    inverse=_undo_sigmoid,
)
