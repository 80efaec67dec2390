"""ResNet20-4 for small images, as the SemSim and ATS papers attack it."""

from dataclasses import dataclass

from torch import Tensor, nn

from semsim.targets import Activation
from semsim.targets.layers import activation_layer


class BasicBlock(nn.Module):
    """Two 3×3 convolutions and a shortcut (He et al. 2016, Fig. 5 left)."""

    def __init__(self, inputs: int, outputs: int, stride: int, activation: str) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.activation = activation_layer(activation)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        """(N, inputs, H, W) to (N, outputs, h, w), smaller by the stride."""
        inner = self.activation(self.bn1(self.conv1(x)))
        return self.activation(self.bn2(self.conv2(inner)) + self.shortcut(x))


@dataclass(frozen=True, kw_only=True)
class ResNet20x4:
    """ResNet20-4: three stages of three basic blocks, widths `width`, 2×, 4× (20 layers).

    width: channels of the first stage; 64 is four times the CIFAR ResNet20 of He et al. 2016,
        arXiv:1512.03385 §4.2, hence the "-4".
    activation: "relu" as published, or a smooth one, which leaks far more through its gradient.
    """

    width: int = 64
    activation: Activation = "relu"

    def build(self, channels: int, size: tuple[int, int]) -> tuple[nn.Module, int]:
        """The extractor up to the global average pool, and its 4 × `width` features."""
        layers: list[nn.Module] = [
            nn.Conv2d(channels, self.width, 3, 1, 1, bias=False),
            nn.BatchNorm2d(self.width),
            activation_layer(self.activation),
        ]
        inputs = self.width
        for stage in range(3):
            outputs = self.width * 2**stage
            for block in range(3):
                stride = 2 if stage > 0 and block == 0 else 1
                layers.append(BasicBlock(inputs, outputs, stride, self.activation))
                inputs = outputs
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        return nn.Sequential(*layers), inputs
