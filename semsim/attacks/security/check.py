"""The rank of U for one network's own weights and gradient, beside the closed form."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy
from torch import Tensor

from semsim.attacks.security.index import (
    Convolution,
    LayerSecurity,
    SecurityIndex,
    Shape,
    rank_of,
)
from semsim.base.words import agreeing, counted

_LARGEST = 6000  # rows of a dense matrix: 288 MB, and a minute of one core
_ZERO = (
    1e-11  # of the largest eigenvalue of U Uᵀ; rounding is about 1e-13, the smallest others 1e-8
)


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


def has_full_rank(convolution: Convolution, inputs: Shape, outputs: Shape, weight: Tensor) -> bool:
    """Check whether rank W = n < m: the weight has more outputs, m, than inputs, n, and folds none.

    Where it has, the paper defines the pull-back constraint on the layer behind (Appendix B).

    Args:
        inputs, outputs: (C, H, W).
        weight: (C_out, C_in / groups, h, w), best in float64. From the eigenvalues of a dense n × n
            matrix.
    """
    shape = (math.prod(outputs), math.prod(inputs))
    if shape[0] <= shape[1]:
        return False
    parts = [
        (tap.rows, tap.columns, np.full(len(tap.rows), tap.weight))
        for tap in _taps(convolution, inputs, weight, outputs[1:])
    ]
    rows, columns, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    return matrix_rank(scipy.sparse.csr_array((values, (rows, columns)), shape=shape)) == shape[1]


def matrix_rank(matrix: "scipy.sparse.csr_array") -> int:
    """The rank of a sparse matrix, by the eigenvalues of its smaller Gram matrix.

    Rows count after scaling to norm 1.
    """
    norms = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    scaled = scipy.sparse.diags_array(1 / np.where(norms > 0, norms, 1)) @ matrix
    side = min(matrix.shape)
    tall = matrix.shape[0] >= matrix.shape[1]
    gram = ((scaled.T @ scaled) if tall else (scaled @ scaled.T)).toarray()
    if tall and _is_definite(gram):
        return side
    found = scipy.linalg.eigvalsh(gram, overwrite_a=True)
    return int((found > _ZERO * found[-1]).sum()) if found[-1] > 0 else 0


def _is_definite(gram: np.ndarray) -> bool:
    """Check for a Cholesky factor with no pivot near rounding: 20 times faster than eigenvalues."""
    try:
        pivots = np.diag(scipy.linalg.cholesky(gram, check_finite=False))
    except scipy.linalg.LinAlgError:
        return False
    return bool((pivots**2).min() > 1e-9 * (pivots**2).max())


def _entries(
    convolution: Convolution, inputs: Shape, leaked: LeakedLayer
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(rows, columns, values) of W and of K, one group and one tap after the other."""
    slope = leaked.slope.detach().cpu().double().numpy()
    positions = slope[0].size
    slope = slope.reshape(len(slope), positions)
    maps = tuple(leaked.slope.shape[1:])
    for place, tap in enumerate(_taps(convolution, inputs, leaked.weight, maps)):
        yield tap.rows, tap.columns, np.full(len(tap.rows), tap.weight)
        own = slope[tap.channel, tap.rows - tap.channel * positions]
        yield np.full(len(tap.rows), slope.size + place), tap.columns, own


class _Tap(NamedTuple):
    """One weight of a kernel, and where it is in W: rows, of outputs, and columns, of inputs."""

    channel: int
    weight: float
    rows: np.ndarray
    columns: np.ndarray


def _taps(
    convolution: Convolution, inputs: Shape, weight: Tensor, maps: Sequence[int]
) -> Iterator[_Tap]:
    """All weights, one group and one tap after the other.

    Args:
        maps: Height and width of an output.
    """
    values = weight.detach().cpu().double().numpy()
    outputs, depth, *_ = values.shape
    per_group = outputs // convolution.groups
    pixels = np.arange(np.prod(inputs[1:])).reshape(inputs[1:])
    for f, c, i, j in np.ndindex(values.shape):
        on, under = _under_tap(convolution, pixels, (i, j), maps)
        yield _Tap(
            channel=f,
            weight=float(values[f, c, i, j]),
            rows=f * math.prod(maps) + np.flatnonzero(on),
            columns=under[on] + (f // per_group * depth + c) * pixels.size,
        )


def _under_tap(
    convolution: Convolution, pixels: np.ndarray, tap: tuple[int, int], outputs: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return a mask of positions with the tap on the input, and the pixel under it (any if off)."""
    places = [
        np.arange(outputs[side]) * convolution.stride[side]
        - convolution.padding[side]
        + convolution.dilation[side] * tap[side]
        for side in (0, 1)
    ]
    on = [(place >= 0) & (place < size) for place, size in zip(places, pixels.shape, strict=True)]
    inside = [place.clip(0, size - 1) for place, size in zip(places, pixels.shape, strict=True)]
    return np.logical_and.outer(*on).ravel(), pixels[np.ix_(*inside)].ravel()


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
