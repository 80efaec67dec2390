"""A half-finished training on disk: one safetensors file, so that reading it runs nothing."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from safetensors.torch import load_file
from torch import Tensor

from semsim.base.errors import CheckpointError, WeightsError
from semsim.base.storage.records import guarded
from semsim.types import LabelledImages
from semsim.weights import read_facts, write_tensors

FORMAT = "semsim-target-training/1"


@dataclass(frozen=True, kw_only=True)
class TargetState:
    """State from which a training goes on after `epoch` as if it had never stopped.

    Attributes:
        model: Its state dict.
        momentum: SGD's buffers by the name of their parameter.
        rng: The state of the generator, (n,) uint8.
        lr: The step size of the next epoch.
    """

    epoch: int
    lr: float
    model: Mapping[str, Tensor]
    momentum: Mapping[str, Tensor]
    rng: Tensor


def write_state(path: Path, state: TargetState, training: str) -> None:
    """Keep `state` at `path`, whole or not at all; `training` tells trainings apart."""
    tensors = {
        "rng": state.rng,
        **{f"model/{name}": value for name, value in state.model.items()},
        **{f"momentum/{name}": value for name, value in state.momentum.items()},
    }
    facts = {"training": training, "epoch": state.epoch, "lr": state.lr}
    write_tensors(path, tensors, FORMAT, facts)


def read_state(path: Path, training: str) -> TargetState | None:
    """Return the state that `write_state` kept, or None where there is none.

    Raises `WeightsError` where the file is broken, `CheckpointError` where another training,
    that is other settings or other images, wrote it.
    """
    if not path.exists():
        return None
    facts = read_facts(path, FORMAT)
    with guarded(path, WeightsError, "cannot be read ({}); remove it to begin again."):
        if facts["training"] != training:
            raise CheckpointError(
                f"{path} belongs to a training with other settings or images. Resume it with its "
                "own, or remove it."
            )
        tensors = load_file(path)
        return TargetState(
            epoch=int(facts["epoch"]),
            lr=float(facts["lr"]),
            model=_below(tensors, "model/"),
            momentum=_below(tensors, "momentum/"),
            rng=tensors["rng"],
        )


def images_digest(data: LabelledImages) -> str:
    """A hash of everything in `data`."""
    words = json.dumps([data.dataset, data.classes, data.ids, list(data.images.shape)])
    digest = hashlib.sha256(words.encode())
    digest.update(data.labels.contiguous().numpy().data)
    digest.update(data.images.contiguous().numpy().data)
    return digest.hexdigest()


def _below(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }
