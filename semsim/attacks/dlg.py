"""Deep Leakage from Gradients, and its improved form with an inferred label.

DLG: Zhu, Liu and Han 2019, arXiv:1906.08935. iDLG: Zhao, Mopuri and Bilen 2020, arXiv:2001.02610.
Both match gradients in squared Euclidean distance by L-BFGS, which every image has for itself.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from semsim.attacks.descent import (
    Found,
    Rngs,
    Seen,
    Together,
    best_of_starts,
    reconstructions,
)
from semsim.attacks.descent.distance import distance_from
from semsim.attacks.descent.lbfgs import Pace, minimise_by_lbfgs
from semsim.attacks.labels import Label, chances_of_grey, label_of
from semsim.base.progress import Report
from semsim.base.registry import setting
from semsim.types import GradientObservation


@dataclass(frozen=True, kw_only=True)
class DLG(Together):
    """Optimise image and label together (DLG, Algorithm 1).

    The unknown label is a vector of logits, one a class, whose softmax is compared with the
    prediction; so neither `label` of the observation nor any inference is used.

    Attributes:
        steps: Calls of L-BFGS, of up to 20 iterations each.
        lr: Its step size.
        stop_below: The objective at which the search ends.
        restarts: Independent starts, of which the lowest objective is kept. The image is optimised
            in units of the network's input and not boxed, as published.
    """

    # Of iDLG only the code was read, so its "paper" is DLG's length, of which 1200 are usual.
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {"steps": 1200, "lr": 1.0, "stop_below": 0.0},
        "code": {"steps": 300, "lr": 1.0, "stop_below": 1e-6},
        "fast": {"steps": 40, "lr": 1.0, "stop_below": 1e-6},
    }

    steps: int = setting(300, least=1)
    lr: float = setting(1.0, above=0)
    stop_below: float = 1e-6
    restarts: int = setting(1, least=1)

    def told_label(self, seen: GradientObservation) -> int:
        """0, which nothing reads: the label is one of the unknowns."""
        return 0

    def solve(self, seen: Seen, labels: Sequence[int], rngs: Rngs, report: Report) -> list[Found]:
        return best_of_starts(self.restarts, partial(self._one_start, seen, labels, rngs), report)

    def _one_start(
        self, seen: Seen, labels: Sequence[int], rngs: Rngs, report: Report
    ) -> list[Found]:
        mean, std = seen[0].model.mean, seen[0].model.std
        distance = distance_from(seen, labels, "l2")
        size = math.prod(seen[0].shape)
        drawn = [
            torch.cat([torch.randn(n, generator=rng) for n in (size, self._unknown_of_labels(one))])
            for one, rng in zip(seen, rngs, strict=True)
        ]

        def images(unknown: Tensor) -> Tensor:
            return unknown[:, :size].reshape(-1, *seen[0].shape) * std + mean

        def objective_of(places: Sequence[int]) -> Callable[[Tensor], Tensor]:
            own = distance.some(places)

            def objective(unknown: Tensor) -> Tensor:
                labels = self._labels(unknown[:, size:], own.labels)
                return replace(own, labels=labels)(images(unknown))

            return objective

        ended = minimise_by_lbfgs(
            objective_of,
            torch.stack(drawn).to(mean),
            Pace(self.steps, self.lr, self.stop_below),
            report=report,
            shown=images,
        )
        found = self._labels(ended.unknown[:, size:], distance.labels)
        told = replace(distance, labels=found if found.dim() == 1 else found.argmax(1))
        rebuilt = images(ended.unknown).clamp(0, 1)
        return reconstructions(rebuilt, ended, *told.beside_grey(rebuilt))

    def _unknown_of_labels(self, seen: GradientObservation) -> int:
        """Return the number of unknown values of a label."""
        return len(chances_of_grey(seen))

    def _labels(self, unknown: Tensor, told: Tensor) -> Tensor:
        """The labels that follow from what is unknown about them, (N, numbers)."""
        return unknown.softmax(dim=1)


@dataclass(frozen=True, kw_only=True)
class IDLG(DLG):
    """Optimise the image alone, its label read off the gradient first (iDLG, Algorithm 1).

    Attributes:
        label: "inferred" as published, or "known". The other settings are those of `DLG`.
    """

    label: Label = "inferred"

    def told_label(self, seen: GradientObservation) -> int:
        return label_of(seen, self.label)

    def _unknown_of_labels(self, seen: GradientObservation) -> int:
        return 0

    def _labels(self, unknown: Tensor, told: Tensor) -> Tensor:
        return told
