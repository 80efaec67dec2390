"""GradAttack's formulation (Huang, Gupta, Song, Li and Arora 2021, arXiv:2112.00059).

It asks what an attack gains from knowing more: the batch norm statistics of the private image, and
its label. Each is a setting here, and each is something an observation has or has not.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from semsim.attacks.batch_norm import BatchNorm
from semsim.attacks.first_order import Found, Matching, Start, Statistics, match_each, only
from semsim.attacks.labels import Label
from semsim.attacks.matching import Distance
from semsim.attacks.minimise import Descent
from semsim.progress import Report, silent
from semsim.types import GradientObservation, Reconstruction


@dataclass(frozen=True, kw_only=True)
class GradAttack:
    """Match gradients by Adam under total variation and batch norm statistics.

    steps, lr: as for InvGrad. signed: Adam takes the sign of the gradient, as the authors' code
    does. distance: "cosine", "cosine-per-layer" or "l2", see `matching.distance_of_each`. tv,
    statistics_weight: weights of the priors. statistics: what the image's batch norm statistics are
    drawn to: "none"; "running", the model's own, which every attacker has; or "leaked", the private
    image's, without which in the observation the attack fails. label: "known", or "inferred" from
    the gradient. batch_norm: by which statistics the attacked model normalises. boxed: keep the
    image in [0, 1] at every step, or only at the end.
    """

    steps: int = 10_000
    lr: float = 0.1
    distance: Distance = "cosine"
    signed: bool = True
    tv: float = 0.1
    statistics: Statistics = "none"
    statistics_weight: float = 0.005
    batch_norm: BatchNorm = "eval"
    label: Label = "known"
    start: Start = "normal"
    boxed: bool = True
    restarts: int = 1

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
        matching = Matching(
            distance=self.distance,
            tv=self.tv,
            statistics=self.statistics,
            statistics_weight=self.statistics_weight,
            batch_norm=self.batch_norm,
            label=self.label,
            start=self.start,
            boxed=self.boxed,
            restarts=self.restarts,
            descent=Descent(steps=self.steps, lr=self.lr, signed=self.signed),
        )
        return match_each(seen, matching, rngs=rngs, report=report)
