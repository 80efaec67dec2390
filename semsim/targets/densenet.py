"""DenseNet of 40 layers for small images."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from semsim.targets import Activation
from semsim.targets.layers import activation_layer, feature_count

_LAYERS = 40
_BLOCKS = 3


class _DenseLayer(nn.Module):
    """Batch norm, activation, 3×3 convolution; its output joins its input (Huang et al. 2017, §3).

    With `bottleneck` a 1×1 convolution to 4 × `growth` channels comes before (DenseNet-B).
    """

    def __init__(self, inputs: int, growth: int, activation: str, *, bottleneck: bool) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        if bottleneck:
            layers += _convolution(inputs, 4 * growth, 1, activation)
            inputs = 4 * growth
        layers += _convolution(inputs, growth, 3, activation)
        self.inner = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat((x, self.inner(x)), dim=1)


@dataclass(frozen=True, kw_only=True)
class DenseNet40:
    """Three dense blocks, 40 layers (Huang et al. 2017, arXiv:1608.06993).

    Attributes:
        growth: Channels that each layer adds (k).
        bottleneck: True is DenseNet-BC: six layers a block with 1×1 bottlenecks, and transitions
            that halve the channels, which is what the SemSim authors attack. False is the plain one
            of twelve layers a block.
        pool: The last average pool, in pixels; 0 is the whole feature map, as published. The SemSim
            authors pool by 4 and keep the place: 2112 features at 64×64.
    """

    growth: int = 12
    bottleneck: bool = True
    activation: Activation = "relu"
    pool: int = 0

    def build(self, channels: int, size: tuple[int, int]) -> tuple[nn.Module, int]:
        """The extractor up to the last pool, and its number of features."""
        per_block = (_LAYERS - _BLOCKS - 1) // (_BLOCKS * (2 if self.bottleneck else 1))
        inputs = 2 * self.growth if self.bottleneck else 16
        layers: list[nn.Module] = [nn.Conv2d(channels, inputs, 3, padding=1, bias=False)]
        for block in range(_BLOCKS):
            if block > 0:
                outputs = inputs // 2 if self.bottleneck else inputs
                layers += _convolution(inputs, outputs, 1, self.activation)
                layers.append(nn.AvgPool2d(2))
                inputs = outputs
            for _ in range(per_block):
                layers.append(
                    _DenseLayer(inputs, self.growth, self.activation, bottleneck=self.bottleneck)
                )
                inputs += self.growth
        layers += [nn.BatchNorm2d(inputs), activation_layer(self.activation)]
        layers.append(nn.AvgPool2d(self.pool) if self.pool else nn.AdaptiveAvgPool2d(1))
        body = nn.Sequential(*layers, nn.Flatten())
        return body, feature_count(body, channels, size)


def _convolution(inputs: int, outputs: int, kernel: int, activation: str) -> list[nn.Module]:
    return [
        nn.BatchNorm2d(inputs),
        activation_layer(activation),
        nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False),
    ]
