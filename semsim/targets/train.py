"""One training loop for all target classifiers."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from semsim.base.errors import SettingsError
from semsim.base.progress import Progress, Report, silent
from semsim.base.registry import plain
from semsim.base.storage.pieces import key_of
from semsim.defences.base import Defence
from semsim.defences.dp_sgd import DpSgd
from semsim.defences.none import NoDefence
from semsim.device import keep_freed_memory, pick_device
from semsim.targets.checkpoint import TargetState, images_digest, read_state, write_state
from semsim.targets.each_image import check_trainable, clipped_sum, poisson_batches
from semsim.targets.mixed_precision import check_mixed
from semsim.targets.model import Architecture, TargetModel
from semsim.targets.train_settings import TrainSettings
from semsim.types import AttackedModel, LabelledImages

Degrade = Callable[[Tensor, torch.Generator], Tensor]
TEST = "test_accuracy"  # in what is reported of an epoch
# By which images are normalised where their own mean and deviation would tell of them.
_MEAN, _STD = 0.5, 0.25


@dataclass(frozen=True, kw_only=True)
class Training:
    """Everything that decides a classifier's weights, and where it is trained.

    Attributes:
        device: "auto", or a name such as "cpu". Equal seeds give equal weights on equal devices.
        degrade: Changes each training batch after the defence; for classifiers that must read bad
            images.
        test: The images of which the share in `settings.until` is; needed only where that is below
            1.
        checkpoint: A file that is written after every epoch and resumed from when it is there; None
            keeps nothing.
    """

    architecture: Architecture
    data: LabelledImages
    settings: TrainSettings
    defence: Defence = field(default_factory=NoDefence)
    device: str = "auto"
    degrade: Degrade | None = None
    test: LabelledImages | None = None
    checkpoint: Path | None = None

    @property
    def private(self) -> DpSgd | None:
        """Defence of each image's gradient in training; None where there is none."""
        private = self.defence.private
        return private if private is not None and private.acts("train") else None

    def promise(self) -> dict[str, Any]:
        """Return the defence's promise to each training image, as `DpSgd.promise`; else nothing.

        Raises `SettingsError` where it promises nothing to any image.
        """
        private, settings = self.defence.private, self.settings
        if private is None:
            return {}
        return private.promise(len(self.data), settings.batch_size, settings.epochs)


@runtime_checkable
class Pretrained(Protocol):
    """An architecture that can give a fresh body better weights than random ones."""

    def start(self, body: nn.Module) -> None: ...


@runtime_checkable
class Calibrated(Protocol):
    """An architecture whose fresh body is fitted to the brightness of training images.

    DP-SGD promises nothing of such a fit, so that a private training goes without.
    """

    def calibrate(self, body: nn.Module, brightness: Tensor) -> None:
        """Fit `body`; brightness, (N,), is the mean of each training image's normalised values."""
        ...


def train_target(
    architecture: Architecture,
    data: LabelledImages,
    defence: Defence,
    settings: TrainSettings,
    *,
    device: torch.device | None = None,
    report: Report = silent,
) -> TargetModel:
    """`carry_out` without a checkpoint, on the CPU where no `device` is given."""
    training = Training(
        architecture=architecture,
        data=data,
        defence=defence,
        settings=settings,
        device=str(device or "cpu"),
    )
    return carry_out(training, report)


def carry_out(training: Training, report: Report = silent) -> TargetModel:
    """Train as `training` says; on a CPU the same seed gives the same weights, interrupted or not.

    Args:
        report: Told after every batch, at the end of an epoch with the mean cross-entropy and the
            share of training images classified right on the way, and with that of test images where
            the training may end there. Where it raises, as when a stop is asked for, the checkpoint
            holds the epochs that were finished.

    Returns:
        The model of the last epoch, in eval mode, on its device.

    Raises:
        SettingsError: Where the loss or a weight is no longer finite, the checkpoint is of another
            training or of one that diverged, the defence cannot work, or mixed precision is asked
            for and will not do.
    """
    keep_freed_memory()
    settings = training.settings
    training.promise()
    run = _TrainingRun.fresh(training)
    path, mark = training.checkpoint, ""
    if path is not None:
        mark = _fingerprint(training)
        run.restore(read_state(path, mark))
        _check_finite(run, settings)
    if settings.mixed_precision and run.schedule.last_epoch < settings.epochs:
        report(_of_mixed(training, run))
    # Asked before the first epoch, too: a training that goes on from its checkpoint may be over.
    reached = _test_share(training, run.model) if run.schedule.last_epoch else {}
    for epoch in range(run.schedule.last_epoch + 1, settings.epochs + 1):
        if reached.get(TEST, 0.0) >= settings.until:
            break
        values = _one_epoch(training, run, _batch_report(report, training, epoch))
        run.schedule.step()
        _check_finite(run, settings, values["loss"])
        if path is not None:
            write_state(path, run.snapshot(epoch), mark)
        reached = _test_share(training, run.model)
        report(_epoch_progress(training, epoch, {**values, **reached}))
    return run.model.eval()


def _check_finite(run: "_TrainingRun", settings: TrainSettings, loss: float = 0.0) -> None:
    """Raise `SettingsError` unless `loss`, of the last epoch, and all weights are finite."""
    what = "" if math.isfinite(loss) else f"the loss is {loss}"
    if not what and not all(one.isfinite().all() for one in run.model.parameters()):
        what = "a weight is no longer finite"
    if what:
        raise SettingsError(
            f"The training diverged: in epoch {run.schedule.last_epoch} {what}. "
            f"Take a smaller lr than {settings.lr:g}."
        )


def _test_share(training: Training, model: TargetModel) -> dict[str, float]:
    """The share of test images that the model has right, where one ends the training."""
    if training.settings.until == 1:
        return {}
    if training.test is None:
        raise SettingsError("until needs test images, which this training has none of.")
    share = accuracy(model.eval(), training.test)
    model.train()
    return {TEST: share}


@torch.no_grad()
def accuracy(model: AttackedModel, data: LabelledImages) -> float:
    """Share of `data` that `model` classifies right, 0 to 1."""
    hits = [
        (model(images.to(model.mean.device)).argmax(1).cpu() == labels).sum().item()
        for images, labels in zip(data.images.split(256), data.labels.split(256), strict=True)
    ]
    return sum(hits) / len(data)


@dataclass(frozen=True, kw_only=True)
class _TrainingRun:
    """State that changes while a classifier is trained."""

    model: TargetModel
    optimiser: torch.optim.SGD
    schedule: torch.optim.lr_scheduler.LRScheduler
    rng: torch.Generator

    @classmethod
    def fresh(cls, training: Training) -> Self:
        """Before the first epoch."""
        settings = training.settings
        model = _fresh_model(training)
        check_trainable(model, training.defence)
        model.to(pick_device(training.device)).train()
        if settings.mixed_precision:
            model.to(memory_format=torch.channels_last)  # twice as fast, on CPUs too
        optimiser = torch.optim.SGD(
            model.parameters(),
            lr=settings.lr,
            momentum=settings.momentum,
            weight_decay=settings.weight_decay,
            nesterov=settings.momentum > 0,
        )
        # Rounded down, one epoch or two would have their first drop before the first step.
        milestones = [math.ceil(settings.epochs * part / 8) for part in (3, 5, 7)]
        schedules = torch.optim.lr_scheduler
        return cls(
            model=model,
            optimiser=optimiser,
            schedule=schedules.CosineAnnealingLR(optimiser, max(1, settings.epochs))
            if settings.schedule == "cosine"
            else schedules.MultiStepLR(optimiser, milestones, gamma=0.1),
            rng=torch.Generator().manual_seed(settings.seed),
        )

    def snapshot(self, epoch: int) -> TargetState:
        """Return the state for a checkpoint after `epoch`."""
        state = self.optimiser.state
        momentum = {
            name: state[parameter]["momentum_buffer"]
            for name, parameter in self.model.named_parameters()
            if state[parameter].get("momentum_buffer") is not None
        }
        return TargetState(
            epoch=epoch,
            lr=self.optimiser.param_groups[0]["lr"],
            model=self.model.state_dict(),
            momentum=momentum,
            rng=self.rng.get_state(),
        )

    def restore(self, state: TargetState | None) -> None:
        """Go on from `state`; nothing where there is none."""
        if state is None:
            return
        self.model.load_state_dict(state.model)
        parameters = dict(self.model.named_parameters())
        for name, buffer in state.momentum.items():
            parameter = parameters[name]
            self.optimiser.state[parameter]["momentum_buffer"] = buffer.to(parameter.device)
        self.optimiser.param_groups[0]["lr"] = state.lr
        self.schedule.last_epoch = state.epoch
        self.rng.set_state(state.rng)


def _of_mixed(training: Training, run: _TrainingRun) -> Progress:
    """Measure mixed precision on the first images; `SettingsError` where it changes too much."""
    if training.private is not None:
        raise SettingsError("mixed_precision does not go with DP-SGD, which takes each gradient.")
    few = slice(training.settings.batch_size)
    device, data = run.model.mean.device, training.data
    images, labels = data.images[few].to(device), data.labels[few].to(device)
    found = check_mixed(run.model, images, labels)
    batches = math.ceil(len(data) / training.settings.batch_size)
    done, total = run.schedule.last_epoch * batches, training.settings.epochs * batches
    return Progress(done, total, f"bfloat16: {found.words}")


def _one_epoch(training: Training, run: _TrainingRun, report: Report) -> dict[str, float]:
    """The mean loss and the share classified right, over one pass through the images."""
    data, device = training.data, run.model.mean.device
    loss_sum, right, seen = 0.0, 0, 0
    batches = _batches(training, run)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        # Dropout draws from the global generator only.
        torch.manual_seed(training.settings.seed + run.schedule.last_epoch)
        for number, batch in enumerate(batches, start=1):
            images = data.images[batch]
            if len(batch):  # of none, as DP-SGD may draw, there is nothing to change
                images = _changed(training, images, run.rng)
            loss, hits = _one_step(training, run, images.to(device), data.labels[batch].to(device))
            loss_sum += loss * len(batch)
            right += hits
            seen += len(batch)
            if number < len(batches):  # the last is told with the epoch, after its checkpoint
                report(Progress(number, len(batches)))
    seen = max(seen, 1)  # batches that are drawn image by image may all be empty
    return {"loss": loss_sum / seen, "accuracy": right / seen}


def _changed(training: Training, images: Tensor, rng: torch.Generator) -> Tensor:
    """Return the images to train on for a batch, (N, C, H, W), of one image or more."""
    changed = training.defence.images(images, rng).images
    return changed if training.degrade is None else training.degrade(changed, rng)


def _batches(training: Training, run: _TrainingRun) -> Sequence[Tensor]:
    """The images of each step of an epoch, as indices."""
    images, size = training.data.images, training.settings.batch_size
    if training.private is not None:
        return poisson_batches(len(images), size, run.rng)
    order = torch.randperm(len(images), generator=run.rng)
    device = run.model.mean.device
    return batches_of(order, size, run.model, lambda: run.model(images[:1].to(device)))


def batches_of(
    order: Tensor, size: int, trained: nn.Module, one: Callable[[], object]
) -> Sequence[Tensor]:
    """`order`, indices of shape (N,), as batches of `size`, each of shape (n,).

    A last image that is alone goes with those before it where `trained` cannot train on one, as
    batch norm of maps of one pixel.

    Args:
        one: Runs `trained` on one image, to find out; it leaves no trace.

    Raises:
        SettingsError: Where every batch, or the only one, is of one such image.
    """
    parts = order.split(size)
    if len(parts[-1]) != 1 or _takes_one(trained, one):
        return parts
    parts = (*parts[:-2], torch.cat(parts[-2:]))
    if len(parts[0]) == 1:
        raise SettingsError(
            "This network's batch norm cannot train on one image at a time: take 2 images or more, "
            "and a batch_size of 2 or more."
        )
    return parts


@torch.no_grad()
def _takes_one(trained: nn.Module, one: Callable[[], object]) -> bool:
    kept = [buffer.clone() for buffer in trained.buffers()]  # batch norm counts what it sees
    device = next(trained.parameters()).device
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        try:
            one()
        except ValueError:
            return False
        finally:
            for buffer, value in zip(trained.buffers(), kept, strict=True):
                buffer.copy_(value)
    return True


def _one_step(
    training: Training, run: _TrainingRun, images: Tensor, labels: Tensor
) -> tuple[float, int]:
    """The loss before the step, and how many images were classified right."""
    parameters = tuple(run.model.parameters())
    scale, private = training.settings.loss_scale, training.private
    mixed = torch.autocast(images.device.type, torch.bfloat16, training.settings.mixed_precision)
    with torch.set_grad_enabled(private is None), mixed:
        logits = run.model(images)
        loss = F.cross_entropy(logits, labels) if len(images) else logits.new_zeros(())
    gradients: Sequence[Tensor]
    if private is None:
        gradients = torch.autograd.grad(loss * scale, parameters)
    else:
        size = min(training.settings.batch_size, len(training.data))
        total = clipped_sum(run.model, private, images, labels, scale)
        gradients = private.noised_mean(total, size, run.rng, "train")
    shared = training.defence.gradients(gradients, run.rng, "train")
    for parameter, gradient in zip(parameters, shared, strict=True):
        parameter.grad = gradient
    run.optimiser.step()
    return loss.item(), int((logits.argmax(1) == labels).sum().item())


def _batch_report(report: Report, training: Training, epoch: int) -> Report:
    """Batches of `epoch` told as steps of the whole training, so that a stop need not wait."""
    epochs = training.settings.epochs

    def tell(progress: Progress) -> None:
        done = (epoch - 1) * progress.total + progress.done
        at = {"epoch": epoch - 1 + progress.done / progress.total}
        report(Progress(done, epochs * progress.total, f"epoch {epoch} of {epochs}", at))

    return tell


def _epoch_progress(training: Training, epoch: int, values: Mapping[str, float]) -> Progress:
    epochs = training.settings.epochs
    batches = math.ceil(len(training.data) / training.settings.batch_size)
    note = f"epoch {epoch} of {epochs}: loss {values['loss']:.3f}, {values['accuracy']:.0%} right"
    return Progress(epoch * batches, epochs * batches, note, {"epoch": epoch, **values})


def _fingerprint(training: Training) -> str:
    """A hash of everything that decides the weights."""
    degrade = training.degrade
    parts = {
        "architecture": plain(training.architecture),
        "defence": plain(training.defence),
        "settings": plain(training.settings),
        "degrade": None if degrade is None else getattr(degrade, "__qualname__", repr(degrade)),
        "data": images_digest(training.data),
    }
    return key_of(parts)


def deviations(values: Tensor, over: tuple[int, ...]) -> list[float]:
    """Standard deviations of `values`, (N, …), over the dimensions `over`, one a channel or column.

    1 where a channel is the same everywhere: there is nothing to scale, and 0 would divide by it.
    """
    std = values.std(over)
    return torch.where(std > 0, std, 1.0).tolist()


def _fresh_model(training: Training) -> TargetModel:
    architecture, data = training.architecture, training.data
    channels = data.images.shape[1]
    mean, std = [_MEAN] * channels, [_STD] * channels
    if training.private is None:
        mean = data.images.mean(dim=(0, 2, 3)).tolist()
        std = deviations(data.images, (0, 2, 3))
    with torch.random.fork_rng():  # torch's layers initialise from the global generator only
        torch.manual_seed(training.settings.seed)
        model = TargetModel.on(architecture, data, mean, std)
    if isinstance(architecture, Pretrained):
        architecture.start(model.body)
    if isinstance(architecture, Calibrated) and training.private is None:
        means = data.images.mean(dim=(2, 3))
        shades = (means - model.mean.flatten()) / model.std.flatten()
        architecture.calibrate(model.body, shades.mean(dim=1))
    return model
