"""ResNets: ResNet20-4 for small images, as the SemSim and ATS papers attack it, and deep ones.

ResNet50 and ResNet152 have a stem for small images or the original one.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor, nn

from semsim.base.registry import Checked
from semsim.targets import Activation
from semsim.targets.layers import activation_layer

Stem = Literal["auto", "small", "large"]
LARGEST_SMALL = 64  # pixels; the original stem and pool would leave 2×2 of such an image's 64×64
_EXPANSION = 4


def _shortcut(inputs: int, outputs: int, stride: int) -> nn.Module:
    if stride == 1 and inputs == outputs:
        return nn.Identity()
    convolution = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs))


class BasicBlock(nn.Module):
    """Two 3×3 convolutions and a shortcut (He et al. 2016, Fig. 5 left)."""

    def __init__(self, inputs: int, outputs: int, stride: int, activation: str) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.activation = activation_layer(activation)
        self.shortcut = _shortcut(inputs, outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        """(N, inputs, H, W) to (N, outputs, h, w), smaller by the stride."""
        inner = self.activation(self.bn1(self.conv1(x)))
        return self.activation(self.bn2(self.conv2(inner)) + self.shortcut(x))


@dataclass(frozen=True, kw_only=True)
class ResNet20x4:
    """ResNet20-4: three stages of three basic blocks, widths `width`, 2×, 4× (20 layers).

    Attributes:
        width: Channels of the first stage; 64 is four times the CIFAR ResNet20 of He et al. 2016,
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


class _Bottleneck(nn.Module):
    """1×1, 3×3 and 1×1 convolutions and a shortcut (He et al. 2016, Fig. 5 right).

    The stride is that of the 3×3 convolution, as in torchvision.
    """

    def __init__(self, inputs: int, width: int, stride: int, activation: str) -> None:
        super().__init__()
        outputs = width * _EXPANSION
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.activation = activation_layer(activation)
        self.shortcut = _shortcut(inputs, outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        inner = self.activation(self.bn1(self.conv1(x)))
        inner = self.activation(self.bn2(self.conv2(inner)))
        return self.activation(self.bn3(self.conv3(inner)) + self.shortcut(x))


@dataclass(frozen=True, kw_only=True)
class ResNet50(Checked):
    """Stages of 3, 4, 6 and 3 bottleneck blocks (He et al. 2016, arXiv:1512.03385, Table 1).

    Attributes:
        width: Inner channels of the first stage, doubled at each of the others.
        stem: "large" is the original 7×7 of stride 2 and a max pool, "small" one 3×3 of stride 1;
            "auto" takes "small" where the shorter side has at most 64 pixels. The SemSim authors'
            code uses the small one at 112 pixels too.
    """

    blocks: ClassVar[tuple[int, ...]] = (3, 4, 6, 3)

    width: int = 64
    activation: Activation = "relu"
    stem: Stem = "auto"

    def build(self, channels: int, size: tuple[int, int]) -> tuple[nn.Module, int]:
        """The extractor up to the global average pool, and its 32 × `width` features."""
        small = self.stem == "small" or (self.stem == "auto" and min(size) <= LARGEST_SMALL)
        return _residual(self.blocks, channels, self.width, self.activation, small=small)


@dataclass(frozen=True, kw_only=True)
class ResNet152(ResNet50):
    """Stages of 3, 8, 36 and 3 bottleneck blocks; settings as for `ResNet50`."""

    blocks: ClassVar[tuple[int, ...]] = (3, 8, 36, 3)


def _residual(
    blocks: tuple[int, ...], channels: int, width: int, activation: str, *, small: bool
) -> tuple[nn.Module, int]:
    stem: list[nn.Module] = [
        nn.Conv2d(channels, width, 3, 1, 1, bias=False)
        if small
        else nn.Conv2d(channels, width, 7, 2, 3, bias=False),
        nn.BatchNorm2d(width),
        activation_layer(activation),
    ]
    layers = stem if small else [*stem, nn.MaxPool2d(3, 2, 1)]
    inputs = width
    for stage, count in enumerate(blocks):
        inner = width * 2**stage
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            layers.append(_Bottleneck(inputs, inner, stride, activation))
            inputs = inner * _EXPANSION
    body = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    _start(body)
    return body, inputs


def _start(body: nn.Module) -> None:
    """He et al.'s start, as torchvision has it; without it 152 layers hardly train."""
    for module in body.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
