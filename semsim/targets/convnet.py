"""Plain convolutional classifiers."""

from dataclasses import dataclass

from torch import nn

from semsim.targets import Activation
from semsim.targets.layers import activation_layer, feature_count


def _convolution(inputs: int, outputs: int, activation: str) -> list[nn.Module]:
    return [
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.BatchNorm2d(outputs),
        activation_layer(activation),
    ]


@dataclass(frozen=True, kw_only=True)
class ConvNet8:
    """Eight 3×3 convolutions with batch norm, two max pools by 3 (Geiping et al. 2020, ConvNet64).

    Attributes:
        width: Channels of the first layer; the others are 2× and 4× of it.
        activation: "relu", or a smooth one, which leaks far more through its gradient.
    """

    width: int = 64
    activation: Activation = "relu"

    def build(self, channels: int, size: tuple[int, int]) -> tuple[nn.Module, int]:
        """The extractor up to the flattened last feature map, and its number of features."""
        w = self.width
        plan = [w, 2 * w, 2 * w, 4 * w, 4 * w, 4 * w, 0, 4 * w, 4 * w, 0]  # 0 is a max pool
        layers: list[nn.Module] = []
        inputs = channels
        for outputs in plan:
            if outputs == 0:
                layers.append(nn.MaxPool2d(3))
            else:
                layers += _convolution(inputs, outputs, self.activation)
                inputs = outputs
        layers.append(nn.Flatten())
        body = nn.Sequential(*layers)
        return body, feature_count(body, channels, size)


@dataclass(frozen=True, kw_only=True)
class SmallCNN:
    """A small classifier for jobs beside the attack: recognising, predicting, testing.

    Attributes:
        width: Channels of the first layer, doubled at each of two poolings.
    """

    width: int = 24
    activation: Activation = "relu"

    def build(self, channels: int, size: tuple[int, int]) -> tuple[nn.Module, int]:
        """The extractor up to the global average pool, and its 4 × `width` features."""
        w = self.width
        body = nn.Sequential(
            *_convolution(channels, w, self.activation),
            *_convolution(w, w, self.activation),
            nn.MaxPool2d(2),
            *_convolution(w, 2 * w, self.activation),
            nn.MaxPool2d(2),
            *_convolution(2 * w, 4 * w, self.activation),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        return body, feature_count(body, channels, size)


@dataclass(frozen=True, kw_only=True)
class PooledCNN:
    """Seven 3×3 convolutions that pool before they normalise, for speed on a CPU.

    After Jordan 2024, arXiv:2404.04498 §2, without its whitened first layer.

    Attributes:
        width: Channels of the first of three blocks, doubled at each of the others.
    """

    width: int = 64
    activation: Activation = "relu"

    def build(self, channels: int, size: tuple[int, int]) -> tuple[nn.Module, int]:
        """The extractor up to the global maximum, and its 4 × `width` features."""
        inputs = max(1, self.width // 2)
        layers: list[nn.Module] = [
            nn.Conv2d(channels, inputs, 3, padding=1),
            activation_layer(self.activation),
        ]
        for outputs in (self.width, 2 * self.width, 4 * self.width):
            first, *rest = _convolution(inputs, outputs, self.activation)
            layers += [first, nn.MaxPool2d(2), *rest]
            layers += _convolution(outputs, outputs, self.activation)
            inputs = outputs
        body = nn.Sequential(*layers, nn.AdaptiveMaxPool2d(1), nn.Flatten())
        return body, feature_count(body, channels, size)
