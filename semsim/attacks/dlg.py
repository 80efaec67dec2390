"""Deep Leakage from Gradients, and its improved form with an inferred label.

DLG: Zhu, Liu and Han 2019, arXiv:1906.08935. iDLG: Zhao, Mopuri and Bilen 2020, arXiv:2001.02610.
Both match gradients in squared Euclidean distance by L-BFGS, one image at a time.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from semsim.attacks.labels import Label, label_of
from semsim.attacks.matching import GradientDistance
from semsim.attacks.minimise import Descended, minimise_by_lbfgs
from semsim.attacks.together import Found, best_of_starts, only, reconstructions
from semsim.errors import AttackFailedError
from semsim.progress import Report, silent
from semsim.types import GradientObservation, Reconstruction


@dataclass(frozen=True, kw_only=True)
class DLG:
    """Optimise image and label together (DLG, Algorithm 1).

    The unknown label is a vector of logits, one a class, whose softmax is compared with the
    prediction; so neither `label` of the observation nor any inference is used. steps: calls of
    L-BFGS, of up to 20 iterations each. lr: its step size. stop_below: the objective at which the
    search ends. restarts: independent starts, of which the lowest objective is kept. The image is
    optimised in units of the network's input and not boxed, as published.
    """

    # Of iDLG only the code was read, so its "paper" is DLG's length, of which 1200 are usual.
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {"steps": 1200, "lr": 1.0, "stop_below": 0.0},
        "code": {"steps": 300, "lr": 1.0, "stop_below": 1e-6},
        "fast": {"steps": 40, "lr": 1.0, "stop_below": 1e-6},
    }

    steps: int = 300
    lr: float = 1.0
    stop_below: float = 1e-6
    restarts: int = 1

    def __call__(
        self, seen: GradientObservation, *, rng: torch.Generator, report: Report = silent
    ) -> Reconstruction:
        """Reconstruct the image behind `seen`; raises `AttackFailedError` on divergence."""
        return only(best_of_starts(self.restarts, partial(self._one_start, seen, rng), report))

    def _one_start(
        self, seen: GradientObservation, rng: torch.Generator, report: Report
    ) -> list[Found]:
        image = _noise((1, *seen.shape), seen, rng)
        unknowns, labels = self._labels(seen, rng)
        mean, std = seen.model.mean, seen.model.std
        distance = GradientDistance.of([seen], [0], "l2")

        def objective() -> Tensor:
            return replace(distance, labels=labels())(image * std + mean)[0]

        try:
            value = minimise_by_lbfgs(
                objective,
                [image, *unknowns],
                steps=self.steps,
                lr=self.lr,
                stop_below=self.stop_below,
                report=report,
                shown=lambda unknown: unknown * std + mean,
            )
        except AttackFailedError as failure:
            return [failure]
        found = labels()
        told = replace(distance, labels=found if found.dim() == 1 else found.argmax(1))
        images = (image.detach() * std + mean).clamp(0, 1)
        ended = Descended(
            unknown=image, objective=torch.tensor([value], dtype=torch.float64), failures=(None,)
        )
        return reconstructions(images, ended, *told.beside_grey(images))

    def _labels(
        self, seen: GradientObservation, rng: torch.Generator
    ) -> tuple[list[Tensor], Callable[[], Tensor]]:
        """What is unknown about the label, and the label that follows from it."""
        logits = _noise((1, len(seen.gradients[-1])), seen, rng)
        return [logits], lambda: logits.softmax(dim=1)


@dataclass(frozen=True, kw_only=True)
class IDLG(DLG):
    """Optimise the image alone, its label read off the gradient first (iDLG, Algorithm 1).

    label: "inferred" as published, or "known". The other settings are those of `DLG`.
    """

    label: Label = "inferred"

    def _labels(
        self, seen: GradientObservation, rng: torch.Generator
    ) -> tuple[list[Tensor], Callable[[], Tensor]]:
        label = torch.tensor([label_of(seen, self.label)], device=seen.model.mean.device)
        return [], lambda: label


def _noise(shape: tuple[int, ...], seen: GradientObservation, rng: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=rng).to(seen.model.mean).requires_grad_(True)
