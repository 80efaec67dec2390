"""The training of SemSim: labels in, a checkpoint out, resumable; and the loop that teaches it."""

import copy
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from semsim.base.errors import SettingsError, TrainingFailedError, WeightsError
from semsim.base.metric_spec import CALIBRATED, CONTROLS, START
from semsim.base.progress import Progress, Report, silent
from semsim.base.storage.atomic import whole, write_bytes
from semsim.base.storage.records import check_format, guarded
from semsim.base.storage.versions import software_versions
from semsim.device import keep_freed_memory, pick_device
from semsim.learning.batches import channel_statistics, load_table
from semsim.learning.calibration import calibrate
from semsim.learning.diagnostics import (
    EpochRecord,
    best_epoch,
    collapsed,
    reason_to_stop,
    warnings_about,
)
from semsim.learning.epoch import SHUFFLE, SPLIT, EpochMaterial, run_epoch, stream
from semsim.learning.initial import identify, load_initial, seen_before
from semsim.learning.settings import (
    STATE_FILE,
    Order,
    TrainSettings,
    control_path,
    require_free,
)
from semsim.learning.triplets import (
    COLUMNS,
    VOTE_COLUMNS,
    ImageIndex,
    JudgedOriginal,
    is_simulated,
    learnable,
    shuffle_votes,
    split,
    take_stock,
)
from semsim.metrics.network import ModelSettings, SemSimModel, load_semsim, save_semsim
from semsim.metrics.provenance import MOVED, Provenance
from semsim.weights import content_key, sha256_of

# In the job's folder: the network with its initial weights, the finished one until it is where it
# belongs, and the hash of that.
FORMAT = "semsim-training/1"  # of `STATE_FILE`
START_FILE = "start.safetensors"
_CHANGED = (
    "Pictures changed while the training ran: it learned from the earlier ones and is judged by "
    "the later ones. Train again."
)
_FINISHED, _OWN_FILE = "finished.safetensors", "finished.sha256"


@dataclass(frozen=True, kw_only=True)
class TrainState:
    """All that the epochs done so far leave behind; the next one starts from it alone.

    No generator is kept: every epoch draws from streams made from the seed and its own number.

    Attributes:
        best: The weights of the epoch with the highest held-out AUC, where training may stop early.
    """

    model: Mapping[str, Tensor]
    optimizer: Mapping[str, Any]
    records: tuple[EpochRecord, ...]
    best: Mapping[str, Tensor] | None = None


@dataclass(frozen=True, kw_only=True)
class TrainResult:
    """A trained model (in eval mode, on the CPU), how it went, and what it saw.

    Attributes:
        kept_epoch: The epoch whose weights these are, counted from 1; the last one unless it may
            stop early (`TrainSettings.patience`).
        n_triplets: How many different ones there were to train on.
        stopped: Why it ended before its last epoch; empty where it did not.
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

    Args:
        labels: See `take_stock`; the images they name are read from disk.
        report: Told of every batch and, with the fields of `EpochRecord`, of every epoch.
        resume: What an interrupted training with the same labels and settings saved last; the
            weights at the end are then those of a training that was not interrupted.
        save: Called after every epoch.
        begun: Called once, with the network before it has seen a vote, and not where the training
            is resumed.

    Raises:
        DataError: Where no original is usable or an image is missing.
        WeightsError: Where the weights to start from are.
        TrainingFailedError: Where the loss leaves the finite numbers or there is nothing that could
            say when to stop early.
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
    )


def _gather(labels: pd.DataFrame, settings: TrainSettings) -> EpochMaterial:
    usable = learnable(take_stock(labels), settings.ordering)
    if settings.shuffle:  # those kept for validation too: they may stop the training
        usable = shuffle_votes(usable, stream(settings, SHUFFLE, settings.shuffle))
    training, held_out = split(usable, settings.validation_fraction, stream(settings, SPLIT))
    index = ImageIndex([*training, *held_out])
    material = EpochMaterial(
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


def _both_kinds(material: EpochMaterial) -> bool:
    recognisable = material.index.judged(material.held_out)[1]
    return bool(recognisable.any()) and not bool(recognisable.all())


def _fresh_model(
    material: EpochMaterial, settings: TrainSettings, resume: TrainState | None
) -> SemSimModel:
    of_training = [path for original in material.training for path in original.images]
    numbers = np.unique([material.index.number(path) for path in of_training])
    mean, std = channel_statistics(material.table[torch.from_numpy(numbers)])
    with torch.random.fork_rng(devices=[]):  # the caller's own randomness goes on as it was
        torch.manual_seed(settings.seed)
        model = SemSimModel(model_settings(settings), mean=mean, std=std)
    if resume is None:
        load_initial(model, settings.weights)
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


def _batches(material: EpochMaterial, settings: TrainSettings) -> int:
    return -(-len(material.training) * settings.triplets_per_original // settings.batch_size)


def _epoch_progress(
    record: EpochRecord, material: EpochMaterial, settings: TrainSettings
) -> Progress:
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


def _early_end(stopped: str, material: EpochMaterial, settings: TrainSettings) -> Progress:
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


def learn(order: Order, labels: pd.DataFrame, folder: Path, report: Report) -> dict[str, Any]:
    """Carry out `order`, going on from what an earlier run left in `folder`.

    Beside the checkpoint are kept its controls: its initial weights, and the baseline
    that is calibrated to the same votes.

    Args:
        labels: See `take_stock`.

    Returns:
        What a result page needs, ready for JSON.

    Raises:
        SettingsError: Where the name is taken, or the order is another than the one begun in
            `folder`.
    """
    began, settings = time.monotonic(), order.settings
    folder.mkdir(parents=True, exist_ok=True)
    state_path, start = Path(folder) / STATE_FILE, Path(folder) / START_FILE
    learned_from = fingerprint(labels, settings)
    begun = read_state(state_path, order, learned_from)
    if begun is None:
        start.unlink(missing_ok=True)
    if begun is None or not _is_own(order, folder):
        require_free(order.checkpoint)

    def save(state: TrainState) -> None:
        write_state(state_path, state, order, learned_from)

    def keep_start(model: SemSimModel) -> None:
        save_semsim(model, start, _start_of(order))

    outcome = train(labels, settings, report=report, resume=begun, save=save, begun=keep_start)
    if fingerprint(labels, settings) != learned_from:
        outcome = replace(outcome, warnings=(*outcome.warnings, _CHANGED))
    training = replace(_training(order, labels, outcome), start=_keep_start(order, start))
    both = zip(outcome.model.parameters(), load_semsim(start).parameters(), strict=True)
    measured = {MOVED: float(any(not torch.equal(*pair) for pair in both))}
    if not settings.shuffle:  # what stands beside a SemSim has nothing beside itself
        measured |= _keep_calibrated(order, training, outcome.training)
    training = replace(training, results={**training.results, **measured})
    _hand_over(outcome.model, training, order, folder)
    return {
        **asdict(training),
        "name": order.name,
        "checkpoint": str(order.checkpoint),
        "epochs": len(outcome.records),
        "seconds": time.monotonic() - began,
    }


def _hand_over(model: SemSimModel, training: Provenance, order: Order, folder: Path) -> None:
    """Put the SemSim where it belongs; the folder says before that it is this training's."""
    finished = folder / _FINISHED
    save_semsim(model, finished, training)
    write_bytes(folder / _OWN_FILE, sha256_of(finished).encode())
    write_bytes(order.checkpoint, finished.read_bytes())
    finished.unlink()


def _is_own(order: Order, folder: Path) -> bool:
    """Return whether the checkpoint's path is free, or holds what this training has put there.

    Another of the same name may have been begun and finished while this one was stopped.
    """
    if order.checkpoint.parent == folder or not order.checkpoint.exists():
        return True
    own = folder / _OWN_FILE
    return own.exists() and own.read_text() == sha256_of(order.checkpoint)


def write_state(path: Path, state: TrainState, order: Order, learned_from: str) -> None:
    """Keep what `train` needs to go on, whole or not at all.

    Args:
        learned_from: Of `fingerprint`, before the pictures were read.
    """
    content = {
        "format": FORMAT,
        "model": dict(state.model),
        "optimizer": dict(state.optimizer),
        "records": [asdict(record) for record in state.records],
        "best": None if state.best is None else dict(state.best),
        "settings": order.settings.result_settings(),
        "labels": learned_from,
    }
    with whole(path) as part:
        torch.save(content, part)


def read_state(path: Path, order: Order, learned_from: str) -> TrainState | None:
    """Return what `write_state` kept, or None where nothing was.

    Raises `WeightsError` where it is broken, `SettingsError` where it belongs to another order.
    """
    if not path.exists():
        return None
    with guarded(path, WeightsError, "cannot be resumed from ({}); start again."):
        content = torch.load(path, weights_only=True, map_location="cpu")
        check_format(content.get("format"), FORMAT, path, WeightsError)
        kept, of = content["settings"], content["labels"]
        state = TrainState(
            model=content["model"],
            optimizer=content["optimizer"],
            records=tuple(EpochRecord(**record) for record in content["records"]),
            best=content["best"],
        )
    wanted = order.settings.result_settings()
    changed = [name for name in wanted if wanted[name] != kept.get(name)]
    if changed:
        raise SettingsError(
            f"The training in {path.parent} began with {changed[0]}={kept.get(changed[0])!r}, not "
            f"{wanted[changed[0]]!r}. Resume it with its own settings, or start another."
        )
    if of != learned_from:
        raise SettingsError(
            f"The training in {path.parent} began with other labels or other pictures. Start "
            "another for these."
        )
    return state


def _start_of(order: Order) -> Provenance:
    """Return the provenance of the network before it has seen a vote."""
    settings = order.settings
    began_with = identify(settings.backbone, settings.weights)
    return Provenance(
        n_originals=0,
        n_triplets=0,
        simulated=False,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions={**software_versions(), "initial weights": began_with},
        settings=settings.result_settings(),
        control=START,
        pixels=seen_before(settings.weights).record(),
    )


def _keep_start(order: Order, start: Path) -> str:
    """Put the start beside the checkpoint and return its hash.

    Controls of an earlier SemSim of the same name must not stand for this one's.
    """
    for control in CONTROLS:
        control_path(order.checkpoint, control).unlink(missing_ok=True)
    kept = control_path(order.checkpoint, START)
    write_bytes(kept, start.read_bytes())
    return sha256_of(kept)


def _keep_calibrated(
    order: Order, training: Provenance, originals: Sequence[JudgedOriginal]
) -> dict[str, float]:
    """Put the calibrated baseline of the same votes beside the SemSim; return its weights."""
    settings = order.settings
    model, weights = calibrate(originals, settings.ordering, settings.input_size)
    facts = replace(training, control=CALIBRATED, results=weights)
    save_semsim(model, control_path(order.checkpoint, CALIBRATED), facts)
    return weights


def _training(order: Order, labels: pd.DataFrame, outcome: TrainResult) -> Provenance:
    last = outcome.records[outcome.kept_epoch - 1].values()
    settings = order.settings
    began_with = identify(settings.backbone, settings.weights)
    return Provenance(
        n_originals=len(outcome.training),
        n_triplets=outcome.n_triplets,
        simulated=is_simulated(labels),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions={**software_versions(), "initial weights": began_with},
        settings=settings.result_settings(),
        study=order.study,
        warnings=outcome.warnings,
        results={**last, "n_held_out": float(len(outcome.held_out))},
        stopped=outcome.stopped,
        pixels=seen_before(settings.weights).and_from(labels).record(),
    )


def fingerprint(labels: pd.DataFrame, settings: TrainSettings) -> str:
    """Return a hash of the labels as a training reads them, and of the pictures they name."""
    shares = (*VOTE_COLUMNS, "votes_per_item", "mean_response")
    names = [*COLUMNS, *(shares if settings.ordering == "votes" else ())]
    rows = labels.reindex(columns=names).astype(str)
    pictures = {name: rows[name].map(content_key) for name in ("original", "reconstruction")}
    rows = rows.assign(**pictures).sort_values(names)
    return hashlib.sha256(rows.to_csv(index=False).encode()).hexdigest()
