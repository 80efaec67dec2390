"""Training in which every image counts on its own: its gradient, its chance to be drawn."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.modules.batchnorm import _BatchNorm
from torch.overrides import TorchFunctionMode

from semsim.base.errors import SettingsError
from semsim.defences.base import Defence, Phase
from semsim.defences.dp_sgd import DpSgd

_NUMBERS = 32_000_000  # of gradients held at once, 128 MB


def gradients_by_vmap(
    model: nn.Module, images: Tensor, labels: Tensor, scale: float = 1.0
) -> tuple[Tensor, ...]:
    """Gradient of each image's cross-entropy times `scale`, one (N, *parameter.shape) a parameter.

    Args:
        images: (N, C, H, W) in [0, 1]; where they require a gradient the result can be
            differentiated by them.
        labels: (N,) class indices, or (N, classes) probabilities.
    """
    named = dict(model.named_parameters())

    def loss(parameters: dict[str, Tensor], image: Tensor, label: Tensor) -> Tensor:
        logits = functional_call(model, parameters, (image[None],))
        return scale * F.cross_entropy(logits, label[None])

    parameters = {name: parameter.detach() for name, parameter in named.items()}
    with torch.set_grad_enabled(images.requires_grad), _NormsWrittenOut():
        each = vmap(grad(loss), in_dims=(None, 0, 0), randomness="different")
        found = each(parameters, images, labels)
    return tuple(found[name] for name in named)


class _NormsWrittenOut(TorchFunctionMode):
    """Layer and instance norm with weights of their own, as modules and functions, by formula.

    Under vmap the slope of their gradient is off by some hundredths (torch 2.14), and batch norm
    refuses what autocast hands it in another type than its statistics: it is handed theirs.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = dict(kwargs or {})
        if func is F.batch_norm and args[1] is not None:
            args = (args[0].to(args[1]), *args[1:])
        weight, bias = given.get("weight"), given.get("bias")
        if weight is None:
            return func(*args, **given)
        if func is F.layer_norm:
            return _normed(args[0], -len(args[1]), weight, bias, given["eps"])
        if func is F.instance_norm and given["use_input_stats"]:
            each = (-1, *[1] * (args[0].dim() - 2))
            bias = None if bias is None else bias.view(each)
            return _normed(args[0], 2, weight.view(each), bias, given["eps"])
        return func(*args, **given)


def _normed(x: Tensor, first: int, weight: Tensor, bias: Tensor | None, eps: float) -> Tensor:
    """x less its mean over the dimensions from `first` on, over its deviation; scaled, shifted."""
    x = x.to(weight)  # as under autocast
    dims = tuple(range(first % x.dim(), x.dim()))
    variance, mean = torch.var_mean(x, dim=dims, correction=0, keepdim=True)
    made = (x - mean) * (variance + eps).rsqrt() * weight
    return made if bias is None else made + bias


def clipped_sum(
    model: nn.Module, private: DpSgd, images: Tensor, labels: Tensor, scale: float
) -> tuple[Tensor, ...]:
    """`DpSgd.clipped_sum` over a batch, (N, 3, H, W) or empty, a few images at a time."""
    parameters = list(model.parameters())
    total = [torch.zeros_like(parameter) for parameter in parameters]
    few = max(1, _NUMBERS // sum(parameter.numel() for parameter in parameters))
    for some, names in zip(images.split(few), labels.split(few), strict=True):
        if len(some):
            part = private.clipped_sum(gradients_by_vmap(model, some, names, scale))
            total = [a + b for a, b in zip(total, part, strict=True)]
    return tuple(total)


def poisson_batches(images: int, size: int, rng: torch.Generator) -> list[Tensor]:
    """The batches of an epoch, each image in each by itself with a chance of `size` / `images`.

    Indices, shape (n,) each; a batch may be empty. As many as there are batches of `size` images.
    """
    rate = min(1.0, size / images)
    draws = (torch.rand(images, generator=rng) < rate for _ in range(math.ceil(images / size)))
    return [draw.nonzero().flatten() for draw in draws]


def check_trainable(network: nn.Module, defence: Defence, *, batches: bool = False) -> None:
    """`SettingsError` where `defence` needs each image's own gradient and `network` has none.

    Args:
        batches: Whether what is shared comes from batches, as training does.
    """
    private = defence.private
    mixing = any(isinstance(layer, _BatchNorm) for layer in network.modules())
    phases: list[Phase] = ["train", "attack"] if batches else ["train"]
    if private is not None and mixing and any(map(private.acts, phases)):
        raise SettingsError(
            "DP-SGD cuts the gradient of each image alone, and batch norm mixes the images of a "
            "batch. Take an architecture without it: cnn4, lenet or cnn3."
        )
