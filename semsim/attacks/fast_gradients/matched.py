"""The gradient of every image beside a target, and mixtures of the two.

A distance by cosine needs of the gradient g and the target t only ⟨g, t⟩ and ‖g‖², and its slope
by g is a mixture of both. For the weight of a linear layer g is an outer product, which is never
written out here: it is by far the largest gradient of small networks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

_JOINED_LIMIT = 4_000_000  # values up to which copying them costs less than many small products


class Pair(NamedTuple):
    """g and t of one parameter as they are, (N, *shape)."""

    gradient: Tensor
    target: Tensor


class Matched(Protocol):
    """Some parameters; dot: ⟨g, t⟩ and square: ‖g‖² of each image, both (N,)."""

    dot: Tensor
    square: Tensor

    def mixed(self, own: Tensor, target: Tensor) -> Sequence[Any]:
        """V = own · g + target · t of each image, for each of the parameters.

        own, target: (N,), what ⟨g, t⟩ and ‖g‖² make of the slope of a distance. Returns one
        (N, *parameter.shape) a parameter, or an `OuterAlong` that stands for it.
        """
        ...


class Written:
    """Parameters whose gradients are written out, joined."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self._shapes = [pair.gradient.shape for pair in pairs]
        self._gradient, self._target = (_joined(part) for part in zip(*pairs, strict=True))
        self.dot = _row_dots(self._gradient, self._target)
        self.square = _row_dots(self._gradient, self._gradient)

    def mixed(self, own: Tensor, target: Tensor) -> Sequence[Tensor]:
        """As `Matched.mixed`, written out."""
        both = torch.addcmul(self._target * target[:, None], self._gradient, own[:, None])
        parts = both.split([shape[1:].numel() for shape in self._shapes], dim=1)
        return [part.view(shape) for part, shape in zip(parts, self._shapes, strict=True)]


class Outer:
    """One parameter with g = slope xᵀ; slope (N, O), x (N, I) and t (N, O, I)."""

    def __init__(self, slope: Tensor, x: Tensor, target: Tensor) -> None:
        self.slope, self.x, self.target = slope, x, target
        self.target_x = torch.bmm(target, x[:, :, None])[:, :, 0]
        self.squares = _row_dots(slope, slope), _row_dots(x, x)
        self.dot, self.square = _row_dots(slope, self.target_x), self.squares[0] * self.squares[1]

    def mixed(self, own: Tensor, target: Tensor) -> "Sequence[OuterAlong]":
        """As `Matched.mixed`, never written out."""
        return [OuterAlong(outer=self, own=own[:, None], target=target[:, None])]


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


Group = tuple[tuple[int, ...], Matched]


def grouped(parameters: Sequence[Pair | Outer], *, joint: bool) -> list[Group]:
    """The parameters, by their places, as few groups as is quick; one each unless `joint`."""
    pairs = {place: one for place, one in enumerate(parameters) if isinstance(one, Pair)}
    size = sum(pair.gradient.numel() for pair in pairs.values())
    if joint and pairs and size <= _JOINED_LIMIT:
        others = [place for place in range(len(parameters)) if place not in pairs]
        return [(tuple(pairs), Written(list(pairs.values()))), *_alone(parameters, others)]
    return _alone(parameters, range(len(parameters)))


def _alone(parameters: Sequence[Pair | Outer], places: Sequence[int]) -> list[Group]:
    found = [(place, parameters[place]) for place in places]
    return [((place,), Written([one]) if isinstance(one, Pair) else one) for place, one in found]


def _joined(tensors: Sequence[Tensor]) -> Tensor:
    if len(tensors) == 1:
        return tensors[0].flatten(1)
    return torch.cat([tensor.flatten(1) for tensor in tensors], dim=1)


def _row_dots(a: Tensor, b: Tensor) -> Tensor:
    return torch.bmm(a[:, None], b[:, :, None]).view(len(a))
