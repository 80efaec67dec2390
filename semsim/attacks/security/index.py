"""c(M), how much a network's layers hide from layer-wise inversion (COPA, Definition 2.1).

Going back through a convolution, the input x is known through W x = Z and K x = ∂J/∂W, with K the
weight gradient as a linear map of x, made of ∂J/∂Z. Both together are U x = V (Eq. 4); what U's
rank lacks to the size n of x stays hidden.
"""

import heapq
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from semsim.base.errors import SettingsError
from semsim.targets.cnn3 import VARIANTS

Shape = tuple[int, ...]
Pair = tuple[int, int]

_LARGE = 4  # positions a channel from which a map is large
_NARROW = 3  # positions along a side up to which a map is narrow


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
        _check_positive("a convolution", self.channels, *self.kernel, *self.stride, *self.dilation)
        if min(self.padding) < 0 or self.groups < 1 or self.channels % self.groups:
            raise SettingsError(
                "A convolution needs a padding of 0 or more and groups that divide its channels; "
                f"got padding {self.padding}, {self.groups} groups, {self.channels} channels."
            )


@dataclass(frozen=True, kw_only=True)
class Pooling:
    """A pooling, which only shrinks the map.

    Attributes:
        size: Of its output, whatever the input; or None.
    """

    kernel: Pair = (2, 2)
    stride: Pair = (2, 2)
    padding: Pair = (0, 0)
    dilation: Pair = (1, 1)
    size: Pair | None = None

    def __post_init__(self) -> None:
        _check_positive("a pooling", *self.kernel, *self.stride, *self.dilation, *(self.size or ()))


@dataclass(frozen=True, kw_only=True)
class FullyConnected:
    """A fully connected layer, whose input a gradient always gives away (Lemma A.1)."""

    outputs: int

    def __post_init__(self) -> None:
        _check_positive("a fully connected layer", self.outputs)


Layer = Convolution | Pooling | FullyConnected


@dataclass(frozen=True, kw_only=True)
class LayerSecurity:
    """Security of one convolution: how much of its input it hides.

    Attributes:
        place: Its number among the convolutions, from 1.
        inputs, outputs: (C, H, W).
        unknowns: N, values of its input.
        equations: Rows of U.
        rank: Of U.
        unseen: Values of the input that no output depends on.
        weight: (d − (place − 1)) / d of Eq. 8.
        general: Whether the gradient of its outputs can be in general position, which pooling or a
            cut behind it prevents.
        exact: Whether `rank` is the rank, for weights and gradients in general position, and not
            only a bound above it.
    """

    place: int
    convolution: Convolution
    inputs: Shape
    outputs: Shape
    unknowns: int
    equations: int
    rank: int
    unseen: int
    weight: float
    general: bool
    exact: bool

    @property
    def bound_by(self) -> str:
        """Reason that `rank` is only a bound, in words; "" where it is `exact`."""
        if self.exact:
            return ""
        if self.general:
            return "padding, dilation or a small map"
        return "pooling or an activation like ReLU behind it"

    @property
    def hidden(self) -> int:
        """n − rank U: how many values of the input the equations hide from the attacker."""
        return self.unknowns - self.rank

    @property
    def pulls_back(self) -> bool:
        """True where more values come out than go in, which binds what the layer behind gets."""
        return math.prod(self.outputs) > self.unknowns

    @property
    def contribution(self) -> float:
        """Its term of Eq. 8, 0 or below."""
        return -self.weight * self.hidden if self.hidden else 0.0


@dataclass(frozen=True, kw_only=True)
class SecurityIndex:
    """c(M) and where it comes from.

    Attributes:
        features: Values that enter the first fully connected layer.
    """

    layers: tuple[LayerSecurity, ...]
    features: int

    @property
    def exact(self) -> bool:
        """True where `value` is c(M) for weights in general position, not only a bound above."""
        return all(layer.exact or not layer.rank for layer in self.layers)

    @property
    def value(self) -> float:
        """c(M), 0 or below; at 0 layer-wise inversion finds the image exactly."""
        return math.fsum(layer.contribution for layer in self.layers) + 0.0


def security_index(layers: Sequence[Layer], input_shape: Shape) -> SecurityIndex:
    """c(M) of Eq. 8 in closed form, for weights and gradients in general position.

    Args:
        layers: Convolutions, with poolings between, then at least one fully connected layer.
        input_shape: (C, H, W).

    Raises:
        SettingsError: Where they do not fit.
    """
    shapes = shapes_of(layers, input_shape)
    places = [i for i, layer in enumerate(layers) if isinstance(layer, Convolution)]
    depth = len(places)
    found = tuple(
        _layer(layers[i], layers[i + 1], shapes[i : i + 2], place, depth)
        for place, i in enumerate(places, start=1)
    )
    first = next(i for i, layer in enumerate(layers) if isinstance(layer, FullyConnected))
    return SecurityIndex(layers=found, features=math.prod(shapes[first]))


def shapes_of(layers: Sequence[Layer], input_shape: Shape) -> list[Shape]:
    """The shape before each layer, and after the last one; `SettingsError` where one is empty."""
    if len(input_shape) != 3 or min(input_shape) < 1:
        raise SettingsError(f"An input is channels, height, width, as 3x32x32; got {input_shape}.")
    dense = [isinstance(layer, FullyConnected) for layer in layers]
    if not layers or not dense[-1] or dense != sorted(dense):
        raise SettingsError(
            "c(M) is defined for convolutions followed by at least one fully connected layer, "
            f"with no convolution behind it; got {', '.join(map(_kind, layers)) or 'nothing'}."
        )
    shapes: list[Shape] = [tuple(input_shape)]
    for number, layer in enumerate(layers, start=1):
        shapes.append(_output(layer, shapes[-1], number))
    return shapes


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
    down, right = _sights(convolution, inputs)
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
class _Sight:
    """Values that a kernel sees along one side of the input.

    Attributes:
        counts: Taps that are on the input, one a position.
        classes: Every value that is seen.
    """

    counts: tuple[int, ...]
    classes: tuple[_Class, ...]

    @property
    def seen(self) -> int:
        return sum(len(one.values) for one in self.classes)

    @property
    def visits(self) -> tuple[int, ...]:
        return tuple(itertools.chain.from_iterable(one.visits for one in self.classes))


def _sights(convolution: Convolution, inputs: Shape) -> tuple[_Sight, _Sight]:
    down, right = (_sight(convolution, inputs[1 + side], side) for side in (0, 1))
    return down, right


def _sight(convolution: Convolution, length: int, side: int) -> _Sight:
    stride = convolution.stride[side]
    positions = range(_length(convolution, length, side))
    starts = [stride * position - convolution.padding[side] for position in positions]
    steps = [convolution.dilation[side] * tap for tap in range(convolution.kernel[side])]
    met = [{start + step for start in starts} & set(range(length)) for step in steps]
    classes: dict[int, list[set[int]]] = {}
    for step, values in zip(steps, met, strict=True):
        classes.setdefault(step % stride, []).append(values)
    return _Sight(
        counts=tuple(sum(0 <= start + step < length for step in steps) for start in starts),
        classes=tuple(
            _Class(values=frozenset().union(*taps), visits=tuple(map(len, taps)))
            for taps in classes.values()
        ),
    )


def _layer(
    convolution: Layer, behind: Layer, shapes: Sequence[Shape], place: int, depth: int
) -> LayerSecurity:
    if not isinstance(convolution, Convolution):
        raise TypeError(f"expected a convolution, got {convolution}")
    inputs, outputs = shapes
    down, right = _sights(convolution, inputs)
    unknowns = math.prod(inputs)
    general = not convolution.cut and not isinstance(behind, Pooling)
    weights = convolution.channels * inputs[0] // convolution.groups * math.prod(convolution.kernel)
    return LayerSecurity(
        place=place,
        convolution=convolution,
        inputs=inputs,
        outputs=outputs,
        unknowns=unknowns,
        equations=math.prod(outputs) + weights,
        rank=rank_of(convolution, inputs),
        unseen=unknowns - inputs[0] * down.seen * right.seen,
        weight=(depth - (place - 1)) / depth,
        general=general,
        exact=general and _is_plain(convolution, inputs[0] // convolution.groups, (down, right)),
    )


def _is_plain(convolution: Convolution, depth: int, sights: tuple[_Sight, _Sight]) -> bool:
    """Check that nothing at the border, in gaps or on a tiny map can make the rank smaller.

    K's equations depend on each other where its taps reach as far as the map of slopes: of two
    channels f and g, ∂J/∂Z[f] then is a kernel for ∂J/∂Z[g], and the other way round. Some more do
    on a map of few rows or columns, which is little more than some vectors. W's do where padding
    cuts the classes of values unevenly and there are as many channels as classes, or some fewer.
    That these conditions are enough was found with the numeric ranks of 40,000 random layers of up
    to 700 values; it is not proved.

    Args:
        depth: Input channels of a group.
    """
    channels = convolution.channels // convolution.groups
    wholes, reaches = [], []
    for side, sight in enumerate(sights):
        wholes.append(sight.counts.count(convolution.kernel[side]))
        reaches.append(-(-convolution.kernel[side] // convolution.stride[side]))
    sides = zip(convolution.padding, convolution.kernel, strict=True)
    narrow = all(2 * pad < kernel for pad, kernel in sides)
    large = math.prod(wholes) >= _LARGE * channels
    pairs = zip(wholes, reaches, strict=True)
    separate = channels == 1 or all(whole > max(reach, _NARROW) for whole, reach in pairs)
    classes = depth * math.prod(len(sight.classes) for sight in sights)
    cuts = zip(convolution.padding, convolution.stride, strict=True)
    uneven = any(pad > 0 and stride > 1 for pad, stride in cuts)
    tied = uneven and classes < 2 * channels <= 2 * classes
    return convolution.dilation == (1, 1) and narrow and large and separate and not tied


def _output(layer: Layer, inputs: Shape, number: int) -> Shape:
    if isinstance(layer, FullyConnected):
        return (layer.outputs,)
    if isinstance(layer, Pooling) and layer.size is not None:
        return (inputs[0], *layer.size)
    sides = tuple(_length(layer, inputs[1 + side], side) for side in (0, 1))
    if min(sides) < 1:
        raise SettingsError(
            f"Layer {number} ({_kind(layer)} {layer.kernel[0]}×{layer.kernel[1]}) is larger than "
            f"the {inputs[1]}×{inputs[2]} map it gets. Use a smaller kernel or stride before it."
        )
    if isinstance(layer, Convolution) and inputs[0] % layer.groups:
        raise SettingsError(
            f"Layer {number} has {layer.groups} groups, which do not divide its {inputs[0]} "
            "input channels."
        )
    return (layer.channels if isinstance(layer, Convolution) else inputs[0], *sides)


def _length(layer: Convolution | Pooling, length: int, side: int) -> int:
    reach = layer.dilation[side] * (layer.kernel[side] - 1) + 1
    return (length + 2 * layer.padding[side] - reach) // layer.stride[side] + 1


def _kind(layer: Layer) -> str:
    kinds = {Convolution: "convolution", Pooling: "pooling", FullyConnected: "fully connected"}
    return kinds[type(layer)]


def _check_positive(what: str, *numbers: int) -> None:
    if min(numbers) < 1:
        raise SettingsError(f"The sizes of {what} are whole numbers from 1; got {min(numbers)}.")


def square(kernel: int, channels: int, stride: int, padding: int = 0) -> Convolution:
    """A convolution as the paper writes it: "kernel width, channels, stride"."""
    return Convolution(
        channels=channels,
        kernel=(kernel, kernel),
        stride=(stride, stride),
        padding=(padding, padding),
    )


def convolutions(layers: Sequence[Layer]) -> Iterator[Convolution]:
    """The convolutions among `layers`, in order."""
    return (layer for layer in layers if isinstance(layer, Convolution))


# Table 1 of the paper: two convolutions without padding or bias, then ten classes.
CNN3: dict[int, tuple[Layer, ...]] = {
    variant: (*(square(*layer) for layer in plan), FullyConnected(outputs=10))
    for variant, plan in VARIANTS.items()
}
CIFAR: Shape = (3, 32, 32)
