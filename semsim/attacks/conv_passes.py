"""Convolution in the four passes of `layer_passes`, in two ways for two sizes."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from semsim.attacks.layer_passes import Passed, WithParameters

# Input channels up to which a product of matrices beats torch's convolution on one image: measured,
# 1.4 times in all of LeNet; on more channels, and on many images, neither wins.
_FEW = 12


def convolution(layer: nn.Conv2d, x: Tensor) -> Passed:
    """The convolution in the way that is faster for it."""
    return (SmallConvolution if layer.in_channels <= _FEW else Convolution)(layer, x)


class Convolution(WithParameters):
    """y = W ∗ x + b."""

    def __init__(self, layer: nn.Conv2d, x: Tensor) -> None:
        self.layer, self.x = layer, x
        self.output = F.conv2d(x, layer.weight, layer.bias, layer.stride, layer.padding)

    def own(self, slope: Tensor) -> Sequence[Tensor]:
        weight = self._of_each(slope, None)
        return (weight,) if self.layer.bias is None else (weight, slope.sum(dim=(2, 3)))

    def pull(self, slope: Tensor) -> Tensor:
        return self._backward(slope, self.x, self.layer.weight, 1, by_input=True)

    def push(self, change: Tensor | None, along: Sequence[Tensor]) -> Tensor:
        layer, (count, channels), weight = self.layer, self.x.shape[:2], along[0]
        joined = self.x.reshape(1, count * channels, *self.x.shape[2:])
        kernels = weight.reshape(count * weight.shape[1], *weight.shape[2:])
        bias = along[1].flatten() if len(along) > 1 else None
        pushed = F.conv2d(joined, kernels, bias, layer.stride, layer.padding, groups=count)
        pushed = pushed.view(self.output.shape)
        if change is None:
            return pushed
        return pushed.add_(F.conv2d(change, layer.weight, None, layer.stride, layer.padding))

    def pull_change(
        self, bent: Tensor, slope: Tensor, change: Tensor | None, along: Sequence[Tensor]
    ) -> Tensor:
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

    def push(self, change: Tensor | None, along: Sequence[Tensor]) -> Tensor:
        pushed = torch.bmm(along[0].flatten(2), self.columns)
        if change is not None:
            pushed += self.weight @ _columns(self.layer, change)
        return self._with_bias(pushed, along[1] if len(along) > 1 else None)

    def pull_change(
        self, bent: Tensor, slope: Tensor, change: Tensor | None, along: Sequence[Tensor]
    ) -> Tensor:
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
    """What each tap sees at each place, (N, C · taps, places): `F.unfold`, but faster."""
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
    if isinstance(layer.padding, str):  # such a layer never gets here, see `second_order`
        raise ValueError("Expected padding in pixels.")
    return layer.padding[0], layer.padding[1]
