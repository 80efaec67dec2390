"""The data that a client of federated learning shares, as an eavesdropping server sees them.

A client shares a gradient, or an update. What is observed is all that an attack gets; the pictures
that it is of are kept beside it for the record, and pairs of reconstructions and originals are a
measurement, no part of an attack.
"""

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypedDict, TypeVar, Unpack

import scipy
import torch
from torch import Tensor

from semsim.attacks import ATTACKS, run_many
from semsim.attacks.batch_norm import BatchNorm, batch_norm_mode, statistics_of
from semsim.attacks.descent import Found
from semsim.attacks.fast_gradients import gradient_of_each, parameter_gradients
from semsim.base.errors import SettingsError
from semsim.base.progress import Report, silent
from semsim.base.registry import Checked, Plugin, built, check_settings, setting
from semsim.defences import DEFENCES
from semsim.defences.base import Augmented, Defence, of_one
from semsim.types import AttackedModel, GradientObservation, LocalSteps, UpdateObservation

SeenT = TypeVar("SeenT", GradientObservation, UpdateObservation)
BY = "least sum of pixel MSE (scipy.optimize.linear_sum_assignment)"  # as records say it


@dataclass(frozen=True, kw_only=True)
class _OfParameters(Checked):
    """Choice of the parameters that are shared; the others are frozen, and the server knows them.

    Attributes:
        parameters: Parts joined by "+", as for `shared_names`.
    """

    parameters: str = setting(
        "all",
        "Parameters",
        "Shared are all, last (a linear probe), biases, lora, or names as body.3 or head.*, joined "
        "by +. The others are frozen.",
    )


@dataclass(frozen=True, kw_only=True)
class Gradient(_OfParameters):
    """The gradient of one picture, as in the papers on attacks.

    Batch norm works as the attack's own setting assumes.
    """

    @property
    def pictures(self) -> int:
        """Number of pictures of one client; they are attacked as one."""
        return 1

    @property
    def local(self) -> LocalSteps | None:
        """Local steps of the client on them; None where it is one gradient of one picture."""
        return None


@dataclass(frozen=True, kw_only=True)
class BatchGradient(_OfParameters):
    """The mean gradient of a batch of pictures, with batch norm as a client that trains has it.

    Attributes:
        batch: Pictures of one client.
        batch_norm: "train" normalises by the statistics of the batch, "eval" by the running ones.
    """

    batch: int = setting(8, least=1)
    batch_norm: BatchNorm = "train"

    @property
    def pictures(self) -> int:
        """As `Gradient.pictures`."""
        return self.batch

    @property
    def local(self) -> LocalSteps:
        """One step of length 1, so that the update is the gradient, turned round."""
        return LocalSteps(
            steps=1, batch=self.batch, lr=1.0, momentum=0.0, batch_norm=self.batch_norm
        )


@dataclass(frozen=True, kw_only=True)
class Update(_OfParameters):
    """The change of the weights after some steps of SGD (McMahan et al. 2017, arXiv:1602.05629).

    Attributes:
        steps: Of training, each on the next batch of the client's pictures, from the first again
            after the last.
        batch: Pictures a step.
        held: Pictures that the client has, a multiple of `batch`, all of which some step takes; 0
            for one batch.
        lr, momentum: Of `torch.optim.SGD`; the server that sent the weights knows them.
        batch_norm: "train" normalises by the statistics of the batch, as training does, "eval" by
            the running ones, which stay with the client.
    """

    steps: int = setting(5, least=1)
    batch: int = setting(8, least=1)
    held: int = setting(0, least=0)
    lr: float = setting(0.01, above=0)
    momentum: float = setting(0.0, least=0, below=1)
    batch_norm: BatchNorm = "train"

    def __post_init__(self) -> None:
        check_settings(self)
        if self.held % self.batch:
            raise SettingsError(f"held is a multiple of batch={self.batch}; got {self.held}.")
        reached = self.steps * self.batch
        if reached < self.held:
            raise SettingsError(
                f"{self.steps} steps take {reached} of {self.held} pictures, and an update tells "
                "nothing of the others; take more steps, or a smaller held."
            )

    @property
    def pictures(self) -> int:
        """As `Gradient.pictures`."""
        return self.held or self.batch

    @property
    def local(self) -> LocalSteps:
        """As `Gradient.local`."""
        return LocalSteps(
            steps=self.steps,
            batch=self.batch,
            lr=self.lr,
            momentum=self.momentum,
            batch_norm=self.batch_norm,
        )


Sharing = Gradient | BatchGradient | Update


@dataclass(frozen=True, kw_only=True)
class Leak(Generic[SeenT]):
    """The leak and, for the record only, what the defence did to the attacked images.

    Attributes:
        attacked: The images that the gradient, or the client's training, is of.
    """

    observation: SeenT
    attacked: Augmented


class Participant(TypedDict, total=False):
    """Computation of a participant's gradient.

    Attributes:
        batch_norm: "eval" (running statistics), the default, as in the SemSim authors' code, or
            "train" (the image's own).
        share_statistics: Whether it shares its batch norm statistics too.
    """

    batch_norm: BatchNorm
    share_statistics: bool


def observe_gradient(
    model: AttackedModel,
    image: Tensor,
    label: int,
    defence: Defence,
    rng: torch.Generator,
    **participant: Unpack[Participant],
) -> Leak[GradientObservation]:
    """The gradient a participant with one private image shares under `defence`.

    Args:
        image: (C, H, W) in [0, 1]. The gradient is that of the augmented image.
    """
    batch_norm = participant.get("batch_norm", "eval")
    share_statistics = participant.get("share_statistics", False)
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

    Args:
        images: (P, C, H, W) in [0, 1], augmented once.
        labels: (P,).
        rngs: One a picture; the first also draws what the defence does to the gradient of each
            step.
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


def assumptions(attack: object) -> Participant:
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
    pictures: Sequence[tuple[Tensor, int]],
    defence: Plugin,
    attack: Plugin,
    seeds: Sequence[int],
    report: Report = silent,
) -> list[tuple[Leak[GradientObservation], Found]]:
    """Return the leak of each image and what the attack makes of it.

    Args:
        pictures: Image, (C, H, W) in [0, 1], and label, each.
    """
    rngs = [torch.Generator().manual_seed(seed) for seed in seeds]
    shield = built(DEFENCES, defence)
    tool = built(ATTACKS, attack)
    known = assumptions(tool)
    leaks = [
        observe_gradient(model, image, label, shield, rng, **known)
        for (image, label), rng in zip(pictures, rngs, strict=True)
    ]
    seen = [leak.observation for leak in leaks]
    return list(zip(leaks, run_many(tool, seen, rngs=rngs, report=report), strict=True))


def assigned(found: Tensor, originals: Tensor) -> list[int]:
    """For each original the place of its reconstruction; each is taken once.

    An attack finds all pictures of a client at once and in no order. The researcher knows the
    originals and takes the pairs that lie nearest together, as papers on batches do.

    Args:
        found, originals: (P, C, H, W) in [0, 1]. Where fewer are found, those originals that are
            best left without one have -1. Minimises the sum of mean squared errors (Kuhn 1955).
    """
    a, b = originals.flatten(1).double(), found.flatten(1).double()
    apart = torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist").square()
    taken = dict(zip(*scipy.optimize.linear_sum_assignment(apart.numpy()), strict=True))
    return [int(taken.get(own, -1)) for own in range(len(originals))]
