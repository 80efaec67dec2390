"""Fully connected layers alone, on which whole batches come back from one gradient."""

from dataclasses import dataclass

import torch
from torch import nn

from semsim.base.registry import Checked, setting
from semsim.targets import Activation
from semsim.targets.layers import activation_layer


@dataclass(frozen=True, kw_only=True)
class MLP(Checked):
    """Linear layers of one width with an activation behind each, and the classifier's last.

    Attributes:
        width: Units of each layer; six layers of 400 are those of Dimitrov et al. 2024,
            arXiv:2403.03945.
        depth: Layers, the last one included.
    """

    width: int = setting(400, least=1)
    depth: int = setting(6, least=2)
    activation: Activation = "relu"

    def build(self, channels: int, size: tuple[int, int]) -> tuple[nn.Module, int]:
        """The layers up to the last, and their width."""
        layers: list[nn.Module] = [nn.Flatten()]
        inputs = channels * torch.Size(size).numel()
        for _ in range(self.depth - 1):
            layers += [nn.Linear(inputs, self.width), activation_layer(self.activation)]
            inputs = self.width
        return nn.Sequential(*layers), self.width
