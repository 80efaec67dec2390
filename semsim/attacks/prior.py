"""Our own attack: match gradients over what natural images are made of, not over pixels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from semsim.attacks.batch_norm import BatchNorm
from semsim.attacks.first_order import Found, check_together, only, stack_targets
from semsim.attacks.labels import Label, label_of
from semsim.attacks.minimise import Descended, one_of
from semsim.attacks.prior_basis import image_basis
from semsim.attacks.prior_kinks import has_kinks
from semsim.attacks.prior_solve import Problem, solve_by_adam, solve_by_lbfgs
from semsim.attacks.translation import STILL, Move, estimate_move
from semsim.errors import AttackFailedError
from semsim.progress import Progress, Report, silent
from semsim.types import GradientObservation, Reconstruction

_SPREAD = 0.25  # standard deviation of the mean brightness of photographs
_START = 0.01  # of the size of a natural image's coefficients: all but grey


@dataclass(frozen=True, kw_only=True)
class Prior:
    """Match gradients in cosine waves of opponent colours, scaled as in natural images.

    The unknown is the coefficients of `prior_basis.ImageBasis`, started next to the grey image,
    so that what the gradient leaves open stays as smooth and as grey as photographs are.

    activation: "smooth" models get L-BFGS, "kinked" ones (ReLU, max pooling) Adam; "auto" looks
    at the model. steps: iterations of L-BFGS; Adam takes twice as many. lr, tv: of Adam only: first
    step size, in units of the coefficients, and weight of total variation. decay: exponent of
    the fall of amplitude with frequency. chroma: scale of colour beside brightness.
    curvature: share of `lent_curvature` that ReLUs, leaky ones too, are lent under Adam, so that
    the descent knows which units to switch; max pooling is lent none. 0 for the true slope.
    restarts: independent starts; the lowest objective is kept.
    max_shift: 0 takes the image as it is. Otherwise the attacker expects augmentation to have
    moved the image by up to so many pixels, estimates the move from the border it left and
    returns the image moved back. border: brightness of that border, "black", or "any" grey.
    label: "known", or "inferred" from the gradient. batch_norm: as in `invgrad.InvGrad`.
    """

    activation: Literal["auto", "smooth", "kinked"] = "auto"
    steps: int = 200
    lr: float = 0.4
    tv: float = 0.02
    decay: float = 0.8
    chroma: float = 0.3
    curvature: float = 0.1
    restarts: int = 1
    max_shift: int = 0
    border: Literal["black", "any"] = "black"
    label: Label = "known"
    batch_norm: BatchNorm = "eval"

    def __call__(
        self, seen: GradientObservation, *, rng: torch.Generator, report: Report = silent
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
        """One result an observation of one model; a failed image does not stop the others.

        Kinked models are attacked with all images at once, smooth ones image after image.
        """
        check_together(seen, rngs)
        found: dict[int, Found] = {}
        labels: dict[int, int] = {}
        for place, one in enumerate(seen):
            try:
                labels[place] = label_of(one, self.label)
            except AttackFailedError as failure:
                found[place] = failure
        if labels:
            good = [seen[place] for place in labels]
            problem = self._problem(good, list(labels.values()))
            solved = self._solve(problem, [rngs[place] for place in labels], report)
            found |= dict(zip(labels, solved, strict=True))
        return [found[place] for place in range(len(seen))]

    def _problem(self, seen: Sequence[GradientObservation], labels: Sequence[int]) -> Problem:
        model, shape = seen[0].model, seen[0].shape
        basis = image_basis(
            shape, spread=_SPREAD, decay=self.decay, chroma=(self.chroma, self.chroma)
        )
        kinked = self.activation == "kinked"
        if self.activation == "auto":
            kinked = has_kinks(model, shape)
        return Problem(
            model=model,
            targets=stack_targets(seen, labels),
            basis=basis.to(model.mean),
            moves=(STILL,) * len(seen),
            batch_norm=self.batch_norm,
            kinked=kinked,
            curvature=self.curvature,
        )

    def _solve(
        self, problem: Problem, rngs: Sequence[torch.Generator], report: Report
    ) -> list[Found]:
        if not self.max_shift:
            return [self._result(one) for one in self._stage(problem, rngs, report)]
        solved = self._stage(problem, rngs, one_of(report, 0, 2))
        moves = [self._move(one) for one in solved]
        places = [place for place, move in enumerate(moves) if any(move.shift)]
        rest = _stretched(one_of(report, 1, 2), self._iterations(problem))
        if places:
            framed = problem.some(places, [moves[place] for place in places])
            again = self._stage(framed, [rngs[place] for place in places], rest)
            for place, other in zip(places, again, strict=True):
                solved[place] = _best([solved[place], other])
        else:
            rest(Progress(1, 1))
        return [self._result(one) for one in solved]

    def _stage(
        self, problem: Problem, rngs: Sequence[torch.Generator], report: Report
    ) -> list["_Solution"]:
        """The best of `restarts` starts, one an observation."""
        starts = [
            self._one_start(problem, rngs, one_of(report, part, self.restarts))
            for part in range(self.restarts)
        ]
        return [_best(each) for each in zip(*starts, strict=True)]

    def _one_start(
        self, problem: Problem, rngs: Sequence[torch.Generator], report: Report
    ) -> list["_Solution"]:
        shape = problem.basis.amplitude.shape
        start = _START * torch.cat([torch.randn(1, *shape, generator=rng) for rng in rngs])
        ended = self._minimised(problem, start.to(problem.model.mean), report)
        images = problem.images(ended.unknown).clamp(0, 1)
        residuals = problem.distance(images, differentiable=False).detach().tolist()
        grey = problem.distance(torch.full_like(images, 0.5), differentiable=False).tolist()
        unmoved = problem.basis.image(ended.unknown).clamp(0, 1)
        return [
            _Solution(
                attacked=images[place],
                unmoved=unmoved[place],
                move=problem.moves[place],
                objective=float(ended.objective[place]),
                residual=residuals[place],
                grey_residual=grey[place],
                failure=ended.failures[place],
            )
            for place in range(len(rngs))
        ]

    def _minimised(self, problem: Problem, start: Tensor, report: Report) -> Descended:
        if not problem.kinked:
            return solve_by_lbfgs(problem, start, steps=self.steps, report=report)
        return solve_by_adam(
            problem, start, steps=2 * self.steps, lr=self.lr, tv=self.tv, report=report
        )

    def _iterations(self, problem: Problem) -> int:
        each = 2 * self.steps if problem.kinked else self.steps * len(problem.moves)
        return each * self.restarts

    def _move(self, solution: "_Solution") -> Move:
        if solution.failure:
            return STILL
        fill = 0.0 if self.border == "black" else None
        return estimate_move(solution.attacked, limit=self.max_shift, fill=fill)

    def _result(self, best: "_Solution") -> Found:
        if best.failure:
            return AttackFailedError(best.failure)
        return Reconstruction(
            image=best.unmoved.to(torch.float32),
            objective=best.objective,
            residual=best.residual,
            grey_residual=best.grey_residual,
            shift=best.move.shift if self.max_shift else None,
        )


@dataclass(frozen=True, kw_only=True)
class _Solution:
    """One start's end for one image, (C, H, W): where the gradient saw it, and moved back."""

    attacked: Tensor
    unmoved: Tensor
    move: Move
    objective: float
    residual: float
    grey_residual: float
    failure: str | None


def _stretched(report: Report, total: int) -> Report:
    """A report that tells everything as a share of `total`, so that parts of work can be joined."""

    def tell(progress: Progress) -> None:
        done = total * progress.done // progress.total
        report(Progress(done, total, progress.note, progress.values))

    return tell


def _best(solutions: Sequence[_Solution]) -> _Solution:
    """The lowest objective of those that did not fail, or else the first failure."""
    good = [one for one in solutions if one.failure is None]
    return min(good, key=lambda one: one.objective) if good else solutions[0]
