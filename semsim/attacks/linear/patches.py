"""The patches that a convolution sees of its input, and their sum back onto it."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

Pair = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Patches:
    """`torch.nn.functional.unfold` and `fold` of one example, for many examples of one shape.

    Those look up where each value goes, every time; here whole rows are copied and added, between
    buffers and views of them that are made once. What `of` returns holds until the next call.

    inputs: (C, H, W). positions: of the kernel, (down, right). like: has the dtype and device.
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

        left: (kernel × C, any). right: (any, positions). Kernels are summed down, then right, so
        that one of 3×3 takes 6 additions, not 9.
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
