"""What each kind of layer does in the four passes that give the slope of a gradient distance.

Let L be the cross-entropy of one image x and g its gradient by the parameters θ. The slope of a
distance D(g) by x is ∂/∂x ⟨v, ∂L/∂θ⟩ with v = ∂D/∂g held fixed (Pearlmutter 1994, Neural
Computation 6(1)). So: forward the image; pull the slope of L back, which gives g; push the change
that θ → θ + εv makes forward; and pull the slope of that change back to the image. Every layer
needs its own value, its first derivative and its curvature, and nothing that is not asked for.

Everything works on N images at once, each with its own v.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from semsim.attacks.lent_curvature import lent_curvature
from semsim.attacks.matched import Outer, OuterAlong, Pair


class Passed(Protocol):
    """A layer after its forward pass: `output`, and what its other passes do.

    Tensors have N first; `along` is v for the layer's own parameters, as `own` gives g, or what
    `matched` mixes.
    """

    output: Tensor

    def own(self, slope: Tensor) -> Sequence[Tensor]:
        """The gradient of each image by the layer's parameters; `slope` is that of `output`."""
        ...

    def matched(self, slope: Tensor, targets: Sequence[Tensor]) -> Sequence[Pair | Outer]:
        """`own` beside the targets of the same parameters."""
        ...

    def pull(self, slope: Tensor) -> Tensor:
        """The slope by the layer's input."""
        ...

    def push(self, change: Tensor | None, along: Sequence[Any]) -> Tensor | None:
        """The change of `output`, when the input changes by `change` and parameters by `along`."""
        ...

    def pull_change(
        self, bent: Tensor, slope: Tensor, change: Tensor | None, along: Sequence[Any]
    ) -> Tensor:
        """The slope of the loss's change by the input, from that by the output, `bent`."""
        ...


class WithParameters:
    """A layer with parameters, whose gradients are small enough to be written out."""

    def own(self, slope: Tensor) -> Sequence[Tensor]:
        raise NotImplementedError

    def matched(self, slope: Tensor, targets: Sequence[Tensor]) -> Sequence[Pair | Outer]:
        return [Pair(*both) for both in zip(self.own(slope), targets, strict=True)]


class _NoParameters:
    def own(self, slope: Tensor) -> Sequence[Tensor]:
        return ()

    def matched(self, slope: Tensor, targets: Sequence[Tensor]) -> Sequence[Pair | Outer]:
        return ()


class Linear:
    """y = W x + b."""

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

    def push(self, change: Tensor | None, along: Sequence[Any]) -> Tensor:
        weight = along[0]
        if isinstance(weight, OuterAlong):
            pushed = weight.times_x()
        else:
            pushed = torch.bmm(weight, self.x[:, :, None])[:, :, 0]
        if len(along) > 1:
            pushed = pushed + along[1]
        return pushed if change is None else pushed + change @ self.layer.weight.T

    def pull_change(
        self, bent: Tensor, slope: Tensor, change: Tensor | None, along: Sequence[Any]
    ) -> Tensor:
        weight = along[0]
        if isinstance(weight, OuterAlong):
            return self.pull(bent) + weight.times_slope()
        return self.pull(bent) + torch.bmm(slope[:, None, :], weight)[:, 0]


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

    def push(self, change: Tensor | None, along: Sequence[Tensor]) -> Tensor:
        factor = along[0] * self.scale
        offset = along[1] - factor * self.mean
        pushed = torch.addcmul(offset[:, :, None, None], self.x, factor[:, :, None, None])
        return pushed if change is None else pushed.addcmul_(change, self.factor)

    def pull_change(
        self, bent: Tensor, slope: Tensor, change: Tensor | None, along: Sequence[Tensor]
    ) -> Tensor:
        factor = (along[0] * self.scale)[:, :, None, None]
        return torch.addcmul(bent * self.factor, slope, factor)


class Elementwise(_NoParameters):
    """y = f(x): its slope f′(x), and its curvature f″(x), None where f is piecewise linear."""

    def __init__(self, output: Tensor, first: Tensor, second: Tensor | None) -> None:
        self.output, self.first, self.second = output, first, second

    def pull(self, slope: Tensor) -> Tensor:
        return slope * self.first

    def push(self, change: Tensor | None, along: Sequence[Tensor]) -> Tensor | None:
        return None if change is None else change * self.first

    def pull_change(
        self, bent: Tensor, slope: Tensor, change: Tensor | None, along: Sequence[Tensor]
    ) -> Tensor:
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
        self.output, self._push, self.pull = output, push, pull

    def push(self, change: Tensor | None, along: Sequence[Tensor]) -> Tensor | None:
        return None if change is None else self._push(change)

    def pull_change(
        self, bent: Tensor, slope: Tensor, change: Tensor | None, along: Sequence[Tensor]
    ) -> Tensor:
        return self.pull(bent)


def relu(layer: nn.Module, x: Tensor) -> Kinked:
    """max(x, 0)."""
    return Kinked(x, x.clamp_min(0), (x > 0).to(x.dtype), 1.0)


def leaky_relu(layer: nn.LeakyReLU, x: Tensor) -> Kinked:
    """x above 0, a fixed share of it below."""
    first = torch.where(x > 0, x.new_tensor(1.0), x.new_tensor(layer.negative_slope))
    return Kinked(x, x * first, first, 1 - layer.negative_slope)


def tanh(layer: nn.Module, x: Tensor) -> Elementwise:
    """The hyperbolic tangent."""
    y = x.tanh()
    first = 1 - y * y
    return Elementwise(y, first, -2 * y * first)


def sigmoid(layer: nn.Module, x: Tensor) -> Elementwise:
    """1 / (1 + exp(−x))."""
    y = x.sigmoid()
    first = y * (1 - y)
    return Elementwise(y, first, first * (1 - 2 * y))


def silu(layer: nn.Module, x: Tensor) -> Elementwise:
    """x · sigmoid(x)."""
    s = x.sigmoid()
    spread = s * (1 - s)
    return Elementwise(x * s, s + x * spread, spread * (2 + x * (1 - 2 * s)))


def softplus(layer: nn.Softplus, x: Tensor) -> Elementwise:
    """log(1 + exp(βx)) / β."""
    first = (layer.beta * x).sigmoid()
    return Elementwise(
        F.softplus(x, layer.beta, layer.threshold), first, layer.beta * first * (1 - first)
    )


def max_pool(layer: nn.MaxPool2d, x: Tensor) -> LinearMap:
    """The largest value of each window; linear while the same one stays the largest."""
    shape = (layer.kernel_size, layer.stride, layer.padding, layer.dilation)
    y, index = F.max_pool2d(x, *shape, layer.ceil_mode, return_indices=True)

    def push(change: Tensor) -> Tensor:
        return change.flatten(2).gather(2, index.flatten(2)).view(y.shape)

    def pull(slope: Tensor) -> Tensor:
        into = torch.zeros_like(x).flatten(2)
        return into.scatter_add_(2, index.flatten(2), slope.flatten(2)).view(x.shape)

    return LinearMap(y, push, pull)


def mean_pool(layer: nn.Module, x: Tensor) -> LinearMap:
    """The mean of the whole map."""
    pixels = x.shape[2] * x.shape[3]

    def push(change: Tensor) -> Tensor:
        return change.mean(dim=(2, 3), keepdim=True)

    def pull(slope: Tensor) -> Tensor:
        return (slope / pixels).expand(x.shape)

    return LinearMap(push(x), push, pull)


def flatten(layer: nn.Module, x: Tensor) -> LinearMap:
    """All but the first dimension joined."""

    def pull(slope: Tensor) -> Tensor:
        return slope.view(x.shape)

    return LinearMap(x.flatten(1), lambda change: change.flatten(1), pull)


def unchanged(layer: nn.Module, x: Tensor) -> LinearMap:
    """x itself."""
    return LinearMap(x, lambda change: change, lambda slope: slope)
