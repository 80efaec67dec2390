"""A training as the command line and the page run it: labels in, a checkpoint out, resumable."""

import hashlib
import pickle
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from semsim.errors import SettingsError, WeightsError
from semsim.kept.versions import software_versions
from semsim.kept.whole import whole_file
from semsim.learning.diagnostics import EpochRecord
from semsim.learning.initial import identify
from semsim.learning.orders import Order, free_checkpoint_path
from semsim.learning.settings import TrainSettings
from semsim.learning.train import TrainResult, TrainState, train
from semsim.learning.triplets import COLUMNS, VOTE_COLUMNS, is_simulated
from semsim.metrics.network import Training, save_semsim
from semsim.progress import Report

STATE_FILE = "training.pt"  # in the job's folder while it is not done
# torch.load has no error of its own: a broken file raises whatever its parser trips on.
_BROKEN = (
    pickle.UnpicklingError,
    RuntimeError,
    OSError,
    EOFError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
)


def learn(order: Order, labels: pd.DataFrame, folder: Path, report: Report) -> dict[str, Any]:
    """Carry out `order`, going on from what an earlier run left in `folder`.

    labels: see `take_stock`.
    Returns what a result page needs, ready for JSON. Raises `SettingsError` where the name is
    taken, or the order is another than the one begun in `folder`.
    """
    began = time.monotonic()
    state_path = Path(folder) / STATE_FILE
    begun = read_state(state_path, order, labels)
    if begun is None:
        free_checkpoint_path(order.checkpoints, order.name)

    def save(state: TrainState) -> None:
        write_state(state_path, state, order, labels)

    outcome = train(labels, order.settings, report=report, resume=begun, save=save)
    training = _training(order, labels, outcome)
    save_semsim(outcome.model, order.checkpoint, training)
    return {
        **asdict(training),
        "name": order.name,
        "checkpoint": str(order.checkpoint),
        "epochs": len(outcome.records),
        "seconds": time.monotonic() - began,
    }


def write_state(path: Path, state: TrainState, order: Order, labels: pd.DataFrame) -> None:
    """Keep what `train` needs to go on, whole or not at all."""
    content = {
        "model": dict(state.model),
        "optimizer": dict(state.optimizer),
        "records": [asdict(record) for record in state.records],
        "best": None if state.best is None else dict(state.best),
        "settings": order.settings.result_settings(),
        "labels": _fingerprint(labels, order.settings),
    }
    with whole_file(path) as part:
        torch.save(content, part)


def read_state(path: Path, order: Order, labels: pd.DataFrame) -> TrainState | None:
    """What `write_state` kept, or None where nothing was.

    Raises `WeightsError` where it is broken, `SettingsError` where it belongs to another order.
    """
    if not path.exists():
        return None
    try:
        content = torch.load(path, weights_only=True, map_location="cpu")
        # What an older version left does not name the settings it did not have.
        kept = TrainSettings().result_settings() | content["settings"]
        of = content["labels"]
        state = TrainState(
            model=content["model"],
            optimizer=content["optimizer"],
            records=tuple(EpochRecord(**record) for record in content["records"]),
            best=content.get("best"),
        )
    except _BROKEN as error:
        raise WeightsError(f"{path} cannot be resumed from ({error}); start again.") from error
    wanted = order.settings.result_settings()
    changed = [name for name in wanted if wanted[name] != kept.get(name)]
    if changed:
        raise SettingsError(
            f"The training in {path.parent} began with {changed[0]}={kept.get(changed[0])!r}, not "
            f"{wanted[changed[0]]!r}. Resume it with its own settings, or start another."
        )
    if of != _fingerprint(labels, order.settings):
        raise SettingsError(
            f"The training in {path.parent} began with other labels. Start another for these."
        )
    return state


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
        warnings=list(outcome.warnings),
        results={**last, "n_held_out": float(len(outcome.held_out))},
        stopped=outcome.stopped,
    )


def _fingerprint(labels: pd.DataFrame, settings: TrainSettings) -> str:
    names = [*COLUMNS, *(VOTE_COLUMNS if settings.ordering == "votes" else ())]
    rows = labels[names].astype(str).sort_values(names)
    return hashlib.sha256(rows.to_csv(index=False).encode()).hexdigest()
