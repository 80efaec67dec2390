"""A training as the command line and the page run it: labels in, a checkpoint out, resumable."""

import hashlib
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from semsim.base.errors import SettingsError, WeightsError
from semsim.base.metric_spec import BLOCK, CONTROLS, START
from semsim.base.progress import Report
from semsim.base.storage.atomic import whole, write_bytes
from semsim.base.storage.records import check_format, guarded
from semsim.base.storage.versions import software_versions
from semsim.learning.diagnostics import EpochRecord
from semsim.learning.initial import identify, seen_before
from semsim.learning.mixing import block_alone, block_aucs, judged_shares
from semsim.learning.orders import STATE_FILE, Order, control_path, require_free
from semsim.learning.settings import TrainSettings
from semsim.learning.train import TrainResult, TrainState, train
from semsim.learning.triplets import COLUMNS, VOTE_COLUMNS, ImageIndex, is_simulated
from semsim.metrics.network import NAMES, SemSimModel, load_semsim, save_semsim
from semsim.metrics.provenance import MOVED, N_PAIRS, WEIGHT_OF, Training
from semsim.weights import content_key, sha256_of

# In the job's folder: the network before it saw a vote, the finished one until it is where it
# belongs, and the hash of that.
FORMAT = "semsim-training/1"  # of `STATE_FILE`
START_FILE = "start.safetensors"
_MOVE = 0.01  # share of the largest weight by which others must differ from it to count as moved
_CHANGED = (
    "Pictures changed while the training ran: it learned from the earlier ones and is judged by "
    "the later ones. Train again."
)
_FINISHED, _OWN_FILE = "finished.safetensors", "finished.sha256"


def learn(order: Order, labels: pd.DataFrame, folder: Path, report: Report) -> dict[str, Any]:
    """Carry out `order`, going on from what an earlier run left in `folder`.

    The network before it saw a vote is kept beside the checkpoint, as its control `START`.
    labels: see `take_stock`.
    Returns what a result page needs, ready for JSON. Raises `SettingsError` where the name is
    taken, or the order is another than the one begun in `folder`.
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
    before = load_semsim(start)
    measured = _moves(outcome.model, before)
    if before.settings.mixed:
        fitted, _ = judged_shares(ImageIndex(outcome.training), outcome.training, settings.ordering)
        measured |= {N_PAIRS: float(len(fitted))}
        if not settings.shuffle:  # what stands beside a SemSim has nothing beside itself
            _keep_block(order, before, training, block_aucs(before, outcome.training))
    training = replace(training, results={**training.results, **measured})
    _hand_over(outcome.model, training, order, folder)
    return {
        **asdict(training),
        "name": order.name,
        "checkpoint": str(order.checkpoint),
        "epochs": len(outcome.records),
        "seconds": time.monotonic() - began,
    }


def _hand_over(model: SemSimModel, training: Training, order: Order, folder: Path) -> None:
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

    learned_from: of `fingerprint`, before the pictures were read.
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


def _start_of(order: Order) -> Training:
    """Return the provenance of the network before it has seen a vote."""
    settings = order.settings
    began_with = identify(settings.backbone, settings.weights)
    return Training(
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


def _keep_block(
    order: Order, start: SemSimModel, training: Training, aucs: Mapping[str, float]
) -> None:
    """Put the block that tells the training pictures apart best beside a mixed SemSim, alone."""
    if aucs:
        best = max(aucs, key=aucs.__getitem__)
        alone = replace(training, control=BLOCK, results={f"{WEIGHT_OF}{best}": 1.0})
        save_semsim(block_alone(start, best), control_path(order.checkpoint, BLOCK), alone)


def _moves(model: SemSimModel, start: SemSimModel) -> dict[str, float]:
    """Return whether the votes changed what `model` tells apart, as 1 or 0 under `MOVED`.

    Of a mixed one also what each block counts, where 1 is what it counted before any vote; all
    alike, they order images as before.
    """
    if not model.settings.mixed:
        both = zip(model.parameters(), start.parameters(), strict=True)
        return {MOVED: float(any(not torch.equal(*pair) for pair in both))}
    counts = model.weights / start.weights
    moved = counts.max() - counts.min() >= _MOVE * counts.max()
    named = zip(NAMES, counts.tolist(), strict=True)
    return {MOVED: float(moved), **{f"{WEIGHT_OF}{name}": count for name, count in named}}


def _training(order: Order, labels: pd.DataFrame, outcome: TrainResult) -> Training:
    last = outcome.records[outcome.kept_epoch - 1].values()
    settings = order.settings
    began_with = identify(settings.backbone, settings.weights)
    return Training(
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
