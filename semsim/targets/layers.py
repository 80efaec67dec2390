"""Pieces that several architectures share."""

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
