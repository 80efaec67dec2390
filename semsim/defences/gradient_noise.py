"""Noise added to the gradient before it is used or shared."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from semsim.defences.base import Augmented, Phase, unchanged


@dataclass(frozen=True, kw_only=True)
class GradientNoise:
    """Independent Gaussian noise of standard deviation `std` on every gradient entry.

    apply_at: "train" perturbs only training steps, as the SemSim authors' code does, so that the
        attacker still sees a clean gradient; "attack" only what is shared; "both" is what a
        participant who defends itself would do.
    """

    std: float = 1e-3
    apply_at: Literal["train", "attack", "both"] = "both"

    def images(self, images: Tensor, rng: torch.Generator) -> Augmented:
        return unchanged(images)

    def gradients(
        self, gradients: Sequence[Tensor], rng: torch.Generator, phase: Phase
    ) -> tuple[Tensor, ...]:
        if self.apply_at not in (phase, "both"):
            return tuple(gradients)
        return tuple(
            g + self.std * torch.randn(g.shape, generator=rng, dtype=g.dtype).to(g.device)
            for g in gradients
        )
