"""Channels of a network that can be rescaled together without changing its outputs.

A ReLU network computes the same where a channel is multiplied by r > 0 and every weight that
reads it is divided by r. Channels that are added to each other need one common r; the network's
inputs and outputs keep r = 1. Each channel of each node therefore has a *slot*: the number of the
r that it carries. PBPFL draws the r; an attacker may choose them so that the result is the same
for every draw.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from semsim.base.errors import SettingsError
from semsim.layer_graph import INPUT, Add, Concat, LayerGraph, Node

FIXED = 0  # the slot of r = 1
_SAME = (
    nn.ReLU,
    nn.LeakyReLU,
    nn.MaxPool2d,
    nn.AvgPool2d,
    nn.AdaptiveAvgPool2d,
    nn.Identity,
)
_REASONS: Mapping[type[nn.Module], str] = {
    nn.Sigmoid: "a sigmoid of r·y is not r times a sigmoid of y; use ReLU",
    nn.Tanh: "a tanh of r·y is not r times a tanh of y; use ReLU",
    nn.BatchNorm2d: (
        "in training it divides by the batch's own deviation plus a constant, which undoes the "
        "mask and makes the recovered gradient wrong; leave it out, or fold it into the "
        "convolution before it once it is in evaluation mode"
    ),
    nn.LayerNorm: "it divides by each sample's own deviation, which undoes the mask; leave it out",
    nn.GELU: "a GELU of r·y is not r times a GELU of y; use ReLU",
}


@dataclass(frozen=True, kw_only=True)
class Slots:
    """The slots of all nodes.

    of_node: one slot a channel (a feature, after flattening) of each node's output. count: slots
    are 0 to count − 1, of which `FIXED` means r = 1; not every number in between is in use.
    """

    of_node: Mapping[str, tuple[int, ...]]
    count: int

    @property
    def free(self) -> tuple[int, ...]:
        """The slots whose r can be chosen."""
        used = {slot for slots in self.of_node.values() for slot in slots}
        return tuple(sorted(used - {FIXED}))


def slots_of(network: LayerGraph) -> Slots:
    """The slots of a network whose layers are all positively homogeneous.

    Raises `SettingsError` that names the layer that is not, and why.
    """
    finder = _Finder(network.shapes())
    for node in network.nodes:
        finder.visit(node, last=node is network.nodes[-1])
    return finder.result()


def scales_of(network: LayerGraph, slots: Slots, r: Tensor) -> dict[str, Tensor]:
    """Return the factor of each parameter: R_ij = r_i / r_j for weights, r_i for biases.

    r: (slots.count,) positive, r[FIXED] = 1. Returns tensors that broadcast to the parameters, by
    parameter name. Yang et al. 2020, arXiv:2002.09843, Eqs 7, 13 and 14.
    """
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    scales = {}
    for node in network.nodes:
        if not isinstance(node.layer, nn.Linear | nn.Conv2d):
            continue
        outer = r[list(slots.of_node[node.name])]
        inner = r[list(slots.of_node[node.inputs[0]])]
        ratio = outer[:, None] / inner[None, :]
        kernel = (1,) * (node.layer.weight.dim() - 2)
        scales[names[id(node.layer.weight)]] = ratio.reshape(*ratio.shape, *kernel)
        if node.layer.bias is not None:
            scales[names[id(node.layer.bias)]] = outer
    return scales


class _Finder:
    """Slots under construction; slots that must be equal are joined."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.shapes = shapes
        self.parents = [FIXED]
        self.of_node: dict[str, list[int]] = {INPUT: [FIXED] * shapes[INPUT][0]}

    def visit(self, node: Node, *, last: bool) -> None:
        layer, inputs = node.layer, [self.of_node[name] for name in node.inputs]
        if last and not isinstance(layer, nn.Linear):
            raise SettingsError(
                f"The last layer is a linear one; got {type(layer).__name__} ({node.name!r}). "
                "PBPFL takes its additive noise back out of a linear output only."
            )
        if isinstance(layer, nn.Linear | nn.Conv2d):
            _check_weights(node, self.shapes[node.inputs[0]])
            width = self.shapes[node.name][0]
            self.of_node[node.name] = [FIXED] * width if last else self._fresh(width)
        elif isinstance(layer, Add):
            self.of_node[node.name] = self._joined(inputs)
        else:
            self.of_node[node.name] = self._passed_on(node, inputs)

    def result(self) -> Slots:
        of_node = {
            name: tuple(self._root(slot) for slot in slots) for name, slots in self.of_node.items()
        }
        return Slots(of_node=of_node, count=len(self.parents))

    def _passed_on(self, node: Node, inputs: list[list[int]]) -> list[int]:
        if isinstance(node.layer, Concat):
            return [slot for slots in inputs for slot in slots]
        if isinstance(node.layer, nn.Flatten):
            places = self.shapes[node.name][0] // len(inputs[0])
            return [slot for slot in inputs[0] for _ in range(places)]
        if type(node.layer) in _SAME:
            return inputs[0]
        kind = type(node.layer)
        why = _REASONS.get(kind, "it is not known to pass a positive factor through")
        raise SettingsError(f"PBPFL cannot mask {kind.__name__} ({node.name!r}): {why}.")

    def _fresh(self, width: int) -> list[int]:
        start = len(self.parents)
        self.parents += range(start, start + width)
        return list(range(start, start + width))

    def _joined(self, inputs: list[list[int]]) -> list[int]:
        for other in inputs[1:]:
            for mine, its in zip(inputs[0], other, strict=True):
                low, high = sorted((self._root(mine), self._root(its)))
                self.parents[high] = low  # the lower wins, so that FIXED stays FIXED
        return inputs[0]

    def _root(self, slot: int) -> int:
        while self.parents[slot] != slot:
            slot = self.parents[slot]
        return slot


def _check_weights(node: Node, shape: tuple[int, ...]) -> None:
    layer = node.layer
    if isinstance(layer, nn.Linear) and len(shape) != 1:
        raise SettingsError(
            f"The linear layer {node.name!r} takes flat features; got shape {shape}. Add a Flatten."
        )
    if isinstance(layer, nn.Conv2d) and (layer.groups != 1 or layer.padding_mode != "zeros"):
        raise SettingsError(
            f"The convolution {node.name!r} needs one group and zero padding; got "
            f"groups={layer.groups}, padding_mode={layer.padding_mode!r}."
        )
