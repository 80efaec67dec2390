"""One round of federated learning as an eavesdropping server sees it."""

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from semsim.attacks import ATTACKS, run_many
from semsim.attacks.batch_norm import BatchNorm, batch_norm_mode, statistics_of
from semsim.attacks.per_sample import gradient_of_each, parameter_gradients
from semsim.attacks.sharing import BatchGradient, Update
from semsim.attacks.together import Found
from semsim.base.progress import Report, silent
from semsim.base.registry import Plugin, build
from semsim.defences import DEFENCES
from semsim.defences.base import Augmented, Defence, of_one
from semsim.types import AttackedModel, GradientObservation, UpdateObservation

SeenT = TypeVar("SeenT", GradientObservation, UpdateObservation)


@dataclass(frozen=True, kw_only=True)
class Leak(Generic[SeenT]):
    """The leak and, for the record only, what the defence did to the attacked images.

    attacked: the images that the gradient, or the client's training, is of.
    """

    observation: SeenT
    attacked: Augmented


def observe_gradient(
    model: AttackedModel,
    image: Tensor,
    label: int,
    defence: Defence,
    rng: torch.Generator,
    *,
    batch_norm: BatchNorm = "eval",
    share_statistics: bool = False,
) -> Leak[GradientObservation]:
    """The gradient a participant with one private image shares under `defence`.

    image: (C, H, W) in [0, 1]. The gradient is that of the augmented image.
    batch_norm: "eval" (running statistics) as in the SemSim authors' code, or "train" (the image's
        own). share_statistics: the participant shares its batch norm statistics too.
    """
    device = model.mean.device
    attacked = defence.images(image[None], rng)
    images = attacked.images.to(device)
    with batch_norm_mode(model, batch_norm):
        gradients = parameter_gradients(model, images, torch.tensor([label], device=device))
    shared = of_one(defence, [g.detach() for g in gradients], rng, "attack")
    shape = (image.shape[0], image.shape[1], image.shape[2])
    return Leak(
        observation=GradientObservation(
            model=model,
            gradients=shared,
            shape=shape,
            label=label,
            batch_norm=statistics_of(model, images, batch_norm) if share_statistics else None,
        ),
        attacked=attacked,
    )


def observe_round(
    model: AttackedModel,
    images: Tensor,
    labels: Tensor,
    sharing: BatchGradient | Update,
    defence: Defence,
    rngs: Sequence[torch.Generator],
) -> Leak[UpdateObservation]:
    """Return the leak of a client with these pictures under `defence`.

    images: (P, C, H, W) in [0, 1], augmented once. labels: (P,). rngs: one a picture; the first
    also draws what the defence does to the gradient of each step.
    """
    shown = [defence.images(image, rng) for image, rng in zip(images.split(1), rngs, strict=True)]
    attacked = Augmented(
        images=torch.cat([one.images for one in shown]),
        shift_x=torch.cat([one.shift_x for one in shown]),
        shift_y=torch.cat([one.shift_y for one in shown]),
        flipped=torch.cat([one.flipped for one in shown]),
    )
    device, local = model.mean.device, sharing.local
    pictures, classes = attacked.images.to(device), labels.to(device)

    def gradient(now: AttackedModel, turn: slice) -> tuple[Tensor, ...]:
        batch = pictures[turn], classes[turn]
        return _of_batch(now, *batch, local.batch_norm, defence, rngs[0])

    if isinstance(sharing, Update):
        update = _trained(model, local.turns(len(images)), sharing, gradient)
    else:
        update = tuple(-one for one in gradient(model, slice(len(images))))
    return Leak(
        observation=UpdateObservation(
            model=model,
            update=update,
            local=local,
            pictures=len(images),
            shape=(images.shape[1], images.shape[2], images.shape[3]),
            labels=tuple(labels.tolist()),
        ),
        attacked=attacked,
    )


def _trained(
    model: AttackedModel,
    turns: Iterable[slice],
    sharing: Update,
    gradient: Callable[[AttackedModel, slice], Sequence[Tensor]],
) -> tuple[Tensor, ...]:
    """The weights of a copy of `model` after training, less those before, as floats hold them."""
    client = copy.deepcopy(model)
    weights, sent = list(client.parameters()), list(model.parameters())
    optimiser = torch.optim.SGD(weights, lr=sharing.lr, momentum=sharing.momentum)
    for turn in turns:
        for weight, slope in zip(weights, gradient(client, turn), strict=True):
            weight.grad = slope
        optimiser.step()
    return tuple((now - one).detach() for now, one in zip(weights, sent, strict=True))


def _of_batch(
    model: AttackedModel,
    images: Tensor,
    labels: Tensor,
    batch_norm: BatchNorm,
    defence: Defence,
    rng: torch.Generator,
) -> tuple[Tensor, ...]:
    """The gradient of a step as the defence leaves it."""
    private = defence.private
    if private is not None and private.acts("attack"):
        total = private.clipped_sum(gradient_of_each(model, images, labels))
        mean = private.noised_mean(total, len(images), rng, "attack")
    else:
        with batch_norm_mode(model, batch_norm, alone=False):
            mean = parameter_gradients(model, images, labels)
    return defence.gradients([one.detach() for one in mean], rng, "attack")


def assumptions(attack: object) -> dict[str, Any]:
    """Return an attack's assumptions about the participant, as arguments of `observe_gradient`.

    An attack that works with batch norm in training mode is tried on a participant in training
    mode, and one that knows the image's batch norm statistics on one that shares them.
    """
    return {
        "batch_norm": getattr(attack, "batch_norm", "eval"),
        "share_statistics": getattr(attack, "statistics", "none") == "leaked",
    }


def attacked(
    model: AttackedModel,
    images: Sequence[Tensor],
    labels: Sequence[int],
    defence: Plugin,
    attack: Plugin,
    seeds: Sequence[int],
    report: Report = silent,
) -> list[tuple[Leak[GradientObservation], Found]]:
    """Return the leak of each image, (C, H, W) in [0, 1], and what the attack makes of it."""
    rngs = [torch.Generator().manual_seed(seed) for seed in seeds]
    shield = build(DEFENCES, defence.name, defence.settings)
    tool = build(ATTACKS, attack.name, attack.settings)
    known = assumptions(tool)
    leaks = [
        observe_gradient(model, image, label, shield, rng, **known)
        for image, label, rng in zip(images, labels, rngs, strict=True)
    ]
    seen = [leak.observation for leak in leaks]
    return list(zip(leaks, run_many(tool, seen, rngs=rngs, report=report), strict=True))
