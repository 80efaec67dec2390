"""Optimisers of attacks: first-order descent on many images at once, and L-BFGS on one."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from semsim.errors import AttackFailedError
from semsim.images import to_uint8
from semsim.progress import Look, Progress, Report, placed

REPORT_EVERY = 20
_FALLS = (3, 5, 7)  # eighths of all steps after which the step size of "steps" falls
_WINDOWS = 50  # in which a stall is looked for, of all steps
_WINDOW = 5  # steps of one at least

Objective = Callable[[Tensor], Tensor]


@dataclass(frozen=True, kw_only=True)
class Descent:
    """How first-order attacks walk: Adam, on the gradient or on its sign.

    lr: first step size. schedule: "steps" is ×0.1 at 3/8, 5/8 and 7/8 of `steps`, as Geiping et
    al. 2020; "cosine" falls to 0 at the last step; "constant" never falls.
    stall: 0 walks every step. Otherwise an image leaves out the rest of its step size where that
    has stalled, see `has_stalled`, the means of its objective over two windows, one right after the
    other, being compared; a window has a fiftieth of all steps. It goes on where the step size
    falls next, under "cosine" at the next eighth of all steps, and ends where there is no such.
    """

    steps: int
    lr: float
    signed: bool
    schedule: Literal["steps", "cosine", "constant"] = "steps"
    stall: float = 0.0

    @property
    def stages(self) -> tuple[int, ...]:
        """The steps after which a new step size begins, the last of all steps among them."""
        eighths = {"steps": _FALLS, "cosine": tuple(range(1, 8)), "constant": ()}[self.schedule]
        return (*(round(self.steps * part / 8) for part in eighths), self.steps)


def has_stalled(before: float, after: float, stall: float) -> bool:
    """Whether an objective fell from `before` to `after` by no more than the share `stall` of it.

    One that is no number has.
    """
    return not before - after > stall * abs(before)


@dataclass(frozen=True, kw_only=True)
class Descended:
    """Where a descent ended, per image.

    unknown: (N, …), the last iterate. objective: (N,), before the last step.
    failures: why an image diverged, or None. left_out: share of the steps that each did not walk,
    since it had stalled; none where nothing looked for that.
    """

    unknown: Tensor
    objective: Tensor
    failures: tuple[str | None, ...]
    left_out: tuple[float, ...] = ()


class _Walk:
    """Images that take the same steps: what is known of them, and how far they are.

    unknown: (n, …), a leaf. clock: of how many steps the step sizes are behind them. taken: those
    that they walked. value: (n,), the objective before the last step.
    """

    def __init__(self, places: Sequence[int], start: Tensor, descent: Descent) -> None:
        self.places, self.descent = tuple(places), descent
        self.unknown = start.clone().requires_grad_(True)
        self.value = torch.full((len(start),), float("nan"))
        self.clock = self.taken = 0
        self._optimiser = torch.optim.Adam([self.unknown], lr=descent.lr, fused=True)
        self._schedule = _schedule(self._optimiser, descent)
        self._window = max(_WINDOW, descent.steps // _WINDOWS)
        self._seen: list[float] = []  # objectives under the present step size

    @property
    def over(self) -> bool:
        return self.clock >= self.descent.steps

    def step(self, gradient: Tensor, keep: Callable[[Tensor], Tensor] | None) -> None:
        """One step along `gradient`, and further where the walk has stalled."""
        self.unknown.grad = gradient.sign() if self.descent.signed else gradient
        self._optimiser.step()
        self.taken += 1
        self._pass_to(self.clock + 1)
        if keep is not None:
            with torch.no_grad():
                self.unknown.copy_(keep(self.unknown))
        if self.descent.stall and self._has_stalled():
            self._pass_to(next(one for one in self.descent.stages if one >= self.clock))

    def _pass_to(self, clock: int) -> None:
        if self.descent.stall and any(self.clock < one <= clock for one in self.descent.stages):
            self._seen.clear()
        while self.clock < clock:
            self._schedule.step()
            self.clock += 1

    def _has_stalled(self) -> bool:
        self._seen.append(float(self.value.sum()))
        both = self._seen[-2 * self._window :]
        if len(both) < 2 * self._window:
            return False
        before, after = sum(both[: self._window]), sum(both[self._window :])
        return has_stalled(before, after, self.descent.stall)


def descend(
    objective: Objective,
    start: Tensor,
    *,
    descent: Descent,
    keep: Callable[[Tensor], Tensor] | None,
    report: Report,
    shown: Callable[[Tensor], Tensor] | None = None,
    some: Callable[[Sequence[int]], Objective] | None = None,
) -> Descended:
    """Minimise every image's objective at once; each walks as it would alone.

    objective: (N, …) to (N,), the value of an image depending on that image only.
    keep: the nearest unknown that is allowed, taken after each step; None where all are.
    shown: images, (N, C, H, W) in [0, 1], that unknowns stand for; None tells of no picture.
    some: the objective of the images at some places alone, asked for where the others have stalled;
    without it nothing looks for that.
    An image whose objective stops being finite stays where it was and gets a failure; the
    others go on.
    """
    whole = some is None or not descent.stall
    descent = replace(descent, stall=0.0) if whole else descent
    groups = [range(len(start))] if whole else [[place] for place in range(len(start))]
    walks = [_Walk(places, start[list(places)], descent) for places in groups]
    failures: list[str | None] = [None] * len(start)
    going = walks
    for step in range(1, descent.steps + 1):
        each = objective(_joined([walk.unknown for walk in going]))
        values = each.detach()
        for walk, value in zip(
            going, values.split([len(one.places) for one in going]), strict=True
        ):
            walk.value = value
        total = each.sum()
        lost = not math.isfinite(total.item())
        if lost:
            _note_failures(failures, going, step, descent.steps)
            if all(failures[place] for walk in going for place in walk.places):
                break
        gradients = torch.autograd.grad(total, [walk.unknown for walk in going])
        for walk, gradient in zip(going, gradients, strict=True):
            if lost:
                gradient = gradient.masked_fill(_like(~torch.isfinite(walk.value), gradient), 0)
            walk.step(gradient, keep)
        left = [walk for walk in going if not walk.over]
        if step % REPORT_EVERY == 0 or not left:
            done = min((walk.clock for walk in left), default=descent.steps)
            look = look_at(walks[0].unknown, shown, done / descent.steps)
            report(Progress(done, descent.steps, values={"objective": _mean(values)}, look=look))
        if some is not None and left and len(left) < len(going):
            objective = some([place for walk in left for place in walk.places])
        going = left
        if not going:
            break
    return Descended(
        unknown=torch.cat([walk.unknown.detach() for walk in walks]),
        objective=torch.cat([walk.value for walk in walks]),
        failures=tuple(failures),
        left_out=() if whole else tuple(1 - walk.taken / descent.steps for walk in walks),
    )


def minimise_by_lbfgs(
    objective: Callable[[], Tensor],
    unknowns: list[Tensor],
    *,
    steps: int,
    lr: float,
    stop_below: float,
    report: Report,
    shown: Callable[[Tensor], Tensor] | None = None,
) -> float:
    """Torch's L-BFGS without line search, 20 inner iterations a step, as DLG and iDLG use it.

    objective: the value at the present `unknowns`, a tensor of shape (). unknowns: leaves of any
    shape that want a gradient; they are changed in place. Ends early once the objective is below
    `stop_below`. shown: of `descend`, for the first of the unknowns.
    Returns the objective at the end; raises `AttackFailedError` where it is no longer finite.
    """
    optimiser = torch.optim.LBFGS(unknowns, lr=lr, max_iter=20, history_size=100)

    def closure() -> float:
        value = objective()
        gradients = torch.autograd.grad(value, unknowns)
        for unknown, gradient in zip(unknowns, gradients, strict=True):
            unknown.grad = gradient
        return value.item()

    value = float("nan")
    for step in range(1, steps + 1):
        optimiser.step(closure)
        value = objective().item()
        if not math.isfinite(value):
            raise AttackFailedError(f"The objective became {value} at step {step} of {steps}.")
        ended = value < stop_below
        done = steps if ended else step
        look = look_at(unknowns[0], shown, done / steps)
        report(Progress(done, steps, values={"objective": value}, look=look))
        if ended:
            break
    for unknown in unknowns:
        unknown.grad = None
    return value


def look_at(unknown: Tensor, shown: Callable[[Tensor], Tensor] | None, share: float) -> Look | None:
    """A look at the first of the images that `unknown` stands for; see `descend` for `shown`."""
    if shown is None:
        return None

    def picture() -> np.ndarray:
        with torch.no_grad():
            return to_uint8(shown(unknown.detach()[:1])[0])

    return Look(place=0, share=share, picture=picture)


def one_of(report: Report, part: int, parts: int) -> Report:
    """A report for part `part` (from 0) of `parts` that are equally long, told as one whole."""

    def tell(progress: Progress) -> None:
        look = progress.look
        if look is not None:
            look = replace(look, share=(part + look.share) / parts)
        report(replace(_part(progress, part, parts), look=look))

    return tell


def in_turn(report: Report, place: int, count: int) -> Report:
    """A report for one image, at `place` (from 0) of `count` that are worked on one by one."""
    tell = placed(report, [place])
    return lambda progress: tell(_part(progress, place, count))


def _part(progress: Progress, part: int, parts: int) -> Progress:
    done, total = part * progress.total + progress.done, parts * progress.total
    return replace(progress, done=done, total=total)


def _schedule(
    optimiser: torch.optim.Optimizer, descent: Descent
) -> torch.optim.lr_scheduler.LRScheduler:
    if descent.schedule == "cosine":
        return torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, descent.steps)
    milestones = descent.stages[:-1] if descent.schedule == "steps" else ()
    return torch.optim.lr_scheduler.MultiStepLR(optimiser, milestones=milestones, gamma=0.1)


def _joined(unknowns: Sequence[Tensor]) -> Tensor:
    """All of them, (N, …); a single one as it is, without a copy a step."""
    return unknowns[0] if len(unknowns) == 1 else torch.cat(list(unknowns))


def _note_failures(
    failures: list[str | None], walks: Sequence[_Walk], step: int, steps: int
) -> None:
    for walk in walks:
        for place, value in zip(walk.places, walk.value.tolist(), strict=True):
            if failures[place] is None and not math.isfinite(value):
                failures[place] = f"The objective became {value} at step {step} of {steps}."


def _like(mask: Tensor, values: Tensor) -> Tensor:
    return mask.view(-1, *[1] * (values.dim() - 1))


def _mean(values: Tensor) -> float:
    finite = values[torch.isfinite(values)]
    return float(finite.mean()) if len(finite) else float("nan")
