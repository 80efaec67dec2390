"""A network as a graph of layers, so that its structure can be read and not only run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from semsim.base.errors import SettingsError

INPUT = "input"


class Concat(nn.Module):
    """Joins feature maps or features over their channels, as DenseNet's skips do."""

    def forward(self, *parts: Tensor) -> Tensor:
        """(N, C₁, …), (N, C₂, …), … to (N, C₁ + C₂ + …, …)."""
        return torch.cat(parts, dim=1)


class Add(nn.Module):
    """Sums feature maps of one shape, as ResNet's skips do."""

    def forward(self, first: Tensor, *others: Tensor) -> Tensor:
        """The sum of all arguments, which have one shape."""
        for other in others:
            first = first + other
        return first


@dataclass(frozen=True, eq=False)
class Node:
    """One layer of a graph.

    Attributes:
        inputs: Names of the nodes whose outputs it takes, in order; `INPUT` is what enters the
            graph.
    """

    name: str
    layer: nn.Module
    inputs: tuple[str, ...]


class LayerGraph(nn.Module):
    """A network whose nodes are known, in an order in which they can run; the last is its output.

    Attributes:
        mean, std: Of the data, one value a channel (a feature, for tables), by which inputs are
            normalised first. Inputs of another precision are converted to that of the weights.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        nodes: Sequence[Node],
        *,
        input_shape: Sequence[int],
        mean: Sequence[float] = (0.0,),
        std: Sequence[float] = (1.0,),
    ) -> None:
        super().__init__()
        _check_order(nodes)
        self.nodes = tuple(nodes)
        self.input_shape = tuple(input_shape)
        self.layers = nn.ModuleDict({node.name: node.layer for node in nodes})
        spread = (1, -1) + (1,) * (len(self.input_shape) - 1)
        self.register_buffer("mean", torch.tensor(mean).view(spread))
        self.register_buffer("std", torch.tensor(std).view(spread))

    def forward(self, inputs: Tensor) -> Tensor:
        """(N, *input_shape) to the last node's output, such as (N, classes)."""
        return self.trace(inputs)[self.nodes[-1].name]

    def trace(self, inputs: Tensor) -> dict[str, Tensor]:
        """The output of every node by its name, and the normalised inputs as `INPUT`.

        Args:
            inputs: (N, *input_shape).
        """
        values = {INPUT: (inputs.to(self.mean.dtype) - self.mean) / self.std}
        for node in self.nodes:
            values[node.name] = node.layer(*(values[name] for name in node.inputs))
        return values

    def with_features(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """The output, (N, outputs), and what the last node saw, (N, features)."""
        values = self.trace(inputs)
        return values[self.nodes[-1].name], values[self.nodes[-1].inputs[0]]

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every node's output for one input, without N; `INPUT` included."""
        blank = torch.zeros(1, *self.input_shape, device=self.mean.device)
        with torch.no_grad():
            return {name: tuple(value.shape[1:]) for name, value in self.trace(blank).items()}


class Chain:
    """Nodes under construction; each `add` continues from the last one unless told otherwise."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.last = INPUT

    def add(self, name: str, layer: nn.Module, *inputs: str) -> str:
        """Append a node and return its name."""
        self.nodes.append(Node(name, layer, inputs or (self.last,)))
        self.last = name
        return name


def count_parameters(network: nn.Module) -> int:
    """Return the number of values in a network's weights and biases."""
    return sum(math.prod(parameter.shape) for parameter in network.parameters())


def _check_order(nodes: Sequence[Node]) -> None:
    known = {INPUT}
    for node in nodes:
        missing = [name for name in node.inputs if name not in known]
        if missing or not node.inputs or node.name in known:
            raise SettingsError(
                f"Node {node.name!r} takes {list(node.inputs)}: names are unique and every input "
                f"comes earlier; known here: {sorted(known)}."
            )
        known.add(node.name)
    if not nodes:
        raise SettingsError("A layer graph has at least one node; got none.")
