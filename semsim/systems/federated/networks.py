"""Networks of federated training, all of them maskable: ReLU, pooling, skips, no batch norm."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor, nn

from semsim.base.errors import SettingsError
from semsim.layer_graph import Add, Chain, Concat, LayerGraph, Node
from semsim.systems.federated import NETWORKS
from semsim.systems.federated.data import FederatedData
from semsim.systems.federated.settings import FederatedSettings, generator

Pool = Literal["max", "avg"]
Skip = Literal["concat", "add"]


class Network(Protocol):
    """Settings of a network; `nodes` makes its layers for inputs and outputs of given sizes."""

    def nodes(self, input_shape: Sequence[int], outputs: int) -> list[Node]: ...


@dataclass(frozen=True, kw_only=True)
class Mlp:
    """`depth` linear layers with ReLUs between them, as the paper's MLP-3, MLP-5 and MLP-7."""

    depth: int = 3
    width: int = 50
    bias: bool = True

    def nodes(self, input_shape: Sequence[int], outputs: int) -> list[Node]:
        """Images are flattened first."""
        chain = Chain()
        inputs = torch.Size(input_shape).numel()
        if len(input_shape) > 1:
            chain.add("flatten", nn.Flatten())
        for number in range(1, self.depth):
            chain.add(f"fc{number}", nn.Linear(inputs, self.width, bias=self.bias))
            chain.add(f"relu{number}", nn.ReLU())
            inputs = self.width
        chain.add(f"fc{self.depth}", nn.Linear(inputs, outputs, bias=self.bias))
        return chain.nodes


@dataclass(frozen=True, kw_only=True)
class ReluLeNet:
    """Two 5×5 convolutions with ReLU and pooling, then two linear layers.

    LeCun et al. 1998 with ReLU in place of the sigmoids, which cannot be masked.

    Attributes:
        width: Channels of the first convolution; the second has twice as many.
    """

    width: int = 6
    pool: Pool = "max"
    hidden: int = 64

    def nodes(self, input_shape: Sequence[int], outputs: int) -> list[Node]:
        """`SettingsError` unless inputs are images whose sides are multiples of 4."""
        channels, height, width = _image_shape(input_shape)
        if height % 4 or width % 4:
            raise SettingsError(f"Image sides are multiples of 4; got {height} × {width}.")
        chain = Chain()
        for number, (inputs, wide) in enumerate(
            ((channels, self.width), (self.width, 2 * self.width)), start=1
        ):
            chain.add(f"conv{number}", nn.Conv2d(inputs, wide, 5, padding=2))
            chain.add(f"relu{number}", nn.ReLU())
            chain.add(f"pool{number}", nn.MaxPool2d(2) if self.pool == "max" else nn.AvgPool2d(2))
        chain.add("flatten", nn.Flatten())
        chain.add("fc1", nn.Linear(2 * self.width * (height // 4) * (width // 4), self.hidden))
        chain.add("relu3", nn.ReLU())
        chain.add("fc2", nn.Linear(self.hidden, outputs))
        return chain.nodes


@dataclass(frozen=True, kw_only=True)
class ResNet:
    """A residual network for small images, of 6 · blocks + 2 layers, without batch norm and biases.

    Residual outputs start small, since no batch norm keeps the sums in bounds.

    Attributes:
        blocks: Residual blocks in each of three stages of `width`, 2 and 4 times `width` channels.
        skip: "concat", as in the paper, joins what a block computed with what the block before it
            computed, at half the size by average pooling where a stage begins. "add" is He et al.
            2016 with 1×1 projections, as in the authors' program: 851,312 parameters with 9 blocks
            and 7 classes.
    """

    blocks: int = 3
    skip: Skip = "concat"
    width: int = 16

    def nodes(self, input_shape: Sequence[int], outputs: int) -> list[Node]:
        """`SettingsError` unless inputs are images."""
        channels, _, _ = _image_shape(input_shape)
        chain = Chain()
        chain.add("conv0", _conv(channels, self.width))
        own = chain.add("relu0", nn.ReLU())
        stream, width, own_width = self.width, self.width, self.width
        for stage in range(3):
            for block in range(self.blocks):
                stride = 2 if stage and not block else 1
                wide = self.width * 2**stage
                shape = _Block(f"s{stage + 1}b{block + 1}", stream, wide, stride)
                if self.skip == "add":
                    _add_block(chain, shape)
                    stream = wide
                else:
                    own = _concat_block(chain, shape, own)
                    stream, own_width = wide + own_width, wide
                width = stream
        chain.add("pool", nn.AdaptiveAvgPool2d(1))
        chain.add("flatten", nn.Flatten())
        chain.add("fc", nn.Linear(width, outputs, bias=False))
        return chain.nodes


@dataclass(frozen=True)
class _Block:
    name: str
    inputs: int
    width: int
    stride: int


MLP_3, MLP_5, MLP_7 = Mlp(depth=3), Mlp(depth=5), Mlp(depth=7)
LENET, LENET_AVG = ReluLeNet(), ReluLeNet(pool="avg")
RESNET20, RESNET20_ADD = ResNet(blocks=3), ResNet(blocks=3, skip="add")
RESNET56, RESNET56_ADD = ResNet(blocks=9), ResNet(blocks=9, skip="add")


class QuadraticClassifier(nn.Module):
    """A network with outputs y as a classifier with one class more, which no image has.

    Its logits are z_c = y_c for the classes and z₀ = log(exp(½‖y‖² + s) − Σ exp(y_c)) for the
    extra one, so that logsumexp(z) = ½‖y‖² + s, and the cross-entropy of class c is
    ½‖y − e_c‖² + s − ½: the quadratic loss but for a constant, with the same gradients. Since
    y_c ≤ ½ + ½‖y‖², the constant s = 1½ + log(classes) keeps the logarithm's argument positive.

    Attributes:
        network: Its parameters are this classifier's, in the same order.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, network: LayerGraph) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("mean", network.mean)  # (1, C, 1, 1), as the network normalises
        self.register_buffer("std", network.std)

    def forward(self, images: Tensor) -> Tensor:
        """(N, C, H, W) in [0, 1] to logits, (N, classes + 1)."""
        y = self.network(images)
        total = y.square().sum(1) / 2 + 1.5 + math.log(y.shape[1])
        rest = torch.log1p(-torch.exp(y.logsumexp(1) - total))
        return torch.cat([y, (total + rest)[:, None]], dim=1)


def fresh_network(settings: FederatedSettings, data: FederatedData) -> LayerGraph:
    """The network that `settings` names for `data`, with weights drawn from the seed."""
    return drawn_network(settings.network, data, settings.torch_dtype, settings.seed)


def drawn_network(name: str, data: FederatedData, dtype: torch.dtype, seed: int) -> LayerGraph:
    """A network of the registry with weights that depend on `seed` only.

    Weights are normal with deviation √(2 / inputs of a unit) (He et al. 2015), in the last layer a
    tenth of √(1 / inputs), so that outputs start near zero. Biases are uniform in ±√(1 / inputs):
    with zeros, a mean-coloured image would have no gradient.
    """
    with torch.random.fork_rng(devices=[]):  # layers draw weights of their own when made
        nodes = NETWORKS[name].nodes(data.input_shape, data.outputs)
    network = LayerGraph(nodes, input_shape=data.input_shape, mean=data.mean, std=data.std)
    network.to(dtype)
    _draw(network, generator("weights", seed))
    return network


@torch.no_grad()
def _draw(network: LayerGraph, rng: torch.Generator) -> None:
    additions = sum(isinstance(node.layer, Add) for node in network.nodes)
    closing = {node.inputs[0] for node in network.nodes if isinstance(node.layer, Add)}
    for node in network.nodes:
        if not isinstance(node.layer, nn.Linear | nn.Conv2d):
            continue
        weight = node.layer.weight
        gain = 0.01 if node is network.nodes[-1] else 2.0
        if node.name in closing:
            gain /= additions
        drawn = torch.randn(weight.shape, generator=rng, dtype=torch.float64)
        inputs = weight[0].numel()
        weight.copy_(drawn * (gain / inputs) ** 0.5)
        if node.layer.bias is not None:
            drawn = torch.rand(node.layer.bias.shape, generator=rng, dtype=torch.float64)
            node.layer.bias.copy_((2 * drawn - 1) / inputs**0.5)


def _add_block(chain: Chain, block: _Block) -> None:
    start = chain.last
    chain.add(f"{block.name}conv1", _conv(block.inputs, block.width, block.stride))
    chain.add(f"{block.name}relu1", nn.ReLU())
    main = chain.add(f"{block.name}conv2", _conv(block.width, block.width))
    short = start
    if block.stride > 1:
        project = nn.Conv2d(block.inputs, block.width, 1, block.stride, bias=False)
        short = chain.add(f"{block.name}project", project, start)
    chain.add(f"{block.name}add", Add(), main, short)
    chain.add(f"{block.name}relu2", nn.ReLU())


def _concat_block(chain: Chain, block: _Block, before: str) -> str:
    """Returns the name of what this block itself computed."""
    start = chain.last
    chain.add(f"{block.name}conv1", _conv(block.inputs, block.width, block.stride), start)
    chain.add(f"{block.name}relu1", nn.ReLU())
    chain.add(f"{block.name}conv2", _conv(block.width, block.width))
    own = chain.add(f"{block.name}relu2", nn.ReLU())
    if block.stride > 1:
        before = chain.add(f"{block.name}shrink", nn.AvgPool2d(2, ceil_mode=True), before)
    chain.add(f"{block.name}join", Concat(), own, before)
    return own


def _conv(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)


def _image_shape(input_shape: Sequence[int]) -> tuple[int, int, int]:
    if len(input_shape) != 3:
        raise SettingsError(
            f"This network takes images of shape (C, H, W); the data has {tuple(input_shape)}. "
            "For tables take 'mlp-3'."
        )
    return input_shape[0], input_shape[1], input_shape[2]
