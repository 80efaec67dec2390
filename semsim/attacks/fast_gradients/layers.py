"""The four passes of each kind of layer, which give the slope of a gradient distance.

Let L be the cross-entropy of one image x and g its gradient by the parameters θ. The slope of a
distance D(g) by x is ∂/∂x ⟨v, ∂L/∂θ⟩ with v = ∂D/∂g held fixed (Pearlmutter 1994, Neural
Computation 6(1)). So: forward the image; pull the slope of L back, which gives g; push the change
that θ → θ + εv makes forward; and pull the slope of that change back to the image. Every layer
needs its own value, its first derivative and its curvature, and nothing that is not asked for.

Everything works on N images at once, each with its own v.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from semsim.attacks.fast_gradients.matched import Outer, OuterAlong, Pair
from semsim.attacks.fast_gradients.surrogate_curvature import lent_curvature

Change = Tensor | None  # of a layer's input, (N, *inputs); None for no change
Along = Sequence[
    Any
]  # v for a layer's parameters, one (N, *parameter.shape) each, or what is mixed

# Input channels up to which a product of matrices beats torch's convolution on one image: measured,
# 1.4 times in all of LeNet; on more channels, and on many images, neither wins.
_FEW = 12


class Passed(Protocol):
    """A layer after its forward pass: `output`, and what its other passes do.

    output: (N, *outputs). `along` is v for the layer's own parameters, as `own` gives g, or what
    `matched` mixes. Nothing here checks its arguments: `second_order` asks only what fits.
    """

    output: Tensor

    def own(self, slope: Tensor) -> Sequence[Tensor]:
        """The gradient of each image by the layer's parameters, one (N, *parameter.shape) each.

        slope: (N, *outputs), that of the loss by `output`.
        """
        ...

    def matched(self, slope: Tensor, targets: Sequence[Tensor]) -> Sequence[Pair | Outer]:
        """`own` beside the targets of the same parameters, each (N, *parameter.shape).

        slope: (N, *outputs), that of the loss by `output`.
        """
        ...

    def pull(self, slope: Tensor) -> Tensor:
        """The slope by the layer's input, (N, *inputs), from that by `output`, (N, *outputs)."""
        ...

    def push(self, change: Change, along: Along) -> Tensor | None:
        """The change of `output`, when the input changes by `change` and parameters by `along`.

        change: (N, *inputs), None for no change. along: one (N, *parameter.shape) a parameter.
        Returns (N, *outputs), None where nothing changes.
        """
        ...

    def pull_change(self, bent: Tensor, slope: Tensor, change: Change, along: Along) -> Tensor:
        """The slope of the loss's change by the input, (N, *inputs), from that by `output`.

        bent: (N, *outputs), that by `output`. slope: (N, *outputs), of the loss itself. change,
        along: as `push` had them.
        """
        ...


class WithParameters(Passed, Protocol):
    """A layer with parameters, whose gradients are small enough to be written out."""

    def matched(self, slope: Tensor, targets: Sequence[Tensor]) -> Sequence[Pair | Outer]:
        return [Pair(*both) for both in zip(self.own(slope), targets, strict=True)]


class _NoParameters(Passed, Protocol):
    def own(self, slope: Tensor) -> Sequence[Tensor]:
        return ()

    def matched(self, slope: Tensor, targets: Sequence[Tensor]) -> Sequence[Pair | Outer]:
        return ()


class Linear(Passed):
    """y = W x + b; x: (N, I), y: (N, O)."""

    def __init__(self, layer: nn.Linear, x: Tensor) -> None:
        self.layer, self.x = layer, x
        self.output = F.linear(x, layer.weight, layer.bias)

    def own(self, slope: Tensor) -> Sequence[Tensor]:
        weight = slope[:, :, None] * self.x[:, None, :]
        # A copy: what is given out must not be what the passes keep, or each keeps the other alive.
        return (weight,) if self.layer.bias is None else (weight, slope.clone())

    def pull(self, slope: Tensor) -> Tensor:
        return slope @ self.layer.weight

    def matched(self, slope: Tensor, targets: Sequence[Tensor]) -> Sequence[Pair | Outer]:
        weight = Outer(slope, self.x, targets[0])
        return (weight,) if self.layer.bias is None else (weight, Pair(slope, targets[1]))

    def push(self, change: Change, along: Along) -> Tensor:
        weight = along[0]
        if isinstance(weight, OuterAlong):
            pushed = weight.times_x()
        else:
            pushed = torch.bmm(weight, self.x[:, :, None])[:, :, 0]
        if len(along) > 1:
            pushed = pushed + along[1]
        return pushed if change is None else pushed + change @ self.layer.weight.T

    def pull_change(self, bent: Tensor, slope: Tensor, change: Change, along: Along) -> Tensor:
        weight = along[0]
        if isinstance(weight, OuterAlong):
            return self.pull(bent) + weight.times_slope()
        return self.pull(bent) + torch.bmm(slope[:, None, :], weight)[:, 0]


def convolution(layer: nn.Conv2d, x: Tensor) -> Passed:
    """The convolution of x, (N, C, H, W), in the way that is faster for it."""
    return (SmallConvolution if layer.in_channels <= _FEW else Convolution)(layer, x)


class Convolution(WithParameters):
    """y = W ∗ x + b; x: (N, C, H, W), y: (N, O, h, w)."""

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
        if isinstance(layer.padding, str):  # such a layer never gets here, see `second_order`
            raise ValueError("Expected padding in pixels.")
        self.layer, self.columns, self.size = layer, _columns(layer, x), x.shape[2:]
        self.weight = layer.weight.flatten(1)
        self.shape = (len(x), len(self.weight), *_output_size(layer, x))
        self.output = self._with_bias(self.weight @ self.columns, layer.bias)

    def own(self, slope: Tensor) -> Sequence[Tensor]:
        weight = torch.bmm(slope.flatten(2), self.columns.transpose(1, 2))
        weight = weight.view(len(slope), *self.layer.weight.shape)
        return (weight,) if self.layer.bias is None else (weight, slope.sum(dim=(2, 3)))

    def pull(self, slope: Tensor) -> Tensor:
        return self._added_up(self.weight.T @ slope.flatten(2))

    def push(self, change: Change, along: Along) -> Tensor:
        pushed = torch.bmm(along[0].flatten(2), self.columns)
        if change is not None:
            pushed += self.weight @ _columns(self.layer, change)
        return self._with_bias(pushed, along[1] if len(along) > 1 else None)

    def pull_change(self, bent: Tensor, slope: Tensor, change: Change, along: Along) -> Tensor:
        columns = self.weight.T @ bent.flatten(2)
        weights = along[0].flatten(2).transpose(1, 2)
        return self._added_up(columns.baddbmm_(weights, slope.flatten(2)))

    def _with_bias(self, flat: Tensor, bias: Tensor | None) -> Tensor:
        if bias is not None:
            flat += bias.view(-1, self.shape[1], 1)
        return flat.view(self.shape)

    def _added_up(self, columns: Tensor) -> Tensor:
        layer = self.layer
        padding, stride = _padding(layer), layer.stride
        return F.fold(columns, self.size, layer.kernel_size, padding=padding, stride=stride)


def _columns(layer: nn.Conv2d, x: Tensor) -> Tensor:
    """Return the input of each tap at each place, (N, C · taps, places): `F.unfold`, but faster."""
    (down, right), (height, width) = _padding(layer), layer.kernel_size
    padded = F.pad(x, (right, right, down, down))
    seen = padded.unfold(2, height, layer.stride[0]).unfold(3, width, layer.stride[1])
    count, channels, rows, columns = seen.shape[:4]
    ordered = seen.permute(0, 1, 4, 5, 2, 3)
    return ordered.reshape(count, channels * height * width, rows * columns)


def _output_size(layer: nn.Conv2d, x: Tensor) -> tuple[int, int]:
    (down, right), (height, width) = _padding(layer), layer.kernel_size
    rows = (x.shape[2] + 2 * down - height) // layer.stride[0] + 1
    return rows, (x.shape[3] + 2 * right - width) // layer.stride[1] + 1


def _padding(layer: nn.Conv2d) -> tuple[int, int]:
    return cast(tuple[int, int], layer.padding)


class BatchNorm(WithParameters):
    """y = (x − m) / s · w + b with running m and s."""

    def __init__(self, layer: nn.BatchNorm2d, x: Tensor) -> None:
        mean, variance = layer.running_mean, layer.running_var
        if mean is None or variance is None:  # such a layer never gets here, see `second_order`
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


class Elementwise(_NoParameters):
    """y = f(x): its slope f′(x), and its curvature f″(x), None where f is piecewise linear."""

    def __init__(self, output: Tensor, first: Tensor, second: Tensor | None) -> None:
        self.output, self.first, self.second = output, first, second

    def pull(self, slope: Tensor) -> Tensor:
        return slope * self.first

    def push(self, change: Change, along: Along) -> Tensor | None:
        return None if change is None else change * self.first

    def pull_change(self, bent: Tensor, slope: Tensor, change: Change, along: Along) -> Tensor:
        pulled = bent * self.first
        if self.second is None or change is None:
            return pulled
        return pulled.addcmul_(slope * change, self.second)


class Kinked(Elementwise):
    """y = f(x) whose slope jumps at 0 by `jump`; it has no curvature until it is lent one."""

    def __init__(self, x: Tensor, output: Tensor, first: Tensor, jump: float) -> None:
        super().__init__(output, first, None)
        self.x, self.jump = x, jump

    def lend(self, curvature: float) -> None:
        """Take this share of `lent_curvature` for f″."""
        self.second = lent_curvature(self.x, curvature * self.jump)


class LinearMap(_NoParameters):
    """A layer without parameters that is linear in its input, at this input."""

    def __init__(
        self,
        output: Tensor,
        push: Callable[[Tensor], Tensor],
        pull: Callable[[Tensor], Tensor],
    ) -> None:
        self.output, self._push, self._pull = output, push, pull

    def pull(self, slope: Tensor) -> Tensor:
        return self._pull(slope)

    def push(self, change: Change, along: Along) -> Tensor | None:
        return None if change is None else self._push(change)

    def pull_change(self, bent: Tensor, slope: Tensor, change: Change, along: Along) -> Tensor:
        return self._pull(bent)


def relu(layer: nn.Module, x: Tensor) -> Kinked:
    """max(x, 0), of any shape."""
    return Kinked(x, x.clamp_min(0), (x > 0).to(x.dtype), 1.0)


def leaky_relu(layer: nn.LeakyReLU, x: Tensor) -> Kinked:
    """x above 0, a fixed share of it below, of any shape."""
    first = torch.where(x > 0, x.new_tensor(1.0), x.new_tensor(layer.negative_slope))
    return Kinked(x, x * first, first, 1 - layer.negative_slope)


def tanh(layer: nn.Module, x: Tensor) -> Elementwise:
    """The hyperbolic tangent of x, of any shape."""
    y = x.tanh()
    first = 1 - y * y
    return Elementwise(y, first, -2 * y * first)


def sigmoid(layer: nn.Module, x: Tensor) -> Elementwise:
    """1 / (1 + exp(−x)), of any shape."""
    y = x.sigmoid()
    first = y * (1 - y)
    return Elementwise(y, first, first * (1 - 2 * y))


def silu(layer: nn.Module, x: Tensor) -> Elementwise:
    """x · sigmoid(x), of any shape."""
    s = x.sigmoid()
    spread = s * (1 - s)
    return Elementwise(x * s, s + x * spread, spread * (2 + x * (1 - 2 * s)))


def softplus(layer: nn.Softplus, x: Tensor) -> Elementwise:
    """log(1 + exp(βx)) / β, and x itself where βx is above the threshold; of any shape."""
    plain = layer.beta * x > layer.threshold
    first = (layer.beta * x).sigmoid().masked_fill_(plain, 1.0)
    return Elementwise(
        F.softplus(x, layer.beta, layer.threshold), first, layer.beta * first * (1 - first)
    )


def max_pool(layer: nn.MaxPool2d, x: Tensor) -> LinearMap:
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

    return LinearMap(y, push, pull)


def mean_pool(layer: nn.Module, x: Tensor) -> LinearMap:
    """The mean of the whole map: (N, C, H, W) to (N, C, 1, 1)."""
    pixels = x.shape[2] * x.shape[3]

    def push(change: Tensor) -> Tensor:
        return change.mean(dim=(2, 3), keepdim=True)

    def pull(slope: Tensor) -> Tensor:
        return (slope / pixels).expand(x.shape)

    return LinearMap(push(x), push, pull)


def flatten(layer: nn.Module, x: Tensor) -> LinearMap:
    """All but the first dimension joined: (N, …) to (N, d)."""

    def pull(slope: Tensor) -> Tensor:
        return slope.view(x.shape)

    return LinearMap(x.flatten(1), lambda change: change.flatten(1), pull)


def unchanged(layer: nn.Module, x: Tensor) -> LinearMap:
    """x itself, of any shape."""
    return LinearMap(x, lambda change: change, lambda slope: slope)
