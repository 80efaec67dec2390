"""Gradient matching by first-order descent, on many images of one model at once.

The slope is in bfloat16 as long as it points where that of float32 does. Near the picture the
distance of gradients is a difference of almost equal numbers, of which bfloat16 keeps little; far
from it a step needs no more. So the slope is compared now and then, and float32 takes over for good
once the two part: for each image when its own do, so that none depends on its company. An attack
reports its end in float32 either way, see `Apart.beside_grey`.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from semsim.attacks.batch_norm import BatchNorm, moments_of_each, running_statistics
from semsim.attacks.descent import (
    Found,
    Leaked,
    Rngs,
    Together,
    best_of_starts,
    first_of,
    reconstructions,
)
from semsim.attacks.descent.distance import (
    Apart,
    Distance,
    batch_norm_distance,
    total_variation_of_each,
)
from semsim.attacks.descent.local_steps import distance_from
from semsim.attacks.descent.minimise import Descent, descend
from semsim.attacks.descent.slopes import Objective, slope_of
from semsim.base.errors import AttackFailedError, SettingsError
from semsim.base.progress import Report
from semsim.targets.mixed_precision import COSINE
from semsim.types import BatchNormStatistics, GradientObservation, UpdateObservation

_EVERY = 20  # evaluations between two comparisons


class RoughSlope:
    """`slopes.slope_of` an objective, (N, C, H, W) to (N,), from bfloat16 until that will not do.

    The value of an image depends on that image only. exact_from: the evaluation from which all
    images are in float32, counted from 0; None so far.
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

    steps, lr, signed: of `minimise.Descent`. tv, statistics_weight: weights of the priors.
    statistics: which batch norm statistics the image is drawn to, none, the model's running ones,
    or its own, where they leaked with the gradient. restarts: independent starts. start: "grey" is
    next to it where several must differ. boxed: keep the
    image inside [0, 1] at every step. distance, batch_norm, curvature: of `GradientDistance`.
    mixed_precision: take the slope from `RoughSlope`.
    """

    steps: int
    lr: float
    tv: float
    restarts: int
    start: Start = "normal"
    batch_norm: BatchNorm = "eval"
    distance: Distance = "cosine"
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
    distance: Apart, attack: FirstOrder, shape: tuple[int, int, int], rngs: Rngs
) -> Iterator[Tensor]:
    """Yield the start of each restart, (N, C, H, W) in units of the network's input.

    Grey itself in the first; next to it in further ones, and where pictures that share a distance
    would otherwise stay as alike as they begin.
    """
    normal = attack.start == "normal"
    joint = any(len(group) > 1 for group in distance.groups())
    for restart in range(attack.restarts):
        if not (normal or restart or joint):
            yield torch.zeros(len(rngs), *shape)
            continue
        drawn = torch.cat([torch.randn(1, *shape, generator=rng) for rng in rngs])
        yield drawn if normal else _NEXT_TO_GREY * drawn


def _one_start(
    distance: Apart,
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
    distance: Apart, known: Sequence[BatchNormStatistics], attack: FirstOrder
) -> Objective:
    """The unknown, in units of the network's input, to the objective of each image."""
    model = distance.model
    drawn = any(one.means for one in known)  # a network without batch norm has none

    def objective(unknown: Tensor) -> Tensor:
        variation = distance.pooled(total_variation_of_each(unknown))
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
