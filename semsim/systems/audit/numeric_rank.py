"""The rank of U for one network's own weights and gradient, beside the closed form."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from torch import Tensor

from semsim.attacks.linear.rank import Convolution, Shape, has_full_rank, matrix_rank, rank_of, taps
from semsim.base.words import agreeing, counted
from semsim.systems.audit.security_index import LayerSecurity, SecurityIndex

_LARGEST = 6000  # rows of a dense matrix: 288 MB, and a minute of one core


@dataclass(frozen=True, kw_only=True)
class LeakedLayer:
    """A convolution's weight, (C_out, C_in / groups, h, w), and ∂J/∂Z of one image, (C_out, H, W).

    Both best in float64: in float32 small singular values drown in rounding.
    """

    weight: Tensor
    slope: Tensor


@dataclass(frozen=True, kw_only=True)
class CheckedLayer:
    """A layer with its closed form, and the rank that its U really has.

    Attributes:
        why: Of a difference.
        rank: None where the layer is too large to compute it.
        full_rank: See `has_full_rank`.
    """

    layer: LayerSecurity
    rank: int | None
    why: tuple[str, ...]
    full_rank: bool | None = None

    @property
    def agrees(self) -> bool:
        """True where closed form and number are the same."""
        return self.rank == self.layer.rank


def checked_layers(index: SecurityIndex, leaked: Sequence[LeakedLayer]) -> list[CheckedLayer]:
    """Each layer of `index` with the numeric rank of U for its weight and gradient in `leaked`."""
    return [_checked(layer, one) for layer, one in zip(index.layers, leaked, strict=True)]


def measured_index(index: SecurityIndex, checked: Sequence[CheckedLayer]) -> SecurityIndex:
    """`index` with the numeric ranks, where there are some, in place of the closed form."""
    layers = tuple(
        one.layer if one.rank is None else replace(one.layer, rank=one.rank) for one in checked
    )
    return replace(index, layers=layers)


def equations_matrix(
    convolution: Convolution, inputs: Shape, leaked: LeakedLayer
) -> "scipy.sparse.csr_array":
    """U of Eq. 4: W's rows channel by channel, then ∂J/∂W's; (equations, C·H·W) float64."""
    rows, columns, values = (
        np.concatenate(parts) for parts in zip(*_entries(convolution, inputs, leaked), strict=True)
    )
    shape = (leaked.slope.numel() + leaked.weight.numel(), int(np.prod(inputs)))
    return scipy.sparse.csr_array((values, (rows, columns)), shape=shape)


def _entries(
    convolution: Convolution, inputs: Shape, leaked: LeakedLayer
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(rows, columns, values) of W and of K, one group and one tap after the other."""
    slope = leaked.slope.detach().cpu().double().numpy()
    positions = slope[0].size
    slope = slope.reshape(len(slope), positions)
    maps = tuple(leaked.slope.shape[1:])
    for place, tap in enumerate(taps(convolution, inputs, leaked.weight, maps)):
        yield tap.rows, tap.columns, np.full(len(tap.rows), tap.weight)
        own = slope[tap.channel, tap.rows - tap.channel * positions]
        yield np.full(len(tap.rows), slope.size + place), tap.columns, own


def _checked(layer: LayerSecurity, leaked: LeakedLayer) -> CheckedLayer:
    if min(layer.equations, layer.unknowns) > _LARGEST:
        sizes = f"{layer.equations:,} equations for {layer.unknowns:,} values"
        large = f"too large to check: {sizes}, both above {_LARGEST:,}"
        return CheckedLayer(layer=layer, rank=None, why=(large,))
    rank = matrix_rank(equations_matrix(layer.convolution, layer.inputs, leaked))
    why = () if rank == layer.rank else tuple(_reasons(layer, leaked, rank))
    full = None
    if layer.unknowns <= _LARGEST:
        full = has_full_rank(layer.convolution, layer.inputs, layer.outputs, leaked.weight)
    return CheckedLayer(layer=layer, rank=rank, why=why, full_rank=full)


def _reasons(layer: LayerSecurity, leaked: LeakedLayer, rank: int) -> Iterator[str]:
    """Yield, in words, what is not in general position."""
    weight, slope = leaked.weight.flatten(1), leaked.slope.flatten(1)
    silent = int((slope == 0).all(1).sum())
    dead = int((slope == 0).sum())
    if silent:
        have = agreeing(silent, "has", "have")
        yield f"{silent} of {counted(len(slope), 'channel')} {have} a gradient of 0 everywhere"
    elif dead:
        dead_words = agreeing(dead, "is dead: its", "are dead: their")
        yield f"{dead} of {counted(slope.numel(), 'unit')} {dead_words} gradient is 0"
    if layer.convolution.groups == 1:
        ranks = (_rank(weight), _rank(slope))
        largest = (min(weight.shape), min(slope.shape))
        if ranks[0] < largest[0]:
            yield f"the kernels span {ranks[0]} of {largest[0]} dimensions"
        if ranks[1] < largest[1]:
            yield f"the channels' gradients span {ranks[1]} of {largest[1]} dimensions"
        if ranks != largest and rank_of(layer.convolution, layer.inputs, ranks) == rank:
            yield "with these the closed form gives the same rank"
    if not layer.exact:
        yield f"the closed form is an upper bound here ({layer.bound_by})"


def _rank(matrix: Tensor) -> int:
    return int(np.linalg.matrix_rank(matrix.detach().cpu().double().numpy()))
