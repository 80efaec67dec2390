"""One loop that teaches SemSim what people recognise."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from semsim.base.errors import TrainingFailedError
from semsim.base.progress import Progress, Report, silent
from semsim.device import keep_freed_memory, pick_device
from semsim.learning.batches import channel_statistics, load_table
from semsim.learning.diagnostics import (
    EpochRecord,
    best_epoch,
    collapsed,
    reason_to_stop,
    warnings_about,
)
from semsim.learning.epoch import SHUFFLE, SPLIT, Material, run_epoch, stream
from semsim.learning.initial import load_initial
from semsim.learning.mixing import balance, judged_shares, run_mixing
from semsim.learning.settings import MIXED, TrainSettings
from semsim.learning.triplets import (
    ImageIndex,
    JudgedOriginal,
    learnable,
    shuffle_votes,
    split,
    take_stock,
)
from semsim.metrics.network import ModelSettings, SemSimModel


@dataclass(frozen=True, kw_only=True)
class TrainState:
    """All that the epochs done so far leave behind; the next one starts from it alone.

    No generator is kept: every epoch draws from streams made from the seed and its own number.
    best: the weights of the epoch with the highest held-out AUC, where training may stop early.
    """

    model: Mapping[str, Tensor]
    optimizer: Mapping[str, Any]
    records: tuple[EpochRecord, ...]
    best: Mapping[str, Tensor] | None = None


@dataclass(frozen=True, kw_only=True)
class TrainResult:
    """A trained model (in eval mode, on the CPU), how it went, and what it saw.

    kept_epoch: the epoch whose weights these are, counted from 1; the last one unless it may stop
        early (`TrainSettings.patience`). n_triplets: how many different ones there were to train
        on. stopped: why it ended before its last epoch; empty where it did not.
    """

    model: SemSimModel
    records: tuple[EpochRecord, ...]
    warnings: tuple[str, ...]
    training: tuple[JudgedOriginal, ...]
    held_out: tuple[JudgedOriginal, ...]
    n_triplets: int
    kept_epoch: int
    stopped: str = ""


def train(
    labels: pd.DataFrame,
    settings: TrainSettings,
    *,
    report: Report = silent,
    resume: TrainState | None = None,
    save: Callable[[TrainState], None] = lambda state: None,
    begun: Callable[[SemSimModel], None] = lambda model: None,
) -> TrainResult:
    """Train SemSim on what people said.

    labels: see `take_stock`; the images they name are read from disk.
    report: told of every batch and, with the fields of `EpochRecord`, of every epoch.
    resume: what an interrupted training with the same labels and settings saved last; the
        weights at the end are then those of a training that was not interrupted.
    save: called after every epoch. begun: called once, with the network before it has seen a vote,
        and not where the training is resumed.
    Raises `DataError` where no original is usable or an image is missing, `WeightsError` where
    the weights to start from are, `TrainingFailedError` where the loss leaves the finite numbers or
    there is nothing that could say when to stop early.
    """
    keep_freed_memory()
    material = _gather(labels, settings)
    model = _fresh_model(material, settings, resume).to(pick_device(settings.device))
    if resume is None:
        begun(model)
    optimizer = _optimizer(model, settings, resume)
    records = () if resume is None else resume.records
    best = None if resume is None else resume.best
    stopped = _stopped(records, settings)
    while len(records) < settings.epochs and not stopped:
        if settings.loss == MIXED:
            record = run_mixing(model, material, settings)
        else:
            record = run_epoch(model, optimizer, material, settings, report, len(records))
        records = (*records, record)
        if settings.patience > 0 and best_epoch(records) == record.epoch:
            best = copy.deepcopy(model.state_dict())
        save(_state(model, optimizer, records, best))
        report(_epoch_progress(record, material, settings))
        stopped = _stopped(records, settings)
    if stopped:
        report(_early_end(stopped, material, settings))
    if best is not None:
        model.load_state_dict(dict(best))
    kept = best_epoch(records) if settings.patience > 0 else len(records)
    return TrainResult(
        model=model.cpu().eval(),
        records=records,
        warnings=warnings_about(records[:kept], settings.margin),
        training=material.training,
        held_out=material.held_out,
        n_triplets=sum(len(original.ordered(settings.ordering)) for original in material.training),
        kept_epoch=kept,
        stopped=stopped,
    )


def model_settings(settings: TrainSettings) -> ModelSettings:
    """The part of the settings that scoring needs too."""
    return ModelSettings(
        backbone=settings.backbone,
        small_stem=settings.small_stem,
        input_size=settings.input_size,
        normalize=settings.normalize,
        mixed=settings.loss == MIXED,
    )


def _gather(labels: pd.DataFrame, settings: TrainSettings) -> Material:
    usable = learnable(take_stock(labels), settings.ordering)
    if settings.shuffle:  # those kept for validation too: they may stop the training
        usable = shuffle_votes(usable, stream(settings, SHUFFLE, settings.shuffle))
    training, held_out = split(usable, settings.validation_fraction, stream(settings, SPLIT))
    index = ImageIndex([*training, *held_out])
    material = Material(
        table=load_table(index.paths, settings.input_size),
        index=index,
        training=training,
        held_out=held_out,
    )
    if settings.patience > 0 and not _both_kinds(material):
        raise TrainingFailedError(
            "Stopping early needs a held-out AUC, but the held-out originals do not have both "
            "recognisable and unrecognisable reconstructions. Hold out more, or set patience to 0."
        )
    return material


def _both_kinds(material: Material) -> bool:
    recognisable = material.index.judged(material.held_out)[1]
    return bool(recognisable.any()) and not bool(recognisable.all())


def _fresh_model(
    material: Material, settings: TrainSettings, resume: TrainState | None
) -> SemSimModel:
    of_training = [path for original in material.training for path in original.images]
    numbers = np.unique([material.index.number(path) for path in of_training])
    mean, std = channel_statistics(material.table[torch.from_numpy(numbers)])
    with torch.random.fork_rng(devices=[]):  # the caller's own randomness goes on as it was
        torch.manual_seed(settings.seed)
        model = SemSimModel(model_settings(settings), mean=mean, std=std)
    if resume is None:
        load_initial(model, settings.weights)
        if settings.loss == MIXED:
            pairs, _ = judged_shares(material.index, material.training, settings.ordering)
            balance(model, material.table, pairs)
    else:
        model.load_state_dict(dict(resume.model))
    return model


def _optimizer(
    model: nn.Module, settings: TrainSettings, resume: TrainState | None
) -> torch.optim.Optimizer:
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=settings.lr,
        momentum=settings.momentum,
        nesterov=settings.nesterov,
        weight_decay=settings.weight_decay,
        # One pass over the weights: on a CPU several times faster than what is the default there.
        fused=next(model.parameters()).device.type in ("cpu", "cuda"),
    )
    if resume is not None:
        # SGD would go on in the very tensors it is given.
        optimizer.load_state_dict(copy.deepcopy(dict(resume.optimizer)))
    return optimizer


def _stopped(records: tuple[EpochRecord, ...], settings: TrainSettings) -> str:
    if len(records) >= settings.epochs:
        return ""
    return reason_to_stop(
        records,
        margin=settings.margin,
        patience=settings.patience,
        collapse_patience=settings.collapse_patience,
    )


def _batches(material: Material, settings: TrainSettings) -> int:
    return -(-len(material.training) * settings.triplets_per_original // settings.batch_size)


def _epoch_progress(record: EpochRecord, material: Material, settings: TrainSettings) -> Progress:
    batches = _batches(material, settings)
    note = f"epoch {record.epoch} of {settings.epochs}: loss {record.loss:.3f}"
    if record.validation_accuracy is not None:
        note += f", {record.validation_accuracy:.0%} of held-out triplets right"
    if collapsed(record, settings.margin):
        note += ", features collapsed"
    return Progress(
        done=record.epoch * batches,
        total=settings.epochs * batches,
        note=note,
        values=record.values(),
    )


def _early_end(stopped: str, material: Material, settings: TrainSettings) -> Progress:
    total = settings.epochs * _batches(material, settings)
    return Progress(done=total, total=total, note=stopped)


def _state(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    records: tuple[EpochRecord, ...],
    best: Mapping[str, Tensor] | None,
) -> TrainState:
    return TrainState(
        model=copy.deepcopy(model.state_dict()),
        optimizer=copy.deepcopy(optimizer.state_dict()),
        records=records,
        best=best,
    )
