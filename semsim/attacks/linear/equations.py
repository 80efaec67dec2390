"""Equations of one convolution's input: Eq. 4 of COPA as operators, never as a matrix."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from semsim.attacks.linear.chain import Stage
from semsim.attacks.linear.least_squares import Parts

_SMALL = 1e-6  # beside K's mean square: keeps the root where slopes depend on each other
_NOTHING = 1e-14  # beside the largest eigenvalue of a square this one is rounding
Pair = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Patches:
    """`torch.nn.functional.unfold` and `fold` of one example, for many examples of one shape.

    Those look up where each value goes, every time; here whole rows are copied and added, between
    buffers and views of them that are made once. What `of` returns holds until the next call.

    Attributes:
        inputs: (C, H, W).
        positions: Of the kernel, (down, right).
        like: Has the dtype and device.
    """

    inputs: tuple[int, int, int]
    kernel: Pair
    positions: Pair
    stride: Pair
    padding: Pair
    like: Tensor

    def of(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The patches of x, (1, C, H, W), as (kernel × C, positions), and the same transposed."""
        self._input.copy_(x)
        self._copied.copy_(self._seen)
        return self._found

    def sum(self, left: Tensor, right: Tensor) -> Tensor:
        """The transpose of `of`, of left @ right: the sum of patches onto (1, C, H, W).

        Args:
            left: (kernel × C, any).
            right: (any, positions). Kernels are summed down, then right, so that one of 3×3 takes 6
                additions, not 9.
        """
        torch.mm(left, right, out=self._products)
        self._columns.zero_()
        for onto, part in self._down:
            onto.add_(part)
        self._total.zero_()
        for onto, part in self._right:
            onto.add_(part)
        return self._result.clone()

    @cached_property
    def _padded(self) -> Tensor:
        """The input with its border, which stays 0."""
        channels, height, width = self.inputs
        down, right = self.padding
        return self.like.new_zeros(1, channels, height + 2 * down, width + 2 * right)

    @cached_property
    def _input(self) -> Tensor:
        return self._inside(self._padded)

    @cached_property
    def _seen(self) -> Tensor:
        """A view of `_padded` as (*kernel, C, *positions): most values are in it many times."""
        _, channel, row, column = self._padded.stride()
        down, right = self.stride
        return self._padded.as_strided(
            (*self.kernel, self.inputs[0], *self.positions),
            (row, column, channel, down * row, right * column),
        )

    @cached_property
    def _copied(self) -> Tensor:
        return self.like.new_empty(self._seen.shape)

    @cached_property
    def _found(self) -> tuple[Tensor, Tensor]:
        found = self._copied.view(-1, self.positions[0] * self.positions[1])
        return found, found.T

    @cached_property
    def _products(self) -> Tensor:
        return torch.empty_like(self._found[0])

    @cached_property
    def _columns(self) -> Tensor:
        """Summed down, not yet right: (width of the kernel, C, padded height, positions right)."""
        size = (self.kernel[1], self.inputs[0], self._padded.shape[2], self.positions[1])
        return self.like.new_zeros(size)

    @cached_property
    def _down(self) -> list[tuple[Tensor, Tensor]]:
        """For each row of the kernel: the rows of `_columns` that it sees, and what they get."""
        products = self._products.view(self._seen.shape)
        rows = [_steps(tap, self.positions[0], self.stride[0]) for tap in range(self.kernel[0])]
        return [(self._columns[:, :, row], products[tap]) for tap, row in enumerate(rows)]

    @cached_property
    def _total(self) -> Tensor:
        return torch.zeros_like(self._padded)

    @cached_property
    def _right(self) -> list[tuple[Tensor, Tensor]]:
        """For each column of the kernel: the columns of `_total` that it sees, what they get."""
        columns = [_steps(tap, self.positions[1], self.stride[1]) for tap in range(self.kernel[1])]
        return [
            (self._total[0, :, :, column], self._columns[tap]) for tap, column in enumerate(columns)
        ]

    @cached_property
    def _result(self) -> Tensor:
        return self._inside(self._total)

    def _inside(self, padded: Tensor) -> Tensor:
        (_, height, width), (down, right) = self.inputs, self.padding
        return padded[:, :, down : down + height, right : right + width]


def _steps(start: int, count: int, step: int) -> slice:
    return slice(start, start + step * (count - 1) + 1, step)


@dataclass(frozen=True, kw_only=True)
class Equations:
    """Known equations of the input x of a convolution: W x = Z and K x = ∂J/∂W (Eq. 1a, 1b).

    K is the convolution's weight gradient as a linear map of its input, made of the slope ∂J/∂Z.

    Attributes:
        slope, output: ∂J/∂Z and Z − bias, both (1, *stage.outputs).
        factor: By which the equations of K count more than those of W. Where all agree it changes
            nothing but how fast they are solved.
        mix: Where given, K's equations are combined by this matrix, (channels · kernel, same),
            which is as good wherever they agree.
    """

    stage: Stage
    slope: Tensor
    output: Tensor
    factor: float = 1.0
    mix: Tensor | None = None

    def forward(self, x: Tensor) -> Parts:
        """U x: W x as (channels, positions), K x as (channels · kernel, inputs)."""
        patches, turned = self._patches.of(x)
        return self._weight @ patches, self._mixed((self._slope @ turned).view(self._by_input))

    def adjoint(self, parts: Parts) -> Tensor:
        """The transpose of `forward`: the patches (Wᵀ, gradientᵀ) (output; ∂J/∂Z), summed."""
        output, gradient = parts
        left, right, for_gradient, for_output = self._stacks
        for_output.copy_(output)
        if self.mix is None:
            for_gradient.copy_(gradient)
        else:
            torch.mm(self.mix.T, gradient, out=for_gradient)
        return self._patches.sum(left, right)

    @cached_property
    def _stacks(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Both factors of the patches in `adjoint`, and where in them its arguments go."""
        channels = len(self._weight)
        left = torch.cat([self._weight, torch.zeros_like(self._weight)])
        right = torch.cat([torch.zeros_like(self._slope), self._slope])
        return left.T, right, left[channels:].view(self._by_input), right[:channels]

    @cached_property
    def _patches(self) -> Patches:
        stage = self.stage
        channels, height, width = stage.inputs
        return Patches(
            inputs=(channels, height, width),
            kernel=self._kernel,
            positions=(stage.outputs[1], stage.outputs[2]),
            stride=stage.stride,
            padding=stage.padding,
            like=stage.weight,
        )

    @property
    def _kernel(self) -> tuple[int, int]:
        return self.stage.weight.shape[2], self.stage.weight.shape[3]

    @cached_property
    def _weight(self) -> Tensor:
        return _by_tap(self.stage.weight).flatten(1)

    @cached_property
    def _slope(self) -> Tensor:
        return self.factor * self.slope[0].flatten(1)

    @cached_property
    def _by_input(self) -> tuple[int, int]:
        channels, inputs, *kernel = self.stage.weight.shape
        return channels * math.prod(kernel), inputs

    def _mixed(self, gradient: Tensor) -> Tensor:
        return gradient if self.mix is None else self.mix @ gradient

    @property
    def target(self) -> Parts:
        """V of Eq. 4, in the shapes of `forward`."""
        gradient = self.factor * _by_tap(self.stage.weight_gradient)
        return self.output[0].flatten(1), self._mixed(gradient.reshape(self._by_input))

    def residual(self, x: Tensor) -> float:
        """‖U x − V‖ / ‖V‖ at x, (1, *inputs) of the stage; 0 where V is 0."""
        target = torch.cat([part.flatten() for part in self.target])
        found = torch.cat([part.flatten() for part in self.forward(x)])
        size = float(target.norm())
        return float((found - target).norm()) / size if size else 0.0

    def reachable(self) -> "Equations":
        """The same without the part of V that contradicts itself: the least squares x is the same.

        (B ∂J/∂Z, −Bᵀ W) is orthogonal to every U x, whatever the matrix B (channels, channels):
        those are the equations said twice (`security.rank_of`). Where they are all that U's rows
        lack in rank, what is left of V agrees; its solution no longer depends on how rows count.
        """
        stage, slope = self.stage, self._slope
        weight, output = stage.weight.flatten(1), self.output[0].flatten(1)
        gradient = self.factor * stage.weight_gradient.flatten(1)
        slopes, across = torch.linalg.eigh(slope @ slope.T)
        weights, along = torch.linalg.eigh(weight @ weight.T)
        sums = weights[:, None] + slopes
        said = along.T @ (output @ slope.T - weight @ gradient.T) @ across
        said = torch.where(sums > _NOTHING * sums.max(), said / sums, 0.0)
        twice = along @ said @ across.T  # B, for which both differences below are smallest
        output, gradient = output - twice @ slope, gradient + twice.T @ weight
        leaked = (gradient / self.factor).view_as(stage.weight)
        return replace(
            self,
            output=output.view_as(self.output),
            stage=replace(stage, weight_gradient=leaked),
        )

    def balanced(self) -> "Equations":
        """The same with a factor by which K's singular values are about as large as W's.

        About: the root of their mean square. Conjugate gradients then need 2 to 3 times fewer
        iterations than where entries have one size. Where equations contradict each other, as
        those of disturbed gradients do, the least squares solution is that of the weighted ones.
        """
        size = float(self.slope.square().sum()) / len(self.stage.weight)
        return replace(self, factor=math.sqrt(self._spread / size)) if size else self

    def orthogonal(self) -> "Equations":
        """The same with K's equations combined so that all its singular values are W's mean one.

        K is the same matrix, (channels · kernel, H · W), for every input channel: `slope` at every
        place of the kernel. Of that only the square is factorised, as if no border cut it off.
        Where combining would cost more than U itself, K's equations are only `balanced`.
        """
        positions = math.prod(self.stage.outputs[1:])
        slope, kernel = self.slope.transpose(0, 1), self._kernel
        if self._by_input[0] > positions:
            return self.balanced()
        places = torch.eye(math.prod(kernel)).to(slope).view(1, -1, *kernel)
        moved = F.conv_transpose2d(slope, places, stride=self.stage.stride)
        rows = moved.view(self._by_input[0], -1)
        square = rows @ rows.T
        square.diagonal().add_(_SMALL * float(square.diagonal().mean()))
        root, failed = torch.linalg.cholesky_ex(square)
        if failed:
            return self.balanced()
        size = math.sqrt(self._spread) * torch.eye(len(root)).to(root)
        return replace(self, factor=1.0, mix=torch.linalg.solve_triangular(root, size, upper=False))

    @property
    def _spread(self) -> float:
        """The mean square of W's singular values."""
        positions = math.prod(self.stage.outputs[1:])
        rank = min(math.prod(self.stage.outputs), math.prod(self.stage.inputs))
        return float(self.stage.weight.square().sum()) * positions / rank


def _by_tap(weight: Tensor) -> Tensor:
    """A weight, (outputs, inputs, *kernel), as (outputs, kernel, inputs): in order of patches."""
    return weight.flatten(2).transpose(1, 2)
