"""The two small classifiers on which gradient inversion is mostly studied."""

from dataclasses import dataclass

import torch
from torch import nn

from semsim.targets import Activation
from semsim.targets.layers import activation_layer, feature_count


@dataclass(frozen=True, kw_only=True)
class LeNet:
    """Three 5×5 convolutions, the first two of stride 2, as in Deep Leakage from Gradients' code.

    Zhu et al. 2019, arXiv:1906.08935 §4.1: sigmoids and no pooling, so that the gradient can be
    differentiated; 768 features at 32×32. Their weights start uniform in ±0.5: see `start_uniform`.

    Attributes:
        width: Channels of each layer.
    """

    width: int = 12
    activation: Activation = "sigmoid"

    def build(self, channels: int, size: tuple[int, int]) -> tuple[nn.Module, int]:
        """The extractor up to the flattened last feature map, and its number of features."""
        layers: list[nn.Module] = []
        inputs = channels
        for stride in (2, 2, 1):
            layers += [
                nn.Conv2d(inputs, self.width, 5, stride, padding=2),
                activation_layer(self.activation),
            ]
            inputs = self.width
        body = nn.Sequential(*layers, nn.Flatten())
        return body, feature_count(body, channels, size)


@dataclass(frozen=True, kw_only=True)
class CNN4:
    """Four 3×3 convolutions; the second and third halve the image.

    2048 features at 32×32.

    Attributes:
        width: Channels of each layer.
        activation: Smooth ones leak far more through the gradient.
        batch_norm: After each convolution, so that the same network can be attacked with it.
    """

    width: int = 32
    activation: Activation = "relu"
    batch_norm: bool = False

    def build(self, channels: int, size: tuple[int, int]) -> tuple[nn.Module, int]:
        """The extractor up to the flattened last feature map, and its number of features."""
        layers: list[nn.Module] = []
        inputs = channels
        for stride in (1, 2, 2, 1):
            layers.append(nn.Conv2d(inputs, self.width, 3, stride, padding=1))
            layers += [nn.BatchNorm2d(self.width)] if self.batch_norm else []
            layers.append(activation_layer(self.activation))
            inputs = self.width
        body = nn.Sequential(*layers, nn.Flatten())
        return body, feature_count(body, channels, size)


@torch.no_grad()
def start_uniform(model: nn.Module, rng: torch.Generator, bound: float = 0.5) -> None:
    """Set every weight and bias uniform in ±`bound`, as Deep Leakage from Gradients starts LeNet.

    A sigmoid network's gradient is larger so than from PyTorch's initial weights, which attacks by
    plain descent need; `prior` gets images back from either.
    """
    for parameter in model.parameters():
        drawn = torch.rand(parameter.shape, generator=rng, dtype=parameter.dtype)
        parameter.copy_((2 * drawn - 1) * bound)
