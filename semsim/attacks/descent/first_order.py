"""Gradient matching by first-order descent, on many images of one model at once.

The slope is in bfloat16 as long as it points where that of float32 does. Near the picture the
distance of gradients is a difference of almost equal numbers, of which bfloat16 keeps little; far
from it a step needs no more. So the slope is compared now and then, and float32 takes over for good
once the two part: for each image when its own do, so that none depends on its company. An attack
reports its end in float32 either way, see `Distance.beside_grey`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from semsim.attacks.batch_norm import BatchNorm, moments_of_each, running_statistics
from semsim.attacks.descent import (
    Descended,
    Found,
    Leaked,
    Rngs,
    Together,
    best_of_starts,
    finite_mean,
    first_of,
    look_at,
    reconstructions,
)
from semsim.attacks.descent.distance import (
    Distance,
    Kind,
    batch_norm_distance,
    distance_from,
    total_variation_of_each,
)
from semsim.base.errors import AttackFailedError, SettingsError
from semsim.base.progress import Progress, Report
from semsim.targets.mixed_precision import COSINE
from semsim.types import BatchNormStatistics, GradientObservation, UpdateObservation

Objective = Callable[[Tensor], Tensor]
Sloped = Callable[[Tensor], tuple[Tensor, Tensor]]
REPORT_EVERY = 20
_SOON = (1, 2, 5)  # steps that are told of too: twenty of a large network take minutes
_EVERY = 20  # evaluations between two comparisons


def slope_of(objective: Objective, unknown: Tensor) -> tuple[Tensor, Tensor]:
    """The value of each image, (N,), and its slope by `unknown`, (N, …), of that shape."""
    with torch.enable_grad():
        at = unknown.detach().requires_grad_(True)
        values = objective(at)
        (slope,) = torch.autograd.grad(values.sum(), at)
    return values.detach(), slope


@dataclass(frozen=True, kw_only=True)
class Descent:
    """Settings of first-order descent: Adam, on the gradient or on its sign.

    Attributes:
        lr: First step size.
        schedule: "steps" is ×0.1 at 3/8, 5/8 and 7/8 of `steps`, as Geiping et al. 2020; "cosine"
            falls to 0 at the last step; "constant" never falls.
    """

    steps: int
    lr: float
    signed: bool
    schedule: Literal["steps", "cosine", "constant"] = "steps"


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

    Args:
        sloped: As `slope_of`, (N, …) to the values and slopes of an objective, where the value of
            an image depends on that image only.
        keep: The nearest unknown that is allowed, taken after each step; None where all are.
        shown: Images, (N, C, H, W) in [0, 1], that unknowns stand for; None tells of no picture. An
            image whose objective stops being finite gets a failure, which names the step, and no
            more slope; the others go on. Where all have one, the walk ends before it is told of
            next.
    """
    unknown = start.clone().requires_grad_(True)
    optimiser = torch.optim.Adam([unknown], lr=descent.lr, fused=True)
    schedule = _schedule(optimiser, descent)
    failures: list[str | None] = [None] * len(start)
    values = torch.full((len(start),), float("nan"))
    unread: list[Tensor] = []
    for step in range(1, descent.steps + 1):
        values, slope = sloped(unknown)
        broken = ~torch.isfinite(values).view(-1, *[1] * (slope.dim() - 1))
        slope = slope.masked_fill(broken, 0)
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
            report(
                Progress(step, descent.steps, values={"objective": finite_mean(values)}, look=look)
            )
    return Descended(unknown=unknown.detach(), objective=values, failures=tuple(failures))


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


class RoughSlope:
    """`slope_of` an objective, (N, C, H, W) to (N,), from bfloat16 until that will not do.

    The value of an image depends on that image only.

    Attributes:
        exact_from: The evaluation from which all images are in float32, counted from 0; None so
            far.
    """

    def __init__(self, objective: Objective) -> None:
        def mixed(unknown: Tensor) -> Tensor:
            with torch.autocast(unknown.device.type, torch.bfloat16):
                return objective(unknown).float()

        self._mixed, self._float32 = partial(slope_of, mixed), partial(slope_of, objective)
        self._count = 0
        self._exact: Tensor | None = None  # (N,), which images are in float32; None: none
        self.exact_from: int | None = None

    def __call__(self, unknown: Tensor) -> tuple[Tensor, Tensor]:
        """The value of each image, (N,), of `unknown`, (N, C, H, W), and its slope, as that.

        Raises `SettingsError` where bfloat16 would turn the first step of an image.
        """
        if self.exact_from is None and self._count % _EVERY == 0:
            self._compare(unknown)
        self._count += 1
        if self.exact_from is not None:
            return self._float32(unknown)
        values, slope = self._mixed(unknown)
        if self._exact is None:
            return values, slope
        own_values, own_slope = self._float32(unknown)
        each = self._exact.view(-1, 1, 1, 1)
        return torch.where(self._exact, own_values, values), torch.where(each, own_slope, slope)

    def _compare(self, unknown: Tensor) -> None:
        (_, rough), (_, exact) = self._mixed(unknown), self._float32(unknown)
        cosine = F.cosine_similarity(rough.flatten(1), exact.flatten(1))
        parted = ~(cosine >= COSINE)  # so that NaN has parted, too
        if not parted.any():
            return
        if self._count == 0:
            raise SettingsError(
                f"mixed_precision turns this attack's first step: the cosine with float32's is "
                f"{float(cosine.min()):.3f} (at least {COSINE}). Attack without."
            )
        self._exact = parted if self._exact is None else self._exact | parted
        if self._exact.all():
            self.exact_from = self._count


Start = Literal["normal", "grey"]
_NEXT_TO_GREY = 0.01  # standard deviation of what is drawn on top, in units of the network's input
Statistics = Literal["none", "running", "leaked"]


class FirstOrder(Together):
    """Gradient matching by descent; attacks have some fields as settings, and the rest as here.

    Attributes:
        steps, lr, signed: Of `Descent`.
        tv, statistics_weight: Weights of the priors.
        statistics: Which batch norm statistics the image is drawn to, none, the model's running
            ones, or its own, where they leaked with the gradient.
        restarts: Independent starts.
        start: "grey" is next to it where several must differ.
        boxed: Keep the image inside [0, 1] at every step.
        distance, batch_norm, curvature: Of `GradientDistance`.
        mixed_precision: Take the slope from `RoughSlope`.
    """

    steps: int
    lr: float
    tv: float
    restarts: int
    start: Start = "normal"
    batch_norm: BatchNorm = "eval"
    distance: Kind = "cosine"
    signed: bool = True
    statistics: Statistics = "none"
    statistics_weight: float = 0.0
    boxed: bool = True
    curvature: float = 0.0
    mixed_precision: bool = False

    def check(self, seen: GradientObservation) -> None:
        if self.statistics == "leaked" and seen.batch_norm is None:
            raise AttackFailedError(
                "This attack matches the image's batch norm statistics, and none leaked with the "
                'gradient; set statistics="running" or "none" to do without.'
            )

    def solve(self, seen: Leaked, labels: Sequence[int], rngs: Rngs, report: Report) -> list[Found]:
        distance = distance_from(
            seen, labels, self.distance, batch_norm=self.batch_norm, curvature=self.curvature
        )
        starts = _starts(distance, self, first_of(seen).shape, rngs)
        known = _statistics(seen, self.statistics)
        start = partial(_one_start, distance, known, self, starts)
        return best_of_starts(self.restarts, start, report)


def _starts(
    distance: Distance, attack: FirstOrder, shape: tuple[int, int, int], rngs: Rngs
) -> Iterator[Tensor]:
    """Yield the start of each restart, (N, C, H, W) in units of the network's input.

    Grey itself in the first; next to it in further ones, and where pictures that share a distance
    would otherwise stay as alike as they begin.
    """
    normal = attack.start == "normal"
    joint = distance.joint and len(rngs) > 1
    for restart in range(attack.restarts):
        if not (normal or restart or joint):
            yield torch.zeros(len(rngs), *shape)
            continue
        drawn = torch.cat([torch.randn(1, *shape, generator=rng) for rng in rngs])
        yield drawn if normal else _NEXT_TO_GREY * drawn


def _one_start(
    distance: Distance,
    known: Sequence[BatchNormStatistics],
    attack: FirstOrder,
    starts: Iterator[Tensor],
    report: Report,
) -> list[Found]:
    mean, std = distance.model.mean, distance.model.std
    objective = _objective(distance, known, attack)
    ended = descend(
        RoughSlope(objective) if attack.mixed_precision else partial(slope_of, objective),
        next(starts).to(mean),
        descent=Descent(steps=attack.steps, lr=attack.lr, signed=attack.signed),
        keep=partial(torch.clamp, min=-mean / std, max=(1 - mean) / std) if attack.boxed else None,
        report=report,
        shown=lambda unknown: unknown * std + mean,
    )
    images = (ended.unknown * std + mean).clamp(0, 1)
    return reconstructions(images, ended, *distance.beside_grey(images))


def _objective(
    distance: Distance, known: Sequence[BatchNormStatistics], attack: FirstOrder
) -> Objective:
    """The unknown, in units of the network's input, to the objective of each image."""
    model = distance.model
    drawn = any(one.means for one in known)  # a network without batch norm has none

    def objective(unknown: Tensor) -> Tensor:
        variation = total_variation_of_each(unknown)
        if distance.joint:
            variation = variation.mean().expand(len(variation))
        value = distance(unknown * model.std + model.mean) + attack.tv * variation
        if not drawn:
            return value
        # A forward pass of its own: inside `torch.func.vmap` hooks would see one image at a time.
        moments = moments_of_each(model, unknown * model.std + model.mean, attack.batch_norm)
        return value + attack.statistics_weight * batch_norm_distance(moments, known)

    return objective


def _statistics(seen: Leaked, which: Statistics) -> list[BatchNormStatistics]:
    if isinstance(seen, UpdateObservation):
        return []
    if which == "running":
        return [running_statistics(seen[0].model)] * len(seen)
    leaked = which == "leaked"
    return [one.batch_norm for one in seen if leaked and one.batch_norm is not None]
