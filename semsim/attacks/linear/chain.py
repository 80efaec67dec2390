"""A classifier read as a chain: convolutions, then fully connected layers, nothing beside them."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn import grad

from semsim.attacks.linear.rank import Convolution, rank_of
from semsim.base.errors import AttackFailedError, SettingsError
from semsim.device import in_float64
from semsim.types import GradientObservation


@dataclass(frozen=True, kw_only=True)
class Activation:
    """An increasing function of one value: itself, its slope, and its inverse.

    Attributes:
        inverse: Takes any value; one that `value` never reaches counts as the nearest that it does.
    """

    name: str
    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]
    inverse: Callable[[Tensor], Tensor]


def activation_of(layer: nn.Module) -> Activation:
    """Return the activation of `layer`. Raises `SettingsError` for one that cannot be undone."""
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


_ADVICE = (
    "Layer-wise inversion works on a TargetModel of convolutions followed by fully connected "
    "layers, each with Tanh, Sigmoid, LeakyReLU or no activation."
)


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One layer with weights, the activation behind it, and the leaked gradients.

    All in float64, on the model's device or on `exact_device` of it.

    Attributes:
        weight: (outputs, inputs, h, w) of a convolution, (outputs, inputs) of a fully connected
            layer.
        inputs, outputs: Shapes of one example.
        stride, padding: (down, right), of convolutions only.
    """

    weight: Tensor
    bias: Tensor | None
    activation: Activation
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    weight_gradient: Tensor
    bias_gradient: Tensor | None
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)

    @property
    def is_convolution(self) -> bool:
        return self.weight.dim() == 4

    @property
    def convolution(self) -> Convolution:
        """Convolution as c(M) describes it: channels, kernel, stride and padding."""
        return Convolution(
            channels=len(self.weight),
            kernel=(self.weight.shape[2], self.weight.shape[3]),
            stride=self.stride,
            padding=self.padding,
        )

    @cached_property
    def hidden(self) -> int:
        """n − rank U of a convolution: how many values of its input no equation decides."""
        if not self.is_convolution:
            return 0
        return math.prod(self.inputs) - rank_of(self.convolution, self.inputs)

    def apply(self, x: Tensor) -> Tensor:
        """W x without bias and activation; (1, *inputs) to (1, *outputs)."""
        if not self.is_convolution:
            return F.linear(x, self.weight)
        return F.conv2d(x, self.weight, None, self.stride, self.padding)

    def pull(self, slope: Tensor, weight: Tensor | None = None) -> Tensor:
        """The transpose of `apply`, or of the same layer with another `weight` of its shape.

        Args:
            slope: (1, *outputs), by W x.

        Returns:
            (1, *inputs).
        """
        kernel = self.weight if weight is None else weight
        if not self.is_convolution:
            return slope @ kernel
        return grad.conv2d_input((1, *self.inputs), kernel, slope, self.stride, self.padding)

    def gradient(self, x: Tensor, slope: Tensor) -> Tensor:
        """Return the weight's gradient at input x, when the loss has `slope` by W x.

        Args:
            x: (1, *inputs).
            slope: (1, *outputs).

        Returns:
            The shape of `weight`.
        """
        if not self.is_convolution:
            return slope.T @ x
        return grad.conv2d_weight(x, self.weight.shape, slope, self.stride, self.padding)

    def shift(self) -> Tensor | float:
        """The bias in a shape that adds to what `apply` returns."""
        if self.bias is None:
            return 0.0
        return self.bias[:, None, None] if self.is_convolution else self.bias


@dataclass(frozen=True, kw_only=True)
class Chain:
    """All stages of a classifier, first to last, and how it normalises images.

    Attributes:
        shape: (C, H, W) of an image.
        mean, std: (1, C, 1, 1); the first stage sees (image − mean) / std.
    """

    stages: tuple[Stage, ...]
    shape: tuple[int, int, int]
    mean: Tensor
    std: Tensor

    def normalised(self, images: Tensor) -> Tensor:
        """Return the first stage's input for images, (N, C, H, W) in [0, 1]; of the same shape."""
        return (images - self.mean) / self.std

    def images(self, x: Tensor) -> Tensor:
        """The images, not clamped, of which the first stage sees x; both (N, C, H, W)."""
        return x * self.std + self.mean


def chain_of(seen: GradientObservation) -> Chain:
    """The chain behind an observation.

    Raises `SettingsError` naming a layer that it cannot have, `AttackFailedError` where a gradient
    is not finite.
    """
    if any(not torch.isfinite(gradient).all() for gradient in seen.gradients):
        raise AttackFailedError("A gradient is not finite; there is nothing to solve for.")
    model = seen.model
    body, head = getattr(model, "body", None), getattr(model, "head", None)
    if not isinstance(body, nn.Module) or not isinstance(head, nn.Module):
        raise SettingsError(f"{type(model).__name__} has no `body` and `head`. {_ADVICE}")
    leaked = iter(seen.gradients)
    stages: list[Stage] = []
    shape: tuple[int, ...] = seen.shape
    for layer in (*_in_order(body), *_in_order(head)):
        if isinstance(layer, nn.Conv2d | nn.Linear):
            stages.append(_stage(layer, shape, leaked))
            shape = stages[-1].outputs
        elif not isinstance(layer, nn.Flatten):
            _add_activation(stages, layer)
    _check_order(stages)
    return Chain(
        stages=tuple(stages), shape=seen.shape, mean=_exact(model.mean), std=_exact(model.std)
    )


def _in_order(module: nn.Module) -> Iterator[nn.Module]:
    if isinstance(module, nn.Sequential):
        for part in module:
            yield from _in_order(part)
    else:
        yield module


def _stage(layer: nn.Conv2d | nn.Linear, shape: tuple[int, ...], leaked: Iterator[Tensor]) -> Stage:
    inputs = shape
    if isinstance(layer, nn.Linear):
        inputs = (layer.in_features,)
    weight = _exact(layer.weight)
    stage = Stage(
        weight=weight,
        bias=None if layer.bias is None else _exact(layer.bias),
        activation=IDENTITY,
        inputs=inputs,
        outputs=(len(weight),),
        weight_gradient=_exact(next(leaked)),
        bias_gradient=None if layer.bias is None else _exact(next(leaked)),
    )
    if isinstance(layer, nn.Linear):
        return stage
    stage = replace(stage, stride=_pair(layer.stride), padding=_padding(layer))
    output = stage.apply(weight.new_zeros(1, *inputs))
    return replace(stage, outputs=tuple(output.shape[1:]))


def _padding(layer: nn.Conv2d) -> tuple[int, int]:
    plain = layer.groups == 1 and _pair(layer.dilation) == (1, 1)
    if not plain or layer.padding_mode != "zeros" or isinstance(layer.padding, str):
        raise SettingsError(
            f"Layer-wise inversion cannot undo {layer}: it needs groups=1, dilation=1 and zero "
            "padding given as a number."
        )
    return _pair(layer.padding)


def _pair(value: int | tuple[int, ...]) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def _add_activation(stages: list[Stage], layer: nn.Module) -> None:
    activation = activation_of(layer)
    if activation is IDENTITY:
        return
    if not stages or stages[-1].activation is not IDENTITY:
        raise SettingsError(f"{type(layer).__name__} does not follow a layer. {_ADVICE}")
    stages[-1] = replace(stages[-1], activation=activation)


def _check_order(stages: list[Stage]) -> None:
    kinds = [stage.is_convolution for stage in stages]
    if not stages or kinds[-1] or kinds != sorted(kinds, reverse=True):
        names = ", ".join("convolution" if kind else "fully connected" for kind in kinds)
        raise SettingsError(f"The layers are: {names or 'none'}. {_ADVICE}")


def _exact(values: Tensor) -> Tensor:
    return in_float64(values.detach())
