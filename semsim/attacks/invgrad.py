"""Inverting Gradients (Geiping, Bauermeister, Dröge and Moeller 2020, arXiv:2003.14053)."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from semsim.attacks.matching import (
    cosine_distance,
    minimise_by_signed_adam,
    parameter_gradients,
    total_variation,
)
from semsim.errors import AttackFailedError
from semsim.progress import Report, silent
from semsim.types import GradientObservation, Reconstruction


@dataclass(frozen=True, kw_only=True)
class InvGrad:
    """Match gradient directions by signed Adam under total variation, kept inside the image box.

    steps: iterations of one restart. lr: first step size, in units of the model's normalised
    input. tv: weight of total variation. restarts: independent starts; the one with the lowest
    objective of its own is kept, since the attacker has nothing else to go by. start: "normal"
    noise as published, or "grey", the mean image, which needs fewer steps to look clean.
    """

    steps: int = 4800
    lr: float = 0.1
    tv: float = 1e-4
    restarts: int = 1
    start: Literal["normal", "grey"] = "normal"

    def __call__(
        self,
        seen: GradientObservation,
        *,
        rng: torch.Generator,
        report: Report = silent,
    ) -> Reconstruction:
        """Reconstruct the image behind `seen`; raises `AttackFailedError` on divergence."""
        if seen.label is None:
            raise AttackFailedError("InvGrad needs the label; infer it first.")
        return min(
            (self._one_start(seen, seen.label, rng, report) for _ in range(self.restarts)),
            key=lambda found: found.objective,
        )

    def _one_start(
        self, seen: GradientObservation, label: int, rng: torch.Generator, report: Report
    ) -> Reconstruction:
        model = seen.model
        mean, std = model.mean, model.std
        labels = torch.tensor([label], device=mean.device)

        def objective(unknown: Tensor) -> Tensor:
            gradients = parameter_gradients(
                model, unknown * std + mean, labels, differentiable=True
            )
            prior = self.tv * total_variation(unknown)
            return cosine_distance(gradients, seen.gradients) + prior

        start = torch.zeros((1, *seen.shape))
        if self.start == "normal":
            start = torch.randn(start.shape, generator=rng)
        unknown, value = minimise_by_signed_adam(
            objective,
            start.to(mean.device),
            bounds=(-mean / std, (1 - mean) / std),
            steps=self.steps,
            lr=self.lr,
            report=report,
        )
        return Reconstruction(image=(unknown * std + mean)[0].clamp(0, 1), objective=value)
