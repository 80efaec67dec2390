"""bfloat16 inside a network that is trained, and whether it may stand in for float32 there.

Weights, gradients and batch statistics stay float32; products inside the network have eight binary
digits, which GPUs with tensor cores compute several times as fast. A model is always tested, and
attacked, in float32.
"""

import copy
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from semsim.base.errors import SettingsError
from semsim.device import in_float64

# Chosen before anything was measured.
LOSS_APART, COSINE = 0.02, 0.98


class Deviation(NamedTuple):
    """Deviation of one batch in bfloat16 from the same in float32.

    Attributes:
        loss: Relative.
        cosine: Of the two gradients, all parameters joined.
    """

    loss: float
    cosine: float

    @property
    def small(self) -> bool:
        """True where training may use bfloat16; no comparison with NaN holds."""
        return self.loss <= LOSS_APART and self.cosine >= COSINE

    @property
    def words(self) -> str:
        """Both numbers and what they may be."""
        return (
            f"the loss is off by {self.loss:.2%} (at most {LOSS_APART:.0%}), the gradient's cosine "
            f"is {self.cosine:.4f} (at least {COSINE})"
        )


def deviation(model: nn.Module, images: Tensor, labels: Tensor) -> Deviation:
    """That of the mean cross-entropy of a batch and its gradient; `model` stays as it is.

    Args:
        images: (N, C, H, W) in [0, 1], on the model's device.
        labels: (N,) class indices.
    """
    exact, found = (_passed(model, images, labels, mixed) for mixed in (False, True))
    return Deviation(
        loss=abs(found[0] - exact[0]) / max(abs(exact[0]), 1e-12),
        cosine=float(F.cosine_similarity(found[1], exact[1], dim=0)),
    )


def check_mixed(model: nn.Module, images: Tensor, labels: Tensor) -> Deviation:
    """`deviation` of images, (N, C, H, W); `SettingsError` where it is too large to train by."""
    found = deviation(model, images, labels)
    if not found.small:
        raise SettingsError(
            f"mixed_precision changes what this network learns from: {found.words}. Train without."
        )
    return found


def _passed(model: nn.Module, images: Tensor, labels: Tensor, mixed: bool) -> tuple[float, Tensor]:
    """The loss, and its gradient as one vector in float64."""
    copied = copy.deepcopy(model)  # batch norm counts what it sees
    devices = [images.device] if images.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(0)  # dropout alike
        with torch.autocast(images.device.type, torch.bfloat16, enabled=mixed):
            loss = F.cross_entropy(copied(images), labels)
        gradients = torch.autograd.grad(loss, tuple(copied.parameters()))
    return loss.item(), torch.cat([in_float64(one.flatten()) for one in gradients])
