"""Matching gradients in the coordinates of natural images: two optimisers on one problem."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from semsim.attacks.batch_norm import BatchNorm
from semsim.attacks.matching import FLOOR, Targets, total_variation_of_each
from semsim.attacks.minimise import Descended, Descent, descend
from semsim.attacks.per_sample import cosine_distance_of_each, gradient_of_each
from semsim.attacks.prior_basis import ImageBasis
from semsim.attacks.translation import Move, moved
from semsim.progress import Progress, Report
from semsim.types import AttackedModel

_HISTORY = 100  # pairs of steps that L-BFGS remembers
_SCALE = 1e5  # torch's L-BFGS drops curvature pairs below an absolute 1e-10; near the truth all are


@dataclass(frozen=True, kw_only=True)
class Problem:
    """The images of several observations of one model, as functions of coefficients.

    moves: what augmentation is believed to have done to each image; STILL for nothing.
    kinked: which distance is matched, see `distance`. curvature: share of `lent_curvature` that
    the model's ReLUs are lent.
    """

    model: AttackedModel
    targets: Targets
    basis: ImageBasis
    moves: tuple[Move, ...]
    batch_norm: BatchNorm
    kinked: bool
    curvature: float

    def images(self, coefficients: Tensor) -> Tensor:
        """The images whose gradients leaked, as `coefficients` have them: (N, C, H, W)."""
        images = self.basis.image(coefficients)
        if not any(any(move.shift) for move in self.moves):
            return images
        return torch.cat(
            [moved(one, move) for one, move in zip(images.split(1), self.moves, strict=True)]
        )

    def distance(self, images: Tensor, *, differentiable: bool) -> Tensor:
        """How far the gradients of `images` are from those seen, (N,), without priors.

        Joint cosine where the model has kinks, scaled squared distance otherwise: the latter is a
        sum of squares, which suits L-BFGS; the former forgives that a wrong pattern of active
        units scales the gradient.
        """
        if self.kinked:
            return cosine_distance_of_each(
                self.model,
                images,
                self.targets,
                "cosine",
                batch_norm=self.batch_norm,
                curvature=self.curvature,
            )
        found = gradient_of_each(
            self.model,
            images,
            self.targets.labels,
            differentiable=differentiable,
            batch_norm=self.batch_norm,
        )
        return scaled_distance_of_each(found, self.targets.gradients)

    def some(self, places: Sequence[int], moves: Sequence[Move]) -> "Problem":
        """The problem of the observations at `places` alone, with other moves."""
        index = torch.tensor(list(places), device=self.targets.labels.device)
        return replace(
            self,
            targets=Targets(
                gradients=tuple(g[index] for g in self.targets.gradients),
                labels=self.targets.labels[index],
            ),
            moves=tuple(moves),
        )

    def only(self, place: int) -> "Problem":
        """The problem of the observation at `place` alone."""
        return self.some([place], [self.moves[place]])


def scaled_distance_of_each(found: Sequence[Tensor], target: Sequence[Tensor]) -> Tensor:
    """Squared distance of gradients with small tensors lifted, one value an image, (N,).

    Σ w_i ‖found_i − target_i‖² / Σ w_i ‖target_i‖², i over tensors, each (N, *parameter.shape),
    w_i = ‖target_i‖^(−1/2), where no ‖target_i‖ counts as less than `FLOOR` of the whole: 0 where
    equal, 1 where `found` is 0. Between the joint relative distance, w_i = 1, which hears only the
    largest tensors, and one relative to each tensor, w_i = ‖target_i‖^(−2), in which the smallest
    drown the others; measured best for L-BFGS.
    """
    squares = torch.stack([b.flatten(1).square().sum(1) for b in target])
    norms = squares.sqrt().maximum(FLOOR * squares.sum(0).sqrt())
    weights = norms.clamp_min(torch.finfo(norms.dtype).tiny).rsqrt()
    errors = [(a - b).flatten(1).square().sum(1) for a, b in zip(found, target, strict=True)]
    return (weights * torch.stack(errors)).sum(0) / (weights * norms.square()).sum(0)


def solve_by_adam(
    problem: Problem, start: Tensor, *, steps: int, lr: float, tv: float, report: Report
) -> Descended:
    """Adam on all images at once, its step size falling to 0 along a cosine.

    start: (N, C, H, W) coefficients. tv: weight of the total variation of the image, in [0, 1].
    """

    def objective(coefficients: Tensor) -> Tensor:
        images = problem.images(coefficients)
        distance = problem.distance(images, differentiable=True)
        return distance + tv * total_variation_of_each(images)

    descent = Descent(steps=steps, lr=lr, signed=False, schedule="cosine")
    return descend(objective, start, descent=descent, bounds=None, report=report)


def solve_by_lbfgs(problem: Problem, start: Tensor, *, steps: int, report: Report) -> Descended:
    """L-BFGS with a strong Wolfe line search (Nocedal and Wright 2006, §7.2), image after image.

    start: (N, C, H, W) coefficients. steps: iterations an image at most, of 1 to 1.25 evaluations
    each. Search directions and line search differ from image to image, so a batch would not help.
    """
    ended = []
    for place in range(len(start)):

        def report_place(progress: Progress, before: int = place * steps) -> None:
            report(Progress(before + progress.done, len(start) * steps, values=progress.values))

        ended.append(_one_by_lbfgs(problem.only(place), start[place][None], steps, report_place))
    return Descended(
        unknown=torch.cat([one.unknown for one in ended]),
        objective=torch.cat([one.objective for one in ended]),
        failures=tuple(one.failures[0] for one in ended),
    )


def _one_by_lbfgs(problem: Problem, start: Tensor, steps: int, report: Report) -> Descended:
    unknown = start.clone().requires_grad_(True)
    evaluations = steps + steps // 4
    optimiser = torch.optim.LBFGS(
        [unknown],
        lr=1,
        max_iter=steps,
        max_eval=evaluations,
        history_size=_HISTORY,
        tolerance_grad=0,
        tolerance_change=0,
        line_search_fn="strong_wolfe",
    )
    value, done = math.nan, 0

    def closure() -> float:
        nonlocal value, done
        distance = problem.distance(problem.images(unknown), differentiable=True)
        (unknown.grad,) = torch.autograd.grad(_SCALE * distance.sum(), unknown)
        value, done = float(distance.detach()), done + 1
        report(Progress(min(done, steps - 1), steps, values={"objective": value}))
        return _SCALE * value

    optimiser.step(closure)
    with torch.no_grad():
        unknown.grad = None
    value = float(problem.distance(problem.images(unknown.detach()), differentiable=False))
    report(Progress(steps, steps, values={"objective": value}))
    failure = None if math.isfinite(value) else f"The objective became {value} after {done} steps."
    return Descended(unknown=unknown.detach(), objective=torch.tensor([value]), failures=(failure,))
