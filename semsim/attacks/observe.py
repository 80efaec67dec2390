"""One round of federated learning as an eavesdropping server sees it."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from semsim.attacks.batch_norm import BatchNorm, batch_norm_mode, statistics_of
from semsim.attacks.per_sample import parameter_gradients
from semsim.defences.base import Defence, of_one
from semsim.types import AttackedModel, GradientObservation


@dataclass(frozen=True, kw_only=True)
class Leak:
    """What leaks, and, for the record only, what the defence did to the attacked image.

    attacked: (C, H, W) in [0, 1], the image the gradient belongs to.
    """

    observation: GradientObservation
    attacked: Tensor
    shift_x: int
    shift_y: int
    flipped: bool


def observe_gradient(
    model: AttackedModel,
    image: Tensor,
    label: int,
    defence: Defence,
    rng: torch.Generator,
    *,
    batch_norm: BatchNorm = "eval",
    share_statistics: bool = False,
) -> Leak:
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
        attacked=attacked.images[0],
        shift_x=int(attacked.shift_x[0]),
        shift_y=int(attacked.shift_y[0]),
        flipped=bool(attacked.flipped[0]),
    )


def assumptions(attack: object) -> dict[str, Any]:
    """What an attack's settings assume about the participant, as arguments of `observe_gradient`.

    An attack that works with batch norm in training mode is tried on a participant in training
    mode, and one that knows the image's batch norm statistics on one that shares them.
    """
    return {
        "batch_norm": getattr(attack, "batch_norm", "eval"),
        "share_statistics": getattr(attack, "statistics", "none") == "leaked",
    }
