"""Result of a client's local training on its pictures, simulated so that it can be searched.

Federated averaging (McMahan et al. 2017, arXiv:1602.05629) shares weights after several steps. An
attacker who knows the steps goes them with a guess at the pictures and differentiates through them
(Geiping et al. 2020, arXiv:2003.14053, section 6).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, Self, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from semsim.attacks.batch_norm import BatchNorm, batch_norm_mode
from semsim.attacks.descent import Found, Leaked, Rngs
from semsim.attacks.descent.distance import (
    Apart,
    Distance,
    GradientDistance,
    distance_of_each,
    of_zeros,
)
from semsim.attacks.descent.minimise import in_turn
from semsim.attacks.fast_gradients.surrogate_curvature import lending
from semsim.attacks.labels import Label, chances_of_grey, infer_labels, last_layer
from semsim.base.errors import AttackFailedError, SettingsError
from semsim.base.progress import Report, silent
from semsim.types import AttackedModel, LocalSteps, UpdateObservation

# What an attack takes an update for: local steps that it goes itself, or one gradient, rescaled.
Updates = Literal["simulated", "one-gradient"]


@runtime_checkable
class Simulates(Protocol):
    """An attack that works on what a client shares of several pictures, or after several steps."""

    @property
    def updates(self) -> Updates: ...

    @property
    def label(self) -> Label: ...

    def solve(
        self, seen: UpdateObservation, labels: Sequence[int], rngs: Rngs, report: Report
    ) -> list[Found]: ...


def attack_updates(
    attack: object,
    seen: Sequence[UpdateObservation],
    *,
    rngs: Rngs,
    report: Report = silent,
) -> list[Found]:
    """One result a picture of each client, client after client; a failed one stops no other.

    rngs: one a picture. No attacker can match a client's results to its pictures.
    Raises `SettingsError` where the attack works on the gradient of one picture alone.
    """
    if not isinstance(attack, Simulates):
        raise SettingsError(f"{type(attack).__name__} works on the gradient of one picture alone.")
    found: list[Found] = []
    for turn, one in enumerate(seen):
        told = in_turn(report, turn, len(seen), first=len(found))
        own = rngs[len(found) : len(found) + one.pictures]
        known = one.as_one_step() if attack.updates == "one-gradient" else one
        try:
            found += attack.solve(known, labels_of(known, attack.label), own, told)
        except AttackFailedError as failure:
            found += [failure] * one.pictures
    return found


def labels_of(seen: UpdateObservation, label: Label) -> tuple[int, ...]:
    """The class indices that an attack works with, as its setting says; see `labels.label_of`."""
    if label == "inferred":
        last = seen.mean_gradient()[last_layer(seen)]
        return infer_labels(last, seen.pictures, chances_of_grey(seen) if seen.pictures > 1 else 0)
    if seen.labels is None:
        raise AttackFailedError(
            'The labels are not known to this attacker; set label="inferred" to count them in the '
            "update."
        )
    return seen.labels


def simulated_update(
    model: AttackedModel, images: Tensor, labels: Tensor, local: LocalSteps
) -> tuple[Tensor, ...]:
    """The update of a client with these pictures: parameters after the steps less before.

    images: (P, C, H, W) in [0, 1], in the order in which the client takes them; where they require
    a gradient the result can be differentiated by them, through all steps. labels: (P,).
    Returns one tensor a parameter, as `UpdateObservation.update`. Raises `SettingsError` where the
    model is no `torch.nn.Module`.
    """
    if not isinstance(model, nn.Module):
        raise SettingsError("Local steps are simulated for a torch.nn.Module alone.")
    names, start = zip(*model.named_parameters(), strict=True)
    pace = [torch.zeros_like(one) for one in start]
    moved = pace
    with batch_norm_mode(model, local.batch_norm, alone=False):
        for turn in local.turns(len(images)):
            now = [_leaf(one.detach() + by) for one, by in zip(start, moved, strict=True)]
            logits = functional_call(model, dict(zip(names, now, strict=True)), (images[turn],))
            loss = F.cross_entropy(logits, labels[turn])
            slopes = torch.autograd.grad(loss, now, create_graph=images.requires_grad)
            pace = [local.momentum * p + slope for p, slope in zip(pace, slopes, strict=True)]
            moved = [by - local.lr * p for by, p in zip(moved, pace, strict=True)]
    return tuple(moved)


@dataclass(frozen=True, kw_only=True)
class UpdateDistance:
    """Distance of the simulated update of a client's pictures from the one that it shared.

    As `distance.GradientDistance`, but all pictures have one distance, which stands for each of
    them. labels: (P,), in the order of the pictures.
    """

    seen: UpdateObservation
    labels: Tensor
    kind: Distance | Literal["scaled"]
    curvature: float = 0.0

    @property
    def model(self) -> AttackedModel:
        """With the weights that the client was sent."""
        return self.seen.model

    def __call__(self, images: Tensor) -> Tensor:
        """(P, C, H, W) in [0, 1] to (P,), differentiable once by images that ask for it."""
        with lending(self.curvature):
            made = simulated_update(self.model, images, self.labels, self.seen.local)
        found, target = ([each[None] for each in side] for side in (made, self.seen.update))
        return distance_of_each(found, target, self.kind).expand(len(images))

    def beside_grey(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """As `GradientDistance.beside_grey`."""
        grey = self(torch.full_like(images, 0.5)).detach()
        if self.seen.local.batch_norm == "train":
            grey = grey.minimum(of_zeros([each[None] for each in self.seen.update], self.kind))
        return self(images).detach(), grey

    def groups(self) -> list[list[int]]:
        """As `GradientDistance.groups`: all pictures together."""
        return [list(range(len(self.labels)))]

    def pooled(self, values: Tensor) -> Tensor:
        """As `GradientDistance.pooled`: the mean of `values`, (P,), for each picture."""
        return values.mean().expand(len(values))

    def some(self, places: Sequence[int]) -> Self:
        """That of all pictures; `SettingsError` for some of them, which have no distance."""
        if len(places) != len(self.labels):
            raise SettingsError("Pictures whose update is shared together are attacked together.")
        return self


def distance_from(
    seen: Leaked,
    labels: Sequence[int],
    kind: Distance | Literal["scaled"],
    *,
    batch_norm: BatchNorm = "eval",
    curvature: float = 0.0,
) -> Apart:
    """Distance of images from what leaked, on the model's device.

    batch_norm: of a picture that leaked alone; a client's steps say how they work.
    """
    if not isinstance(seen, UpdateObservation):
        return GradientDistance.of(seen, labels, kind, batch_norm=batch_norm, curvature=curvature)
    told = torch.tensor(list(labels), device=seen.model.mean.device)
    return UpdateDistance(seen=seen, labels=told, kind=kind, curvature=curvature)


def _leaf(weights: Tensor) -> Tensor:
    """Weights by which a loss can be differentiated."""
    return weights if weights.requires_grad else weights.requires_grad_(True)
