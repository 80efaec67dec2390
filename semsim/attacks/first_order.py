"""Gradient matching by first-order descent, on many images of one model at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from semsim.attacks.batch_norm import BatchNorm, moments_of_each, running_statistics
from semsim.attacks.labels import Label, label_of
from semsim.attacks.matching import (
    Distance,
    Targets,
    batch_norm_distance,
    distance_of_each,
    total_variation_of_each,
)
from semsim.attacks.minimise import Descended, Descent, descend, one_of
from semsim.attacks.per_sample import cosine_distance_of_each, gradient_of_each
from semsim.errors import AttackFailedError, SettingsError
from semsim.progress import Report
from semsim.types import GradientObservation, Reconstruction

Start = Literal["normal", "grey"]
Statistics = Literal["none", "running", "leaked"]
Found = Reconstruction | AttackFailedError


@dataclass(frozen=True, kw_only=True)
class Matching:
    """What is matched and how; the attacks are named combinations of these.

    tv, statistics_weight: weights of the priors. statistics: which batch norm statistics the image
    is drawn to, none, the model's running ones, or its own, where they leaked with the gradient.
    restarts: independent starts, of which the lowest objective is kept: the attacker has nothing
    else to go by. boxed: keep the image inside [0, 1] at every step. curvature: share of
    `lent_curvature` that ReLUs have in the slope of a cosine.
    """

    distance: Distance
    tv: float
    statistics: Statistics
    statistics_weight: float
    batch_norm: BatchNorm
    label: Label
    start: Start
    boxed: bool
    restarts: int
    descent: Descent
    curvature: float = 0.0


def match_each(
    seen: Sequence[GradientObservation],
    matching: Matching,
    *,
    rngs: Sequence[torch.Generator],
    report: Report,
) -> list[Found]:
    """A reconstruction, or the reason why there is none, for each observation.

    seen: of one model and one image shape; `SettingsError` otherwise. rngs: one an observation,
    so that an image's result does not depend on its company.
    """
    check_together(seen, rngs)
    found: list[Found | None] = []
    labels: list[int] = []
    for one in seen:
        try:
            label = label_of(one, matching.label)
            _check_knowledge(one, matching)
        except AttackFailedError as failure:
            found.append(failure)
        else:
            found.append(None)
            labels.append(label)
    places = [place for place, failure in enumerate(found) if failure is None]
    if places:
        good = [seen[place] for place in places]
        matched = _best_starts(good, labels, matching, [rngs[place] for place in places], report)
        for place, one_found in zip(places, matched, strict=True):
            found[place] = one_found
    return [each for each in found if each is not None]


def only(found: Sequence[Found]) -> Reconstruction:
    """The one reconstruction in `found`; raises its `AttackFailedError` where there is none."""
    (one,) = found
    if isinstance(one, AttackFailedError):
        raise one
    return one


def stack_targets(seen: Sequence[GradientObservation], labels: Sequence[int]) -> Targets:
    """Gradients and labels of several observations, on the model's device."""
    device = seen[0].model.mean.device
    columns = zip(*(one.gradients for one in seen), strict=True)
    return Targets(
        gradients=tuple(torch.stack(column) for column in columns),
        labels=torch.tensor(list(labels), device=device),
    )


def residuals(
    seen: Sequence[GradientObservation],
    images: Tensor,
    targets: Targets,
    distance: Distance,
    batch_norm: BatchNorm,
) -> tuple[list[float], list[float]]:
    """How far each image's gradient is from the one seen, and how far a mid-grey image's is.

    images: (N, C, H, W) in [0, 1]. No priors are in it, so that attacks can be compared by it.
    """
    both = []
    for candidates in (images, torch.full_like(images, 0.5)):
        gradients = gradient_of_each(
            seen[0].model,
            candidates,
            targets.labels,
            differentiable=False,
            batch_norm=batch_norm,
        )
        both.append(distance_of_each(gradients, targets.gradients, distance).detach().tolist())
    return both[0], both[1]


def check_together(seen: Sequence[GradientObservation], rngs: Sequence[torch.Generator]) -> None:
    """Raise `SettingsError` unless the observations can be attacked in one go."""
    if len(seen) != len(rngs):
        raise SettingsError(f"{len(seen)} observations came with {len(rngs)} generators.")
    if any(one.model is not seen[0].model or one.shape != seen[0].shape for one in seen):
        raise SettingsError(
            "Observations that are attacked together must share one model and one image shape."
        )


def _check_knowledge(seen: GradientObservation, matching: Matching) -> None:
    if matching.statistics == "leaked" and seen.batch_norm is None:
        raise AttackFailedError(
            "This attack matches the image's batch norm statistics, and none leaked with the "
            'gradient; set statistics="running" or "none" to do without.'
        )


def _best_starts(
    seen: Sequence[GradientObservation],
    labels: Sequence[int],
    matching: Matching,
    rngs: Sequence[torch.Generator],
    report: Report,
) -> list[Found]:
    starts = [
        _one_start(seen, labels, matching, rngs, one_of(report, part, matching.restarts))
        for part in range(matching.restarts)
    ]
    return [_best(each) for each in zip(*starts, strict=True)]


def _best(found: Sequence[Found]) -> Found:
    good = [one for one in found if isinstance(one, Reconstruction)]
    return min(good, key=lambda one: one.objective) if good else found[0]


def _one_start(
    seen: Sequence[GradientObservation],
    labels: Sequence[int],
    matching: Matching,
    rngs: Sequence[torch.Generator],
    report: Report,
) -> list[Found]:
    mean, std = seen[0].model.mean, seen[0].model.std
    targets = stack_targets(seen, labels)
    shape = (1, *seen[0].shape)
    starts = [torch.zeros(shape) for _ in rngs]
    if matching.start == "normal":
        starts = [torch.randn(shape, generator=rng) for rng in rngs]
    ended = descend(
        _objective(seen, targets, matching),
        torch.cat(starts).to(mean),
        descent=matching.descent,
        bounds=(-mean / std, (1 - mean) / std) if matching.boxed else None,
        report=report,
    )
    images = (ended.unknown * std + mean).clamp(0, 1)
    return reconstructions(
        images,
        ended,
        residuals(seen, images, targets, matching.distance, matching.batch_norm),
    )


def reconstructions(
    images: Tensor, ended: Descended, measured: tuple[list[float], list[float]]
) -> list[Found]:
    """One value an image: its reconstruction, or the failure that `ended` has for it.

    measured: what `residuals` returned.
    """
    residual, grey = measured
    return [
        Reconstruction(
            image=images[place].to(torch.float32),
            objective=value,
            residual=residual[place],
            grey_residual=grey[place],
        )
        if failure is None
        else AttackFailedError(failure)
        for place, (value, failure) in enumerate(
            zip(ended.objective.tolist(), ended.failures, strict=True)
        )
    ]


def _objective(
    seen: Sequence[GradientObservation], targets: Targets, matching: Matching
) -> Callable[[Tensor], Tensor]:
    """The unknown, in units of the network's input, to the objective of each image."""
    model = seen[0].model
    mean, std = model.mean, model.std

    def distance(images: Tensor) -> Tensor:
        if matching.distance != "l2":
            return cosine_distance_of_each(
                model,
                images,
                targets,
                matching.distance,
                batch_norm=matching.batch_norm,
                curvature=matching.curvature,
            )
        found = gradient_of_each(
            model, images, targets.labels, differentiable=True, batch_norm=matching.batch_norm
        )
        return distance_of_each(found, targets.gradients, "l2")

    def objective(unknown: Tensor) -> Tensor:
        variation = total_variation_of_each(unknown)
        return distance(unknown * std + mean) + matching.tv * variation

    if matching.statistics == "none":
        return objective
    if matching.statistics == "running":
        known = [running_statistics(model)] * len(seen)
    else:
        known = [one.batch_norm for one in seen if one.batch_norm is not None]

    def with_statistics(unknown: Tensor) -> Tensor:
        # A forward pass of its own: inside `torch.func.vmap` hooks would see one image at a time.
        moments = moments_of_each(model, unknown * std + mean, matching.batch_norm)
        return objective(unknown) + matching.statistics_weight * batch_norm_distance(moments, known)

    return with_statistics
