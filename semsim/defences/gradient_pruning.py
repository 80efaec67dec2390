"""Small gradient entries set to zero before the gradient is used or shared."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from semsim.base.registry import Checked, setting
from semsim.defences.base import ApplyAt, Defence, Phase


@dataclass(frozen=True, kw_only=True)
class GradientPruning(Defence, Checked):
    """In each layer's gradient the share `rate` of smallest magnitude becomes zero.

    Layer by layer, that is tensor by tensor, as in the SemSim authors' code (rate 0.7) and Zhu et
    al. 2019, arXiv:1906.08935 §5. Entries as large as the threshold stay: where many are equal,
    fewer are cut.

    Attributes:
        apply_at: "train", "attack" or "both", as for gradient noise.
    """

    rate: float = setting(0.7, least=0, below=1)
    apply_at: ApplyAt = "both"

    def gradients(
        self, gradients: Sequence[Tensor], rng: torch.Generator, phase: Phase
    ) -> tuple[Tensor, ...]:
        """As `Defence.gradients`: without the smallest entries, in the phases it applies to."""
        if self.apply_at not in (phase, "both"):
            return tuple(gradients)
        return tuple(_pruned(g, self.rate) for g in gradients)


def _pruned(gradient: Tensor, rate: float) -> Tensor:
    size = gradient.abs()
    # As the authors count, in per cent: int(0.7 * 90) would be 62.
    cut = int(size.numel() * round(100 * rate, 9) * 0.01)
    if cut == 0:
        return gradient
    # torch.quantile refuses more than 2^24 entries; the order statistic does not.
    threshold = size.flatten().kthvalue(cut + 1).values
    return torch.where(size < threshold, 0, gradient)
