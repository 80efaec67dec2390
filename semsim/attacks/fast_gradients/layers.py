"""The four passes of each kind of layer, which give the slope of a gradient distance.

Let L be the cross-entropy of one image x and g its gradient by the parameters θ. The slope of a
distance D(g) by x is ∂/∂x ⟨v, ∂L/∂θ⟩ with v = ∂D/∂g held fixed (Pearlmutter 1994, Neural
Computation 6(1)). So: forward the image; pull the slope of L back, which gives g; push the change
that θ → θ + εv makes forward; and pull the slope of that change back to the image. Every layer
needs its own value, its first derivative and its curvature, and nothing that is not asked for.

Everything works on N images at once, each with its own v. Nothing here checks its arguments:
`plan` asks only what fits.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter, sub
from typing import Any, NamedTuple, Protocol, cast
from weakref import ref

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from semsim.attacks.fast_gradients.surrogate_curvature import lent_curvature

Change = Tensor | None  # of a layer's input, (N, *inputs); None for no change


class Outer(NamedTuple):
    """A gradient slope xᵀ that is not written out;

    Attributes:
        slope: (N, O), x: (N, I).
    """

    slope: Tensor
    x: Tensor

    def written(self) -> Tensor:
        """Write it out, (N, O, I)."""
        return self.slope[:, :, None] * self.x[:, None, :]


class OuterAlong(NamedTuple):
    """v for the weight of a linear layer, as far as its passes need it.

    Attributes:
        times_x: V x, (N, O).
        times_slope: Vᵀ slope, (N, I).
    """

    times_x: Tensor
    times_slope: Tensor


Along = Sequence[Any]  # v for a layer's parameters: (N, *parameter.shape) each, or an OuterAlong


class WithParameters(Protocol):
    """A layer with parameters, after its forward pass.

    Attributes:
        output: (N, *outputs).
    """

    output: Tensor

    def own(self, slope: Tensor) -> Sequence[Tensor | Outer]:
        """The gradient of each image by the layer's parameters, one (N, *parameter.shape) each.

        Args:
            slope: (N, *outputs), that of the loss by `output`.
        """
        ...

    def pull(self, slope: Tensor) -> Tensor:
        """The slope by the layer's input, (N, *inputs), from that by `output`, (N, *outputs)."""
        ...

    def push(self, change: Change, along: Along) -> Tensor:
        """The change of `output`, (N, *outputs), when the parameters change by `along`.

        Args:
            change: That of the input, (N, *inputs), None for no change.
        """
        ...

    def pull_change(self, bent: Tensor, slope: Tensor, change: Change, along: Along) -> Tensor:
        """The slope of the loss's change by the input, (N, *inputs), from that by `output`.

        Args:
            bent: (N, *outputs), that by `output`.
            slope: (N, *outputs), of the loss itself.
            change, along: As `push` had them.
        """
        ...


@dataclass
class WithoutParameters:
    """y = f(x) of a layer without parameters, after its forward pass.

    Attributes:
        output: Y, (N, *outputs).
        push: A change of x to that of y.
        pull: A slope by y to that by x.
        second: F″(x) of a function of every element alone; None where f is piecewise linear.
    """

    output: Tensor
    push: Callable[[Tensor], Tensor]
    pull: Callable[[Tensor], Tensor]
    second: Tensor | None = None

    def pull_change(self, bent: Tensor, slope: Tensor, change: Change, along: Along) -> Tensor:
        """As `WithParameters.pull_change`; `along` is empty."""
        pulled = self.pull(bent)
        if self.second is None or change is None:
            return pulled
        return pulled.addcmul_(slope * change, self.second)


Passed = WithParameters | WithoutParameters


class Linear(WithParameters):
    """y = W x + b;

    Attributes:
        x: (N, I), y: (N, O).
    """

    def __init__(self, layer: nn.Linear, x: Tensor) -> None:
        self.layer, self.x = layer, x
        self.output = F.linear(x, layer.weight, layer.bias)

    def own(self, slope: Tensor) -> Sequence[Tensor | Outer]:
        weight = Outer(slope, self.x)
        # A copy: what is given out must not be what the passes keep, or each keeps the other alive.
        return (weight,) if self.layer.bias is None else (weight, slope.clone())

    def pull(self, slope: Tensor) -> Tensor:
        return slope @ self.layer.weight

    def push(self, change: Change, along: Along) -> Tensor:
        weight = along[0]
        if isinstance(weight, OuterAlong):
            pushed = weight.times_x
        else:
            pushed = torch.bmm(weight, self.x[:, :, None])[:, :, 0]
        if len(along) > 1:
            pushed = pushed + along[1]
        return pushed if change is None else pushed + change @ self.layer.weight.T

    def pull_change(self, bent: Tensor, slope: Tensor, change: Change, along: Along) -> Tensor:
        weight = along[0]
        if isinstance(weight, OuterAlong):
            return self.pull(bent) + weight.times_slope
        return self.pull(bent) + torch.bmm(slope[:, None, :], weight)[:, 0]


class ConvolutionPass(WithParameters):
    """y = W ∗ x + b;

    Attributes:
        x: (N, C, H, W), y: (N, O, h, w).
    """

    def __init__(self, layer: nn.Conv2d, x: Tensor) -> None:
        self.layer, self.x = layer, x
        self.output = F.conv2d(x, layer.weight, layer.bias, layer.stride, layer.padding)

    def own(self, slope: Tensor) -> Sequence[Tensor]:
        weight = self._of_each(slope, None)
        return (weight,) if self.layer.bias is None else (weight, slope.sum(dim=(2, 3)))

    def pull(self, slope: Tensor) -> Tensor:
        return self._backward(slope, self.x, self.layer.weight, 1, by_input=True)

    def push(self, change: Change, along: Along) -> Tensor:
        layer, (count, channels), weight = self.layer, self.x.shape[:2], along[0]
        joined = self.x.reshape(1, count * channels, *self.x.shape[2:])
        kernels = weight.reshape(count * weight.shape[1], *weight.shape[2:])
        bias = along[1].flatten() if len(along) > 1 else None
        pushed = F.conv2d(joined, kernels, bias, layer.stride, layer.padding, groups=count)
        pushed = pushed.view(self.output.shape)
        if change is None:
            return pushed
        return pushed.add_(F.conv2d(change, layer.weight, None, layer.stride, layer.padding))

    def pull_change(self, bent: Tensor, slope: Tensor, change: Change, along: Along) -> Tensor:
        return self.pull(bent).add_(self._of_each(slope, along[0]))

    def _of_each(self, slope: Tensor, kernels: Tensor | None) -> Tensor:
        """Per image: the slope by the weight, or, where `kernels` are given, by the input."""
        count, out = slope.shape[:2]
        joined = self.x.reshape(1, -1, *self.x.shape[2:])
        shape = (count * out, *self.layer.weight.shape[1:])
        # Where the weight's slope is asked for, the weight itself is not read.
        weight = self.x.new_empty(shape) if kernels is None else kernels.reshape(shape)
        found = self._backward(
            slope.reshape(1, -1, *slope.shape[2:]),
            joined,
            weight,
            count,
            by_input=kernels is not None,
        )
        return found.view(
            count, *(self.layer.weight.shape if kernels is None else self.x.shape[1:])
        )

    def _backward(
        self, slope: Tensor, x: Tensor, weight: Tensor, groups: int, *, by_input: bool
    ) -> Tensor:
        layer = self.layer
        by_x, by_weight, _ = torch.ops.aten.convolution_backward(
            slope,
            x,
            weight,
            None,
            layer.stride,
            layer.padding,
            layer.dilation,
            False,
            [0, 0],
            groups,
            [by_input, not by_input, False],
        )
        return by_x if by_input else by_weight


class SmallConvolution(WithParameters):
    """y = W ∗ x + b as one matrix product of W and the columns that its taps see."""

    def __init__(self, layer: nn.Conv2d, x: Tensor) -> None:
        self.layer, self.weight = layer, layer.weight.flatten(1)
        self.padding = cast(tuple[int, int], layer.padding)  # in pixels, see `plan`
        self.columns = self._columns(x)
        flat = self.weight @ self.columns
        if layer.bias is not None:
            flat += layer.bias[:, None]
        rows = (x.shape[2] + 2 * self.padding[0] - layer.kernel_size[0]) // layer.stride[0] + 1
        self.output = flat.view(*flat.shape[:2], rows, -1)
        self._added_up: Callable[[Tensor], Tensor] = partial(
            F.fold,
            output_size=x.shape[2:],
            kernel_size=layer.kernel_size,
            padding=self.padding,
            stride=layer.stride,
        )

    def own(self, slope: Tensor) -> Sequence[Tensor]:
        weight = torch.bmm(slope.flatten(2), self.columns.transpose(1, 2))
        weight = weight.view(len(slope), *self.layer.weight.shape)
        return (weight,) if self.layer.bias is None else (weight, slope.sum(dim=(2, 3)))

    def pull(self, slope: Tensor) -> Tensor:
        return self._added_up(self.weight.T @ slope.flatten(2))

    def push(self, change: Change, along: Along) -> Tensor:
        pushed = torch.bmm(along[0].flatten(2), self.columns)
        if change is not None:
            pushed += self.weight @ self._columns(change)
        if len(along) > 1:
            pushed += along[1][:, :, None]
        return pushed.view(self.output.shape)

    def pull_change(self, bent: Tensor, slope: Tensor, change: Change, along: Along) -> Tensor:
        columns = self.weight.T @ bent.flatten(2)
        weights = along[0].flatten(2).transpose(1, 2)
        return self._added_up(columns.baddbmm_(weights, slope.flatten(2)))

    def _columns(self, x: Tensor) -> Tensor:
        """Return each tap's input at each place, (N, C · taps, places): `F.unfold`, but faster."""
        (down, right), (height, width) = self.padding, self.layer.kernel_size
        stride = self.layer.stride
        padded = F.pad(x, (right, right, down, down))
        seen = padded.unfold(2, height, stride[0]).unfold(3, width, stride[1])
        count, channels, rows, columns = seen.shape[:4]
        ordered = seen.permute(0, 1, 4, 5, 2, 3)
        return ordered.reshape(count, channels * height * width, rows * columns)


class BatchNorm(WithParameters):
    """y = (x − m) / s · w + b with running m and s."""

    def __init__(self, layer: nn.BatchNorm2d, x: Tensor) -> None:
        mean, variance = layer.running_mean, layer.running_var
        if mean is None or variance is None:  # such a layer never gets here, see `plan`
            raise ValueError("Batch norm without running statistics has no eval mode.")
        self.x, self.mean = x, mean
        self.scale = (variance + layer.eps).rsqrt()
        self.factor = (self.scale * layer.weight)[:, None, None]
        self.output = torch.addcmul(
            (layer.bias - mean * self.scale * layer.weight)[:, None, None], x, self.factor
        )

    def own(self, slope: Tensor) -> Sequence[Tensor]:
        bias = slope.sum(dim=(2, 3))
        return ((slope * self.x).sum(dim=(2, 3)) - self.mean * bias) * self.scale, bias

    def pull(self, slope: Tensor) -> Tensor:
        return slope * self.factor

    def push(self, change: Change, along: Along) -> Tensor:
        factor = along[0] * self.scale
        offset = along[1] - factor * self.mean
        pushed = torch.addcmul(offset[:, :, None, None], self.x, factor[:, :, None, None])
        return pushed if change is None else pushed.addcmul_(change, self.factor)

    def pull_change(self, bent: Tensor, slope: Tensor, change: Change, along: Along) -> Tensor:
        factor = (along[0] * self.scale)[:, :, None, None]
        return torch.addcmul(bent * self.factor, slope, factor)


@dataclass(kw_only=True)
class Kinked(WithoutParameters):
    """y = f(x) whose slope jumps at x = 0 by `jump`; it has no curvature until it is lent one."""

    x: Tensor
    jump: float

    def lend(self, curvature: float) -> None:
        """Take this share of `lent_curvature` for f″."""
        self.second = lent_curvature(self.x, curvature * self.jump)


def relu(layer: nn.Module, x: Tensor) -> Kinked:
    """max(x, 0), of any shape."""
    times = partial(torch.mul, other=(x > 0).to(x.dtype))
    return Kinked(x.clamp_min(0), times, times, x=x, jump=1.0)


def leaky_relu(layer: nn.LeakyReLU, x: Tensor) -> Kinked:
    """x above 0, a fixed share of it below, of any shape."""
    first = torch.where(x > 0, x.new_tensor(1.0), x.new_tensor(layer.negative_slope))
    times = partial(torch.mul, other=first)
    return Kinked(x * first, times, times, x=x, jump=1 - layer.negative_slope)


def tanh(layer: nn.Module, x: Tensor) -> WithoutParameters:
    """The hyperbolic tangent of x, of any shape."""
    y = x.tanh()
    first = 1 - y * y
    times = partial(torch.mul, other=first)
    return WithoutParameters(y, times, times, -2 * y * first)


def sigmoid(layer: nn.Module, x: Tensor) -> WithoutParameters:
    """1 / (1 + exp(−x)), of any shape."""
    y = x.sigmoid()
    first = y * (1 - y)
    times = partial(torch.mul, other=first)
    return WithoutParameters(y, times, times, first * (1 - 2 * y))


def silu(layer: nn.Module, x: Tensor) -> WithoutParameters:
    """x · sigmoid(x), of any shape."""
    s = x.sigmoid()
    spread = s * (1 - s)
    times = partial(torch.mul, other=s + x * spread)
    return WithoutParameters(x * s, times, times, spread * (2 + x * (1 - 2 * s)))


def softplus(layer: nn.Softplus, x: Tensor) -> WithoutParameters:
    """log(1 + exp(βx)) / β, and x itself where βx is above the threshold; of any shape."""
    plain = layer.beta * x > layer.threshold
    first = (layer.beta * x).sigmoid().masked_fill_(plain, 1.0)
    y = F.softplus(x, layer.beta, layer.threshold)
    times = partial(torch.mul, other=first)
    return WithoutParameters(y, times, times, layer.beta * first * (1 - first))


def max_pool(layer: nn.MaxPool2d, x: Tensor) -> WithoutParameters:
    """The largest value of each window: (N, C, H, W) to (N, C, h, w).

    Linear while the same one stays the largest.
    """
    shape = (layer.kernel_size, layer.stride, layer.padding, layer.dilation)
    y, index = F.max_pool2d(x, *shape, layer.ceil_mode, return_indices=True)

    def push(change: Tensor) -> Tensor:
        return change.flatten(2).gather(2, index.flatten(2)).view(y.shape)

    def pull(slope: Tensor) -> Tensor:
        into = torch.zeros_like(x).flatten(2)
        return into.scatter_add_(2, index.flatten(2), slope.flatten(2)).view(x.shape)

    return WithoutParameters(y, push, pull)


def mean_pool(layer: nn.Module, x: Tensor) -> WithoutParameters:
    """The mean of the whole map: (N, C, H, W) to (N, C, 1, 1)."""
    pixels = x.shape[2] * x.shape[3]

    def push(change: Tensor) -> Tensor:
        return change.mean(dim=(2, 3), keepdim=True)

    def pull(slope: Tensor) -> Tensor:
        return (slope / pixels).expand(x.shape)

    return WithoutParameters(push(x), push, pull)


def flatten(layer: nn.Module, x: Tensor) -> WithoutParameters:
    """All but the first dimension joined: (N, …) to (N, d)."""

    return WithoutParameters(x.flatten(1), layer, partial(torch.reshape, shape=x.shape))


def unchanged(layer: nn.Module, x: Tensor) -> WithoutParameters:
    """x itself, of any shape."""
    return WithoutParameters(x, _same, _same)


def added(x: Tensor, other: Tensor) -> WithoutParameters:
    """x + other, of one shape; each has the slope of the sum, and the sum the changes of both."""
    return WithoutParameters(x + other, _same, _same)


def by_constant(
    operate: Callable[[Tensor, Tensor], Tensor], model: ref[nn.Module], name: str, x: Tensor
) -> WithoutParameters:
    """x less, or over, the tensor of `model` that is called `name`, of the shape of x.

    Args:
        operate: `operator.sub` or `operator.truediv`.
    """
    constant = attrgetter(name)(model())
    scaled = _same if operate is sub else partial(torch.div, other=constant)
    return WithoutParameters(operate(x, constant), scaled, scaled)


def _same(values: Tensor) -> Tensor:
    return values
