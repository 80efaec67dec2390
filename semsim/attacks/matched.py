"""The gradient of every image by one parameter beside a target, and mixtures of the two.

A distance by cosine needs of each parameter only ⟨g, t⟩ and ‖g‖², and its slope by the gradient g
is a mixture of g and the target t. For a linear layer g is an outer product, which is never
written out here: it is by far the largest gradient of small networks.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor


class Matched(Protocol):
    """dot: ⟨g, t⟩ and square: ‖g‖² of each image, both (N,)."""

    dot: Tensor
    square: Tensor

    def mixed(self, own: Tensor, target: Tensor) -> Any:
        """`own` times g plus `target` times t; both are (N,). A tensor, or an `OuterAlong`."""
        ...


class Written:
    """g and t as they are, (N, *shape)."""

    def __init__(self, gradient: Tensor, target: Tensor) -> None:
        self._both = gradient, target
        self.dot, self.square = _row_dots(gradient, target), _row_dots(gradient, gradient)

    def mixed(self, own: Tensor, target: Tensor) -> Tensor:
        gradient, wanted = self._both
        shape = (-1, *[1] * (gradient.dim() - 1))
        return torch.addcmul(wanted * target.view(shape), gradient, own.view(shape))


class Outer:
    """g = slope xᵀ, with slope (N, O), x (N, I) and t (N, O, I)."""

    def __init__(self, slope: Tensor, x: Tensor, target: Tensor) -> None:
        self.slope, self.x, self.target = slope, x, target
        self.target_x = torch.bmm(target, x[:, :, None])[:, :, 0]
        self.squares = _row_dots(slope, slope), _row_dots(x, x)
        self.dot, self.square = _row_dots(slope, self.target_x), self.squares[0] * self.squares[1]

    def mixed(self, own: Tensor, target: Tensor) -> "OuterAlong":
        return OuterAlong(outer=self, own=own[:, None], target=target[:, None])


@dataclass(frozen=True, kw_only=True)
class OuterAlong:
    """V = own · slope xᵀ + target · t of each image, as far as the passes of its layer need it."""

    outer: Outer
    own: Tensor
    target: Tensor

    def times_x(self) -> Tensor:
        """V x, (N, O)."""
        one = self.outer
        return self.own * one.squares[1][:, None] * one.slope + self.target * one.target_x

    def times_slope(self) -> Tensor:
        """Vᵀ slope, (N, I)."""
        one = self.outer
        by_target = torch.bmm(one.slope[:, None], one.target)[:, 0]
        return self.own * one.squares[0][:, None] * one.x + self.target * by_target


def _row_dots(a: Tensor, b: Tensor) -> Tensor:
    return torch.bmm(a.reshape(len(a), 1, -1), b.reshape(len(b), -1, 1)).view(len(a))
