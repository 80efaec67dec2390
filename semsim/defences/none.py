"""No defence: the vanilla strategy."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from semsim.defences.base import Augmented, Phase, unchanged


@dataclass(frozen=True, kw_only=True)
class NoDefence:
    """Train on the images as they are and share the gradient as it is."""

    def images(self, images: Tensor, rng: torch.Generator) -> Augmented:
        return unchanged(images)

    def gradients(
        self, gradients: Sequence[Tensor], rng: torch.Generator, phase: Phase
    ) -> tuple[Tensor, ...]:
        return tuple(gradients)
