"""Inverting Gradients (Geiping, Bauermeister, Dröge and Moeller 2020, arXiv:2003.14053)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from semsim.attacks.batch_norm import BatchNorm
from semsim.attacks.first_order import Found, Matching, Start, match_each, only
from semsim.attacks.labels import Label
from semsim.attacks.minimise import Descent
from semsim.progress import Report, silent
from semsim.types import GradientObservation, Reconstruction


@dataclass(frozen=True, kw_only=True)
class InvGrad:
    """Match gradient directions by signed Adam under total variation, kept inside the image box.

    steps: iterations of one restart. lr: first step size, in units of the model's normalised
    input. tv: weight of total variation. restarts: independent starts; the one with the lowest
    objective of its own is kept, since the attacker has nothing else to go by. start: "normal"
    noise as published, or "grey", the mean image, which needs fewer steps to look clean.
    label: "known", or "inferred" from the gradient. batch_norm: "eval" uses running statistics,
    "train" the image's own, as a participant in training mode with one image does.
    curvature: share of `lent_curvature` that ReLUs have in the slope of the distance; 0, as
    published, is the true slope.
    """

    steps: int = 4800
    lr: float = 0.1
    tv: float = 1e-4
    restarts: int = 1
    start: Start = "normal"
    label: Label = "known"
    batch_norm: BatchNorm = "eval"
    curvature: float = 0.0

    def __call__(
        self,
        seen: GradientObservation,
        *,
        rng: torch.Generator,
        report: Report = silent,
    ) -> Reconstruction:
        """Reconstruct the image behind `seen`; raises `AttackFailedError` on divergence."""
        return only(self.many([seen], rngs=[rng], report=report))

    def many(
        self,
        seen: Sequence[GradientObservation],
        *,
        rngs: Sequence[torch.Generator],
        report: Report = silent,
    ) -> list[Found]:
        """One result an observation of one model; a failed image does not stop the others."""
        return match_each(seen, self._matching(), rngs=rngs, report=report)

    def _matching(self) -> Matching:
        return Matching(
            distance="cosine",
            tv=self.tv,
            statistics="none",
            statistics_weight=0.0,
            batch_norm=self.batch_norm,
            label=self.label,
            start=self.start,
            boxed=True,
            restarts=self.restarts,
            curvature=self.curvature,
            descent=Descent(steps=self.steps, lr=self.lr, signed=True),
        )
