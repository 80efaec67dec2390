"""c(M), how much a network's layers hide from layer-wise inversion (COPA, Definition 2.1).

What the rank of U (`semsim.attacks.linear.rank`) lacks to the size n of a convolution's input stays
hidden.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from semsim.attacks.linear.rank import (
    Convolution,
    Pair,
    Shape,
    SideReach,
    check_positive,
    output_length,
    rank_of,
    sights,
)
from semsim.base.errors import SettingsError
from semsim.targets.cnn3 import VARIANTS

_LARGE = 4  # positions a channel from which a map is large
_NARROW = 3  # positions along a side up to which a map is narrow


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
        check_positive("a pooling", *self.kernel, *self.stride, *self.dilation, *(self.size or ()))


@dataclass(frozen=True, kw_only=True)
class FullyConnected:
    """A fully connected layer, whose input a gradient always gives away (Lemma A.1)."""

    outputs: int

    def __post_init__(self) -> None:
        check_positive("a fully connected layer", self.outputs)


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


def _layer(
    convolution: Layer, behind: Layer, shapes: Sequence[Shape], place: int, depth: int
) -> LayerSecurity:
    if not isinstance(convolution, Convolution):
        raise TypeError(f"expected a convolution, got {convolution}")
    inputs, outputs = shapes
    down, right = sights(convolution, inputs)
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


def _is_plain(convolution: Convolution, depth: int, sights: tuple[SideReach, SideReach]) -> bool:
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
    sides = tuple(output_length(layer, inputs[1 + side], side) for side in (0, 1))
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


def _kind(layer: Layer) -> str:
    kinds = {Convolution: "convolution", Pooling: "pooling", FullyConnected: "fully connected"}
    return kinds[type(layer)]


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
