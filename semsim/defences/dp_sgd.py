"""DP-SGD: gradients that are clipped image by image, added up and noised."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from semsim.base.errors import SettingsError
from semsim.base.registry import Checked, setting
from semsim.defences.accountant import epsilon
from semsim.defences.base import ApplyAt, Defence, Phase, gaussian, noise_source


@dataclass(frozen=True, kw_only=True)
class DpSgd(Defence, Checked):
    """Abadi et al. 2016, arXiv:1607.00133, Algorithm 1, with batches drawn as its account needs.

    clip: the Euclidean norm C, over all parameters, that each image's gradient is cut to. noise: σ;
    normal noise of σC is added to their sum, which is then divided by the size of a batch.
    delta: the δ at which ε is told, below 1 over the number of training images.
    apply_at: as for gradient noise. At "train" what is shared is the clean gradient of a model that
    was trained so; at "attack" the model is promised nothing.

    The draws are of torch's own generator, good for a measurement and not for a secret.
    """

    clip: float = setting(1.0, above=0, below=math.inf)
    noise: float = setting(1.0, least=0, below=math.inf)
    delta: float = setting(1e-5, above=0, below=1)
    apply_at: ApplyAt = "both"

    @property
    def private(self) -> "DpSgd":
        return self

    def acts(self, phase: Phase) -> bool:
        """Return whether gradients are clipped and noised in `phase`."""
        return self.apply_at in (phase, "both")

    def clipped_sum(self, each: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The sum over images of their gradients, each cut to the norm `clip`.

        each: one (N, *parameter.shape) a parameter. Returns one of its shape a parameter.
        """
        squares = torch.stack([g.flatten(1).square().sum(1) for g in each])
        factor = (self.clip / squares.sum(0).sqrt().clamp_min(1e-12)).clamp_max(1)
        return tuple(torch.tensordot(factor, g, dims=1) for g in each)

    def noised_mean(
        self, total: Sequence[Tensor], batch: int, rng: torch.Generator, phase: Phase
    ) -> tuple[Tensor, ...]:
        """A clipped sum with noise, over `batch`, the size a batch should have; shapes as given."""
        std, source = self.noise * self.clip, noise_source(total[0].device, rng, phase)
        return tuple((g + std * gaussian(g, source).to(g.device)) / batch for g in total)

    def promise(self, images: int, batch: int, epochs: int) -> dict[str, Any]:
        """`epsilon`, None where it is infinite, and `delta` of a training, as kept in its facts.

        All `epochs` count, also those after one that ends the training early. Raises
        `SettingsError` where `delta` promises nothing to any one of the `images`.
        """
        if not self.delta < 1 / images:
            raise SettingsError(
                f"delta={self.delta:g} lets one of {images} training images be given away whole; "
                f"take one below {1 / images:.1g}."
            )
        spent = math.inf
        if self.acts("train"):
            steps = epochs * math.ceil(images / batch)
            spent = epsilon(self.noise, min(1.0, batch / images), steps, self.delta)
        return {"epsilon": None if math.isinf(spent) else spent, "delta": self.delta}
