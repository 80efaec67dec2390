"""Noise added to the gradient before it is used or shared."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from semsim.base.registry import Checked, setting
from semsim.defences.base import ApplyAt, Defence, Phase, gaussian, noise_source


@dataclass(frozen=True, kw_only=True)
class GradientNoise(Defence, Checked):
    """Independent noise of standard deviation `std` on every gradient entry.

    Attributes:
        distribution: "gaussian", or "laplacian", whose scale is then std / √2. Papers mean
            different things by "1e-3": Deep Leakage from Gradients a variance, others Laplace's own
            scale.
        apply_at: "train" perturbs only training steps, as the SemSim authors' code does, so that
            the attacker still sees a clean gradient; "attack" only what is shared; "both" is what a
            participant who defends itself would do.
    """

    std: float = setting(1e-3, least=0, below=math.inf)
    apply_at: ApplyAt = "both"
    distribution: Literal["gaussian", "laplacian"] = "gaussian"

    def gradients(
        self, gradients: Sequence[Tensor], rng: torch.Generator, phase: Phase
    ) -> tuple[Tensor, ...]:
        """As `Defence.gradients`: with noise, in the phases it applies to."""
        if self.apply_at not in (phase, "both"):
            return tuple(gradients)
        draw, source = _DRAWS[self.distribution], noise_source(gradients[0].device, rng, phase)
        return tuple(g + self.std * draw(g, source).to(g.device) for g in gradients)


def _laplacian(like: Tensor, rng: torch.Generator) -> Tensor:
    """Laplace of standard deviation 1, as the difference of two exponentials of mean 1/√2."""
    pair = torch.empty(2, *like.shape, dtype=like.dtype, device=rng.device)
    pair.exponential_(math.sqrt(2), generator=rng)
    return pair[0] - pair[1]


_DRAWS = {"gaussian": gaussian, "laplacian": _laplacian}
