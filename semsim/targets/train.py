"""One training loop for all target classifiers."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from semsim.defences import Defence
from semsim.progress import Progress, Report, silent
from semsim.targets.model import Architecture, TargetModel
from semsim.types import LabelledImages


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """SGD with Nesterov momentum, step size ×0.1 at 3/8, 5/8 and 7/8 of the epochs.

    These are the settings of the SemSim authors' code but for `epochs` (there 200).
    """

    epochs: int = 200
    batch_size: int = 64
    lr: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 5e-4
    seed: int = 0


def train_target(
    architecture: Architecture,
    data: LabelledImages,
    defence: Defence,
    settings: TrainSettings,
    *,
    device: torch.device | None = None,
    degrade: Callable[[Tensor, torch.Generator], Tensor] | None = None,
    report: Report = silent,
) -> TargetModel:
    """Train a fresh `architecture` on `data` under `defence`; the same seed gives the same weights.

    degrade: changes each training batch after the defence; for classifiers that must read bad
        images. Returns the model of the last epoch, in eval mode.
    """
    rng = torch.Generator().manual_seed(settings.seed)
    model = _fresh_model(architecture, data, settings.seed)
    model.to(device or torch.device("cpu")).train()
    optimiser = torch.optim.SGD(
        model.parameters(),
        lr=settings.lr,
        momentum=settings.momentum,
        weight_decay=settings.weight_decay,
        nesterov=True,
    )
    milestones = [round(settings.epochs * part / 8) for part in (3, 5, 7)]
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimiser, milestones, gamma=0.1)
    for epoch in range(1, settings.epochs + 1):
        total = 0.0
        order = torch.randperm(len(data), generator=rng)
        for batch in order.split(settings.batch_size):
            images = defence.images(data.images[batch], rng).images
            if degrade is not None:
                images = degrade(images, rng)
            images, labels = images.to(model.mean.device), data.labels[batch].to(model.mean.device)
            loss = F.cross_entropy(model(images), labels)
            gradients = torch.autograd.grad(loss, tuple(model.parameters()))
            shared = defence.gradients(gradients, rng, "train")
            for parameter, gradient in zip(model.parameters(), shared, strict=True):
                parameter.grad = gradient
            optimiser.step()
            total += loss.item() * len(batch)
        schedule.step()
        report(Progress(epoch, settings.epochs, values={"loss": total / len(data)}))
    return model.eval()


@torch.no_grad()
def accuracy(model: TargetModel, data: LabelledImages) -> float:
    """Share of `data` that `model` classifies right, 0 to 1."""
    hits = [
        (model(images.to(model.mean.device)).argmax(1).cpu() == labels).sum().item()
        for images, labels in zip(data.images.split(256), data.labels.split(256), strict=True)
    ]
    return sum(hits) / len(data)


def _fresh_model(architecture: Architecture, data: LabelledImages, seed: int) -> TargetModel:
    with torch.random.fork_rng():  # torch's layers initialise from the global generator only
        torch.manual_seed(seed)
        return TargetModel(
            architecture,
            data.classes,
            mean=data.images.mean(dim=(0, 2, 3)).tolist(),
            std=data.images.std(dim=(0, 2, 3)).tolist(),
            size=(data.images.shape[2], data.images.shape[3]),
        )
