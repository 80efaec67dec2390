"""Optimisers of attacks, on many images at once: first-order descent, and L-BFGS."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from semsim.attacks.descent.lbfgs import Evaluate, Evaluated, ObjectiveOf, Walk, in_lockstep
from semsim.attacks.descent.slopes import Sloped
from semsim.base.progress import Look, Progress, Report, placed
from semsim.images import to_uint8

REPORT_EVERY = 20
_INNER, _HISTORY = 20, 100  # of L-BFGS: iterations a step, and what it remembers
_SOON = (1, 2, 5)  # steps that are told of too: twenty of a large network take minutes


@dataclass(frozen=True, kw_only=True)
class Descent:
    """Settings of first-order descent: Adam, on the gradient or on its sign.

    lr: first step size. schedule: "steps" is ×0.1 at 3/8, 5/8 and 7/8 of `steps`, as Geiping et
    al. 2020; "cosine" falls to 0 at the last step; "constant" never falls.
    """

    steps: int
    lr: float
    signed: bool
    schedule: Literal["steps", "cosine", "constant"] = "steps"


@dataclass(frozen=True, kw_only=True)
class Descended:
    """End of a descent, per image.

    unknown: (N, …), the last iterate. objective: (N,), before the last step.
    failures: why an image diverged, or None.
    """

    unknown: Tensor
    objective: Tensor
    failures: tuple[str | None, ...]


def descend(
    sloped: Sloped,
    start: Tensor,
    *,
    descent: Descent,
    keep: Callable[[Tensor], Tensor] | None,
    report: Report,
    shown: Callable[[Tensor], Tensor] | None = None,
) -> Descended:
    """Minimise every image's objective at once; each walks as it would alone.

    sloped: of `slopes`, (N, …) to the values and slopes of an objective, where the value of an
    image depends on that image only.
    keep: the nearest unknown that is allowed, taken after each step; None where all are.
    shown: images, (N, C, H, W) in [0, 1], that unknowns stand for; None tells of no picture.
    An image whose objective stops being finite gets a failure, which names the step, and no more
    slope; the others go on. Where all have one, the walk ends before it is told of next.
    """
    unknown = start.clone().requires_grad_(True)
    optimiser = torch.optim.Adam([unknown], lr=descent.lr, fused=True)
    schedule = _schedule(optimiser, descent)
    failures: list[str | None] = [None] * len(start)
    values = torch.full((len(start),), float("nan"))
    unread: list[Tensor] = []
    for step in range(1, descent.steps + 1):
        values, slope = sloped(unknown)
        slope = slope.masked_fill(_like(~torch.isfinite(values), slope), 0)
        unknown.grad = slope.sign() if descent.signed else slope
        optimiser.step()
        schedule.step()
        if keep is not None:
            with torch.no_grad():
                unknown.copy_(keep(unknown))
        unread.append(values)
        if step in _SOON or step % REPORT_EVERY == 0 or step == descent.steps:
            # A GPU is waited for as soon as a number is read, so these are read together.
            _note_failures(failures, unread, step, descent.steps)
            unread.clear()
            if all(failures):
                break
            look = look_at(unknown, shown, step / descent.steps)
            report(Progress(step, descent.steps, values={"objective": _mean(values)}, look=look))
    return Descended(unknown=unknown.detach(), objective=values, failures=tuple(failures))


def minimise_by_lbfgs(
    objective_of: ObjectiveOf,
    start: Tensor,
    *,
    steps: int,
    lr: float,
    stop_below: float,
    report: Report,
    shown: Callable[[Tensor], Tensor] | None = None,
) -> Descended:
    """Torch's L-BFGS without line search, 20 inner iterations a step, as DLG and iDLG use it.

    objective_of: of `in_lockstep`, of unknowns (M, D). start: (N, D). An image ends early once its
    objective is below `stop_below`, and fails where it is no longer finite. shown: of `descend`.
    """
    walks = [partial(_one_by_lbfgs, one, steps, lr, stop_below) for one in start.split(1)]
    return walk_together(walks, objective_of, steps=steps, each=_INNER, report=report, shown=shown)


def walk_together(
    walks: Sequence[Walk[Descended]],
    objective_of: ObjectiveOf,
    *,
    steps: int,
    each: int,
    report: Report,
    shown: Callable[[Tensor], Tensor] | None,
) -> Descended:
    """`in_lockstep` of walks that take `each` evaluations a step, told of after the first
    evaluation, which an attack of a large network takes seconds for, and after every step.

    walks: in the order of their images. objective_of: of `in_lockstep`, of points (M, …). shown: of
    `descend`, of a walk's points.
    """
    rounds = 0

    def tell(done: int, values: Tensor, unknown: Tensor | None) -> None:
        look = None if unknown is None else look_at(unknown, shown, done / max(1, steps))
        report(Progress(done, steps, values={"objective": _mean(values)}, look=look))

    def told(places: Sequence[int], points: Sequence[Tensor], values: Sequence[float]) -> None:
        nonlocal rounds
        rounds += 1
        done = min(rounds // each, steps - 1)
        if rounds == 1 or (done > 0 and not rounds % each):
            tell(done, torch.tensor(values), None if places[0] else points[0])

    ended = in_lockstep(walks, objective_of, told)
    found = Descended(
        unknown=torch.cat([one.unknown for one in ended]),
        objective=torch.cat([one.objective for one in ended]),
        failures=tuple(failure for one in ended for failure in one.failures),
    )
    tell(steps, found.objective, found.unknown)
    return found


def _one_by_lbfgs(
    start: Tensor, steps: int, lr: float, stop_below: float, evaluate: Evaluate
) -> Descended:
    unknown = start.clone().requires_grad_(True)
    optimiser = torch.optim.LBFGS([unknown], lr=lr, max_iter=_INNER, history_size=_HISTORY)
    here = Evaluated(math.nan, unknown)
    reached, failure = torch.full_like(unknown, math.nan), None

    def closure() -> float:
        nonlocal here, reached
        if not torch.equal(unknown, reached):  # a step begins where the last one ended
            here, reached = evaluate(unknown), unknown.detach().clone()
        unknown.grad = here.slope
        return here.value

    for step in range(1, steps + 1):
        optimiser.step(closure)
        closure()
        if not math.isfinite(here.value):
            failure = f"The objective became {here.value} at step {step} of {steps}."
        if failure or here.value < stop_below:
            break
    value = torch.tensor([here.value], dtype=torch.float64)
    return Descended(unknown=unknown.detach(), objective=value, failures=(failure,))


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


def in_turn(report: Report, place: int, count: int, first: int | None = None) -> Report:
    """A report for one image, at `place` (from 0) of `count` that are worked on one by one.

    first: the place of the first image, where each of the `count` has several.
    """
    tell = placed(report, [place if first is None else first])
    return lambda progress: tell(_part(progress, place, count))


def _part(progress: Progress, part: int, parts: int) -> Progress:
    done, total = part * progress.total + progress.done, parts * progress.total
    return replace(progress, done=done, total=total)


def _schedule(
    optimiser: torch.optim.Optimizer, descent: Descent
) -> torch.optim.lr_scheduler.LRScheduler:
    if descent.schedule == "cosine":
        return torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, descent.steps)
    parts = (3, 5, 7) if descent.schedule == "steps" else ()
    return torch.optim.lr_scheduler.MultiStepLR(
        optimiser, milestones=[round(descent.steps * part / 8) for part in parts], gamma=0.1
    )


def _note_failures(
    failures: list[str | None], unread: Sequence[Tensor], last: int, steps: int
) -> None:
    """The values of each image in the steps up to `last`: the first that is not finite."""
    for step, values in enumerate(torch.stack(list(unread)).tolist(), last + 1 - len(unread)):
        for place, value in enumerate(values):
            if failures[place] is None and not math.isfinite(value):
                failures[place] = f"The objective became {value} at step {step} of {steps}."


def _like(mask: Tensor, values: Tensor) -> Tensor:
    return mask.view(-1, *[1] * (values.dim() - 1))


def _mean(values: Tensor) -> float:
    finite = values[torch.isfinite(values)]
    return float(finite.mean()) if len(finite) else float("nan")
