"""One loop that teaches SemSim what people recognise."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from semsim.device import pick_device
from semsim.errors import SettingsError
from semsim.learning.batches import channel_statistics, crop_and_flip, load_table, take
from semsim.learning.diagnostics import Distances, EpochRecord, distances, warnings_about
from semsim.learning.loss import TripletLoss
from semsim.learning.model import ModelSettings, SemSimModel
from semsim.learning.settings import TrainSettings
from semsim.learning.triplets import (
    ImageIndex,
    JudgedOriginal,
    count_triplets,
    require_usable,
    split,
    take_stock,
)
from semsim.progress import Progress, Report, silent

_SCORING_BATCH = 256  # images whose features are held at once
# Each use of chance has a stream of its own, so that none shifts another.
_SPLIT, _TRIPLETS, _AUGMENTATION = range(3)


@dataclass(frozen=True, kw_only=True)
class TrainState:
    """All that the epochs done so far leave behind; the next one starts from it alone.

    No generator is kept: every epoch draws from streams made from the seed and its own number.
    """

    model: Mapping[str, Tensor]
    optimizer: Mapping[str, Any]
    records: tuple[EpochRecord, ...]

    @property
    def epochs_done(self) -> int:
        """The number of finished epochs."""
        return len(self.records)


@dataclass(frozen=True, kw_only=True)
class TrainResult:
    """A trained model (in eval mode, on the CPU), how it went, and what it saw."""

    model: SemSimModel
    records: tuple[EpochRecord, ...]
    warnings: tuple[str, ...]
    training: tuple[JudgedOriginal, ...]
    held_out: tuple[JudgedOriginal, ...]

    @property
    def n_triplets(self) -> int:
        """How many different triplets there were to train on."""
        return count_triplets(self.training)


@dataclass(frozen=True, kw_only=True)
class _Material:
    """What a training works on: images by number, and the originals on either side."""

    table: Tensor
    index: ImageIndex
    training: tuple[JudgedOriginal, ...]
    held_out: tuple[JudgedOriginal, ...]


def train(
    labels: pd.DataFrame,
    settings: TrainSettings,
    *,
    report: Report = silent,
    resume: TrainState | None = None,
    save: Callable[[TrainState], None] = lambda state: None,
) -> TrainResult:
    """Train SemSim on what people said.

    labels: see `take_stock`; the images they name are read from disk.
    report: told of every batch and, with the fields of `EpochRecord`, of every epoch.
    resume: what an interrupted training with the same labels and settings saved last; the
        weights at the end are then those of a training that was not interrupted.
    save: called after every epoch.
    Raises `DataError` where no original is usable or an image is missing, `SettingsError` where
    the loss leaves the finite numbers.
    """
    material = _gather(labels, settings)
    device = pick_device(settings.device)
    model = _fresh_model(material, settings).to(device)
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=settings.lr,
        momentum=settings.momentum,
        nesterov=settings.nesterov,
        weight_decay=settings.weight_decay,
    )
    records: tuple[EpochRecord, ...] = ()
    if resume is not None:
        model.load_state_dict(dict(resume.model))
        # SGD would go on in the very tensors it is given.
        optimizer.load_state_dict(copy.deepcopy(dict(resume.optimizer)))
        records = resume.records
    for epoch in range(len(records), settings.epochs):
        record = _epoch(model, optimizer, material, settings, epoch, report)
        records = (*records, record)
        save(_state(model, optimizer, records))
        report(_epoch_progress(record, material, settings))
    return TrainResult(
        model=model.cpu().eval(),
        records=records,
        warnings=warnings_about(records, settings.margin),
        training=material.training,
        held_out=material.held_out,
    )


def model_settings(settings: TrainSettings) -> ModelSettings:
    """The part of the settings that scoring needs too."""
    return ModelSettings(
        backbone=settings.backbone,
        small_stem=settings.small_stem,
        input_size=settings.input_size,
        normalize=settings.normalize,
    )


def _gather(labels: pd.DataFrame, settings: TrainSettings) -> _Material:
    usable = require_usable(take_stock(labels))
    training, held_out = split(usable, settings.validation_fraction, _stream(settings, _SPLIT))
    index = ImageIndex([*training, *held_out])
    return _Material(
        table=load_table(index.paths, settings.input_size),
        index=index,
        training=training,
        held_out=held_out,
    )


def _fresh_model(material: _Material, settings: TrainSettings) -> SemSimModel:
    numbers = np.unique(material.index.every(material.training))
    mean, std = channel_statistics(material.table[torch.from_numpy(numbers)])
    with torch.random.fork_rng(devices=[]):  # the caller's own randomness goes on as it was
        torch.manual_seed(settings.seed)
        return SemSimModel(model_settings(settings), mean=mean, std=std)


def _epoch(
    model: SemSimModel,
    optimizer: torch.optim.Optimizer,
    material: _Material,
    settings: TrainSettings,
    epoch: int,
    report: Report,
) -> EpochRecord:
    for group in optimizer.param_groups:
        group["lr"] = settings.lr_at(epoch)
    triplets = material.index.sample(
        material.training, settings.triplets_per_original, _stream(settings, _TRIPLETS, epoch)
    )
    batches = np.split(triplets, range(settings.batch_size, len(triplets), settings.batch_size))
    rng = _stream(settings, _AUGMENTATION, epoch)
    model.train()
    seen = []
    for number, batch in enumerate(batches, start=1):
        images = take(material.table, batch.T.ravel())
        if settings.augmentation == "crop-flip":
            images = crop_and_flip(images, rng)
        loss, measured = _step(model, optimizer, images, settings.margin)
        if not np.isfinite(loss):
            raise SettingsError(
                f"The loss became {loss} in epoch {epoch + 1}. Train again with a learning rate "
                f"below {settings.lr:g}."
            )
        seen.append((len(batch), loss, measured))
        report(_batch_progress(epoch, number, len(batches), settings, loss))
    return _record(epoch, seen, settings.margin, _validate(model, material))


def _step(
    model: nn.Module, optimizer: torch.optim.Optimizer, images: Tensor, margin: float
) -> tuple[float, Distances]:
    """One update from (3N, C, S, S): N originals, N recognisable, N unrecognisable."""
    # One forward pass for all three, so that batch normalisation sees one distribution.
    features = model(images.to(next(model.parameters()).device))
    anchors, positives, negatives = features.chunk(3)
    loss = TripletLoss(margin=margin)(anchors, positives, negatives)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss.item(), distances(*(part.detach() for part in (anchors, positives, negatives)))


def _validate(model: SemSimModel, material: _Material) -> Distances | None:
    """Distances of all triplets of the held-out originals, as scoring would see them."""
    triplets = material.index.every(material.held_out)
    if len(triplets) == 0:
        return None
    numbers, place = np.unique(triplets, return_inverse=True)
    model.eval()
    with torch.inference_mode():
        features = torch.cat(
            [
                model(take(material.table, part).to(model.mean.device)).cpu()
                for part in np.array_split(numbers, -(-len(numbers) // _SCORING_BATCH))
            ]
        )
        rows = torch.from_numpy(place.reshape(triplets.shape))
        return distances(*(features[rows[:, role]] for role in range(3)))


def _record(
    epoch: int,
    seen: Sequence[tuple[int, float, Distances]],
    margin: float,
    validation: Distances | None,
) -> EpochRecord:
    sizes = [size for size, _, _ in seen]

    def mean(values: Sequence[float]) -> float:
        return float(np.average(values, weights=sizes))

    held_out: dict[str, float] = {}
    if validation is not None:
        held_out = {
            "validation_d_plus": float(validation.plus.mean()),
            "validation_d_minus": float(validation.minus.mean()),
            "validation_accuracy": validation.accuracy(),
        }
    return EpochRecord(
        epoch=epoch + 1,
        loss=mean([loss for _, loss, _ in seen]),
        d_plus=mean([float(d.plus.mean()) for _, _, d in seen]),
        d_minus=mean([float(d.minus.mean()) for _, _, d in seen]),
        violated=mean([d.violated(margin) for _, _, d in seen]),
        norm=mean([d.norm for _, _, d in seen]),
        **held_out,
    )


def _batch_progress(
    epoch: int, number: int, batches: int, settings: TrainSettings, loss: float
) -> Progress:
    return Progress(
        done=epoch * batches + number,
        total=settings.epochs * batches,
        note=f"epoch {epoch + 1} of {settings.epochs}",
        values={"epoch": epoch + number / batches, "loss": loss},
    )


def _epoch_progress(record: EpochRecord, material: _Material, settings: TrainSettings) -> Progress:
    triplets = len(material.training) * settings.triplets_per_original
    batches = -(-triplets // settings.batch_size)
    note = f"epoch {record.epoch} of {settings.epochs}: loss {record.loss:.3f}"
    if record.validation_accuracy is not None:
        note += f", {record.validation_accuracy:.0%} of held-out triplets right"
    return Progress(
        done=record.epoch * batches,
        total=settings.epochs * batches,
        note=note,
        values=record.values(),
    )


def _state(
    model: nn.Module, optimizer: torch.optim.Optimizer, records: tuple[EpochRecord, ...]
) -> TrainState:
    return TrainState(
        model=copy.deepcopy(model.state_dict()),
        optimizer=copy.deepcopy(optimizer.state_dict()),
        records=records,
    )


def _stream(settings: TrainSettings, use: int, epoch: int = 0) -> np.random.Generator:
    return np.random.default_rng([settings.seed, use, epoch])
