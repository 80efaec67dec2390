"""Pieces that several architectures share."""

import torch
from torch import nn

from semsim.registry import Registry

ACTIVATIONS: Registry[type[nn.Module]] = Registry(
    "activation",
    {
        "relu": nn.ReLU,
        "leaky-relu": nn.LeakyReLU,
        "silu": nn.SiLU,
        "softplus": nn.Softplus,
        "tanh": nn.Tanh,
        "sigmoid": nn.Sigmoid,
    },
)


def activation_layer(name: str) -> nn.Module:
    """A fresh activation layer; `UnknownNameError` lists the known ones."""
    return ACTIVATIONS[name]()


@torch.no_grad()
def feature_count(body: nn.Module, channels: int, size: tuple[int, int]) -> int:
    """The number of features that `body` makes of one image of `size` (H, W)."""
    body.eval()
    count = body(torch.zeros(1, channels, *size)).shape[1]
    body.train()
    return int(count)


def not_in_place(network: nn.Module) -> nn.Module:
    """`network` itself, with no layer that overwrites what it is given.

    An attack differentiates through the gradient, for which the values before are needed.
    """
    for module in network.modules():
        if hasattr(module, "inplace"):
            setattr(module, "inplace", False)  # noqa: B010  no module is typed to have it
    return network
