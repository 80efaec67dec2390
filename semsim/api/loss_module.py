"""SemSim as a loss for training loops."""

from typing import Literal

from torch import Tensor, nn

from semsim.api.pretrained import SemSim
from semsim.base.errors import SettingsError

Reduction = Literal["mean", "sum", "none"]


class SemSimLoss(nn.Module):
    """The distance by a trained SemSim, to be made small, as by what should be recognised.

    A defence that should not leak subtracts it. metric: a SemSim, or what
    `SemSim.from_pretrained` loads. reduction: "mean" or "sum" over images, or "none".
    The SemSim is frozen: it gives no parameters to an optimiser.

    >>> import torch, semsim
    >>> loss = semsim.SemSimLoss("checkpoints/demo")
    >>> picture = torch.full((1, 3, 32, 32), 0.5, requires_grad=True)
    >>> loss(picture, torch.rand(1, 3, 32, 32)).backward()
    >>> picture.grad.shape
    torch.Size([1, 3, 32, 32])
    """

    def __init__(self, metric: SemSim | str, reduction: Reduction = "mean") -> None:
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            raise SettingsError(f"reduction must be mean, sum or none; got {reduction!r}.")
        self.metric = SemSim.from_pretrained(metric) if isinstance(metric, str) else metric
        self.reduction = reduction

    def forward(self, reconstructions: Tensor, originals: Tensor) -> Tensor:
        """A number, or (N,) with reduction "none"; 0 or more, differentiable in both.

        reconstructions, originals: (N, 3, H, W) floats in [0, 1], as after a sigmoid.
        Raises `DataError` for anything else.
        """
        distances: Tensor = self.metric(originals, reconstructions)
        if self.reduction == "none":
            return distances
        return distances.mean() if self.reduction == "mean" else distances.sum()
