"""The network on which COPA was shown: two convolutions and a fully connected layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from semsim.base.registry import Checked
from semsim.targets import Activation

if TYPE_CHECKING:
    from torch import nn

# Kernel width, channels and stride of both convolutions (Table 1).
VARIANTS: dict[int, tuple[tuple[int, int, int], tuple[int, int, int]]] = {
    1: ((3, 6, 1), (4, 3, 2)),
    2: ((4, 6, 2), (3, 3, 2)),
    3: ((3, 6, 1), (3, 9, 1)),
    4: ((3, 1, 1), (3, 6, 1)),
}


@dataclass(frozen=True, kw_only=True)
class CNN3(Checked):
    """Two convolutions without bias or padding (Chen and Campbell 2021, arXiv:2111.10178, §3).

    588, 147, 7056 and 4704 features at 32×32 in variants 1 to 4, which are made to leak
    differently: only variant 3 gives its image away exactly. The paper starts weights uniform: see
    `lenet.start_uniform`.

    Attributes:
        activation: "tanh", or "leaky-relu" as in Appendix C, where a sigmoid follows the last
            layer.
    """

    variant: Literal[1, 2, 3, 4] = 1
    activation: Activation = "tanh"

    def build(self, channels: int, size: tuple[int, int]) -> tuple[nn.Module, int]:
        """The extractor up to the flattened last feature map, and its number of features."""
        from torch import nn  # c(M) of these layers is counted without

        from semsim.targets.layers import activation_layer, feature_count

        layers: list[nn.Module] = []
        inputs = channels
        for kernel, outputs, stride in VARIANTS[self.variant]:
            layers += [
                nn.Conv2d(inputs, outputs, kernel, stride, bias=False),
                activation_layer(self.activation),
            ]
            inputs = outputs
        body = nn.Sequential(*layers, nn.Flatten())
        return body, feature_count(body, channels, size)
