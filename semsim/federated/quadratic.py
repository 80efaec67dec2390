"""A classifier whose cross-entropy is the quadratic loss, so that every attack can use it."""

import math

import torch
from torch import Tensor, nn

from semsim.layer_graph import LayerGraph


class QuadraticClassifier(nn.Module):
    """A network with outputs y as a classifier with one class more, which no image has.

    Its logits are z_c = y_c for the classes and z₀ = log(exp(½‖y‖² + s) − Σ exp(y_c)) for the
    extra one, so that logsumexp(z) = ½‖y‖² + s, and the cross-entropy of class c is
    ½‖y − e_c‖² + s − ½: the quadratic loss but for a constant, with the same gradients. Since
    y_c ≤ ½ + ½‖y‖², the constant s = 1½ + log(classes) keeps the logarithm's argument positive.

    network: its parameters are this classifier's, in the same order.
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
