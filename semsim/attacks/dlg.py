"""Deep Leakage from Gradients, and its improved form with an inferred label.

DLG: Zhu, Liu and Han 2019, arXiv:1906.08935. iDLG: Zhao, Mopuri and Bilen 2020, arXiv:2001.02610.
Both match gradients in squared Euclidean distance by L-BFGS, one image at a time.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from semsim.attacks.first_order import residuals, stack_targets
from semsim.attacks.labels import Label, label_of
from semsim.attacks.matching import distance_of_each
from semsim.attacks.minimise import minimise_by_lbfgs, one_of
from semsim.attacks.per_sample import gradient_of_each
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

    steps: int = 300
    lr: float = 1.0
    stop_below: float = 1e-6
    restarts: int = 1

    def __call__(
        self, seen: GradientObservation, *, rng: torch.Generator, report: Report = silent
    ) -> Reconstruction:
        """Reconstruct the image behind `seen`; raises `AttackFailedError` on divergence."""
        return _best_of(self.restarts, report, lambda told: self._one_start(seen, rng, told))

    def _one_start(
        self, seen: GradientObservation, rng: torch.Generator, report: Report
    ) -> Reconstruction:
        image = _noise((1, *seen.shape), seen, rng)
        logits = _noise((1, len(seen.gradients[-1])), seen, rng)

        def objective() -> Tensor:
            return _squared_distance(seen, image, logits.softmax(dim=1))

        value = minimise_by_lbfgs(
            objective,
            [image, logits],
            steps=self.steps,
            lr=self.lr,
            stop_below=self.stop_below,
            report=report,
        )
        return _reconstruction(seen, image, int(logits.argmax()), value)


@dataclass(frozen=True, kw_only=True)
class IDLG:
    """Optimise the image alone, its label read off the gradient first (iDLG, Algorithm 1).

    label: "inferred" as published, or "known". The other settings are those of `DLG`.
    """

    steps: int = 300
    lr: float = 1.0
    stop_below: float = 1e-6
    restarts: int = 1
    label: Label = "inferred"

    def __call__(
        self, seen: GradientObservation, *, rng: torch.Generator, report: Report = silent
    ) -> Reconstruction:
        """Reconstruct the image behind `seen`; raises `AttackFailedError` on divergence."""
        label = label_of(seen, self.label)
        return _best_of(self.restarts, report, lambda told: self._one_start(seen, label, rng, told))

    def _one_start(
        self, seen: GradientObservation, label: int, rng: torch.Generator, report: Report
    ) -> Reconstruction:
        image = _noise((1, *seen.shape), seen, rng)
        labels = torch.tensor([label], device=image.device)
        value = minimise_by_lbfgs(
            lambda: _squared_distance(seen, image, labels),
            [image],
            steps=self.steps,
            lr=self.lr,
            stop_below=self.stop_below,
            report=report,
        )
        return _reconstruction(seen, image, label, value)


def _best_of(
    restarts: int, report: Report, start: Callable[[Report], Reconstruction]
) -> Reconstruction:
    """The start with the lowest objective; raises the last failure where all failed."""
    best: Reconstruction | None = None
    failure = AttackFailedError(f"Expected at least one restart, got {restarts}.")
    for part in range(restarts):
        try:
            found = start(one_of(report, part, restarts))
        except AttackFailedError as error:
            failure = error
            continue
        if best is None or found.objective < best.objective:
            best = found
    if best is None:
        raise failure
    return best


def _noise(shape: tuple[int, ...], seen: GradientObservation, rng: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=rng).to(seen.model.mean).requires_grad_(True)


def _squared_distance(seen: GradientObservation, image: Tensor, labels: Tensor) -> Tensor:
    model = seen.model
    found = gradient_of_each(model, image * model.std + model.mean, labels, differentiable=True)
    target = [gradient[None] for gradient in seen.gradients]
    return distance_of_each(found, target, "l2")[0]


def _reconstruction(
    seen: GradientObservation, unknown: Tensor, label: int, value: float
) -> Reconstruction:
    image = (unknown.detach() * seen.model.std + seen.model.mean).clamp(0, 1)
    residual, grey = residuals([seen], image, stack_targets([seen], [label]), "l2", "eval")
    return Reconstruction(
        image=image[0].to(torch.float32),
        objective=value,
        residual=residual[0],
        grey_residual=grey[0],
    )
