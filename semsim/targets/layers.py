"""Pieces that several architectures share."""

import copy
from contextlib import AbstractContextManager

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from semsim.base.registry import Registry

# Ends a sentence on a layer for which `overwrites_what_is_read`.
OVERWRITES = (
    "with inplace=True overwrites what another one reads, and an attack needs both. Take "
    "inplace=False and write what is meant."
)
_ROUNDING = 1e-3  # of the largest logit, by which two ways to compute it may differ

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


class HardSigmoid(nn.Module):
    """`nn.Hardsigmoid`, of which torch knows no second derivative, made of what has one."""

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """relu6(x + 3) / 6 of values of any shape."""
        return F.relu6(values + 3) / 6


def twice_differentiable(network: nn.Module) -> nn.Module:
    """`network` itself, changed so that its gradient has a gradient, which attacks follow.

    No layer overwrites what it is given, for the values before are needed, and none is left whose
    second derivative torch lacks; attention is seen to by `plain_attention`.
    """
    for module in list(network.modules()):
        if hasattr(module, "inplace"):
            setattr(module, "inplace", False)  # noqa: B010  no module is typed to have it
        for name, inner in module.named_children():
            if type(inner) is nn.Hardsigmoid:
                setattr(module, name, HardSigmoid())
    return network


def overwrites_what_is_read(network: nn.Module, images: torch.Tensor) -> bool:
    """Check whether a layer overwrites what others still read.

    `twice_differentiable` would then make another network of it. `network` is left alone.

    Args:
        images: (N, C, H, W), as the network takes them, by which both are compared.
    """
    if not any(getattr(module, "inplace", False) for module in network.modules()):
        return False
    plain = copy.deepcopy(network).to(images).eval()
    found = []
    for one in (plain, twice_differentiable(copy.deepcopy(plain))):
        with torch.no_grad(), torch.random.fork_rng():
            torch.manual_seed(0)
            found.append(one(images.clone()))
    room = _ROUNDING * float(found[0].abs().nan_to_num(0, 0, 0).max())
    return not torch.allclose(found[0], found[1], rtol=0, atol=room, equal_nan=True)


def plain_attention() -> AbstractContextManager[None]:
    """While it lasts, attention is computed in the way that can be differentiated twice."""
    return sdpa_kernel(SDPBackend.MATH)


def idle_parameters(network: nn.Module, logits: torch.Tensor) -> list[str]:
    """Parameters that `logits`, (N, classes), do not depend on or that are frozen, by name."""
    named = list(network.named_parameters())
    frozen = [name for name, one in named if not one.requires_grad]
    if not logits.requires_grad:
        return [name for name, _ in named]
    learned = [(name, one) for name, one in named if one.requires_grad]
    found = torch.autograd.grad(logits.sum(), [one for _, one in learned], allow_unused=True)
    unused = [name for (name, _), one in zip(learned, found, strict=True) if one is None]
    return frozen + unused
