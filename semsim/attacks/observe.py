"""One round of federated learning as an eavesdropping server sees it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from semsim.attacks.matching import parameter_gradients
from semsim.defences import Defence
from semsim.targets import TargetModel
from semsim.types import GradientObservation


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
    model: TargetModel, image: Tensor, label: int, defence: Defence, rng: torch.Generator
) -> Leak:
    """The gradient a participant with one private image shares under `defence`.

    image: (C, H, W) in [0, 1]. The gradient is that of the augmented image, in eval mode (batch
    norm uses its running statistics), as in the SemSim authors' code.
    """
    device = model.mean.device
    attacked = defence.images(image[None], rng)
    gradients = parameter_gradients(
        model,
        attacked.images.to(device),
        torch.tensor([label], device=device),
        differentiable=False,
    )
    shared = defence.gradients([g.detach() for g in gradients], rng, "attack")
    shape = (image.shape[0], image.shape[1], image.shape[2])
    return Leak(
        observation=GradientObservation(model=model, gradients=shared, shape=shape, label=label),
        attacked=attacked.images[0],
        shift_x=int(attacked.shift_x[0]),
        shift_y=int(attacked.shift_y[0]),
        flipped=bool(attacked.flipped[0]),
    )
