"""The rank of what a convolution tells of its input: in closed form, and of given weights.

Going back through a convolution, the input x is known through W x = Z and K x = ∂J/∂W, with K the
weight gradient as a linear map of x, made of ∂J/∂Z. Both together are U x = V (COPA, Eq. 4).
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import scipy

from semsim.base.errors import SettingsError

if TYPE_CHECKING:
    from torch import Tensor

Shape = tuple[int, ...]
Pair = tuple[int, int]
# Of the largest eigenvalue of U Uᵀ; rounding is about 1e-13, the smallest others 1e-8.
_ZERO = 1e-11


@dataclass(frozen=True, kw_only=True)
class Convolution:
    """A convolution with zero padding.

    Attributes:
        channels: That it puts out. The pairs are (down, right).
        cut: Whether an activation behind it has pieces of slope 0, as ReLU has: no gradient there.
    """

    channels: int
    kernel: Pair
    stride: Pair = (1, 1)
    padding: Pair = (0, 0)
    dilation: Pair = (1, 1)
    groups: int = 1
    cut: bool = False

    def __post_init__(self) -> None:
        check_positive("a convolution", self.channels, *self.kernel, *self.stride, *self.dilation)
        if min(self.padding) < 0 or self.groups < 1 or self.channels % self.groups:
            raise SettingsError(
                "A convolution needs a padding of 0 or more and groups that divide its channels; "
                f"got padding {self.padding}, {self.groups} groups, {self.channels} channels."
            )


def rank_of(convolution: Convolution, inputs: Shape, ranks: Pair | None = None) -> int:
    """The rank of U in closed form: min(n, |Z| + |W| − C_out²) in the plain case.

    It is never too low: each equation that it leaves out follows from others, and weights that are
    not in general position only lower the rank. Where `LayerSecurity.exact`, it is the rank.

    Over the patches the equations are W X = Z and ∂J/∂Z Xᵀ = ∂J/∂W, with X a matrix (taps of a
    patch, positions). With a = rank W and b = rank ∂J/∂Z, both as matrices with C_out rows, a·b
    equations are said twice: Σ W[g]·∂J/∂W[f] = Σ ∂J/∂Z[f]·Z[g] for all channels f, g. In general
    position a and b are C_out, as far as there are so many taps and positions; where borders and
    gaps keep taps and positions apart, fewer are said twice. The equations of one tap touch only
    the input values that it meets, every stride-th one. So the values fall into classes with taps
    of their own; a class with more equations than values has equations to spare, which help no
    other class. Only W ties the classes together.

    Args:
        ranks: (a, b) of one group, where they are known not to be in general position, say.
    """
    groups = convolution.groups
    channels, depth = convolution.channels // groups, inputs[0] // groups
    down, right = sights(convolution, inputs)
    counts = [depth * i * j for i in down.counts for j in right.counts]
    visits = depth * [i * j for i in down.visits for j in right.visits]
    a, b = ranks or (min(channels, _above_0(visits)), min(channels, _above_0(counts)))
    open_values = depth * sum(
        max(
            0,
            len(i.values) * len(j.values) - sum(min(b, p * q) for p in i.visits for q in j.visits),
        )
        for i in down.classes
        for j in right.classes
    )
    twice = max(_at_most(a, heapq.nlargest(b, counts)), _at_most(b, heapq.nlargest(a, visits)))
    ties = max(0, _at_most(a, counts) - twice)
    return groups * (depth * down.seen * right.seen - max(0, open_values - ties))


def _above_0(counts: Sequence[int]) -> int:
    return sum(count > 0 for count in counts)


def _at_most(most: int, counts: Sequence[int]) -> int:
    return sum(min(most, count) for count in counts)


@dataclass(frozen=True, kw_only=True)
class _Class:
    """Input values that the same taps meet.

    Attributes:
        visits: How many values each of these taps meets.
    """

    values: frozenset[int]
    visits: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class SideReach:
    """Values that a kernel sees along one side of the input.

    Attributes:
        counts: Taps that are on the input, one a position.
        classes: Every value that is seen.
    """

    counts: tuple[int, ...]
    classes: tuple[_Class, ...]

    @property
    def seen(self) -> int:
        """Number of values that the kernel sees."""
        return sum(len(one.values) for one in self.classes)

    @property
    def visits(self) -> tuple[int, ...]:
        """Number of values that each tap meets."""
        return tuple(itertools.chain.from_iterable(one.visits for one in self.classes))


def sights(convolution: Convolution, inputs: Shape) -> tuple[SideReach, SideReach]:
    """Return what a kernel sees down and right of an input, (C, H, W)."""
    down, right = (_sight(convolution, inputs[1 + side], side) for side in (0, 1))
    return down, right


def _sight(convolution: Convolution, length: int, side: int) -> SideReach:
    stride = convolution.stride[side]
    positions = range(output_length(convolution, length, side))
    starts = [stride * position - convolution.padding[side] for position in positions]
    steps = [convolution.dilation[side] * tap for tap in range(convolution.kernel[side])]
    met = [{start + step for start in starts} & set(range(length)) for step in steps]
    classes: dict[int, list[set[int]]] = {}
    for step, values in zip(steps, met, strict=True):
        classes.setdefault(step % stride, []).append(values)
    return SideReach(
        counts=tuple(sum(0 <= start + step < length for step in steps) for start in starts),
        classes=tuple(
            _Class(values=frozenset().union(*taps), visits=tuple(map(len, taps)))
            for taps in classes.values()
        ),
    )


class Window(Protocol):
    """A convolution or a pooling, each pair (down, right)."""

    @property
    def kernel(self) -> Pair: ...

    @property
    def stride(self) -> Pair: ...

    @property
    def padding(self) -> Pair: ...

    @property
    def dilation(self) -> Pair: ...


def output_length(layer: Window, length: int, side: int) -> int:
    """Return the positions of a window along side 0 (down) or 1 (right) of `length` values."""
    reach = layer.dilation[side] * (layer.kernel[side] - 1) + 1
    return (length + 2 * layer.padding[side] - reach) // layer.stride[side] + 1


def check_positive(what: str, *numbers: int) -> None:
    """Raise `SettingsError` where a size of `what` is below 1."""
    if min(numbers) < 1:
        raise SettingsError(f"The sizes of {what} are whole numbers from 1; got {min(numbers)}.")


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
        for tap in taps(convolution, inputs, weight, outputs[1:])
    ]
    rows, columns, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    return matrix_rank(scipy.sparse.csr_array((values, (rows, columns)), shape=shape)) == shape[1]


def matrix_rank(matrix: scipy.sparse.csr_array) -> int:
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


class Tap(NamedTuple):
    """One weight of a kernel, and where it is in W: rows, of outputs, and columns, of inputs."""

    channel: int
    weight: float
    rows: np.ndarray
    columns: np.ndarray


def taps(
    convolution: Convolution, inputs: Shape, weight: Tensor, maps: Sequence[int]
) -> Iterator[Tap]:
    """Yield all weights, one group and one tap after the other.

    Args:
        inputs: (C, H, W).
        weight: (C_out, C_in / groups, h, w).
        maps: Height and width of an output.
    """
    values = weight.detach().cpu().double().numpy()
    outputs, depth, *_ = values.shape
    per_group = outputs // convolution.groups
    pixels = np.arange(np.prod(inputs[1:])).reshape(inputs[1:])
    for f, c, i, j in np.ndindex(values.shape):
        on, under = _under_tap(convolution, pixels, (i, j), maps)
        yield Tap(
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
