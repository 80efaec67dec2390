"""Files that a full disk or a power cut left short: each is named, and nothing else is raised.

What a training resumes from, what scores, attacks and experiments in split inference are read from.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from made_judged import judged_labels
from made_weights import make_classifier, make_semsim

from semsim.campaign.store import PieceStore, StoredCell
from semsim.errors import SemsimError
from semsim.learning import TrainSettings, session
from semsim.learning.orders import Order
from semsim.learning.train import train
from semsim.metrics import Resources
from semsim.metrics.network import load_semsim
from semsim.metrics.provenance import read_training
from semsim.metrics.semsim import SemSimDistance
from semsim.sets.image import AttackResult
from semsim.sets.reader import read_set
from semsim.split.training import read_tensors, write_tensors
from semsim.targets import checkpoint
from semsim.targets.model import load_target

QUICK = TrainSettings(backbone="lenet", lr=0.005, epochs=1, batch_size=8, triplets_per_original=2)


def of_target_training(folder):
    path = folder / "training.part"
    one, other = {"w": torch.ones(300)}, {"w": torch.ones(300)}
    state = checkpoint.TrainState(
        epoch=1, lr=0.1, model=one, momentum=other, rng=torch.get_rng_state()
    )
    checkpoint.write_state(path, state, "a")
    return path, lambda: checkpoint.read_state(path, "a")


def of_semsim_training(folder):
    path, labels = folder / "state.pt", judged_labels(folder / "toy", originals=6)
    order = Order(name="a", checkpoints=folder, settings=QUICK, study="made")
    train(labels, QUICK, save=lambda state: session.write_state(path, state, order, labels))
    return path, lambda: session.read_state(path, order, labels)


def of_target(folder):
    path = folder / "target.safetensors"
    make_classifier(path)
    return path, lambda: load_target(path)


def of_semsim(folder):
    path = folder / "mine.safetensors"
    make_semsim(path)
    return path, lambda: (read_training(path), load_semsim(path))


def of_semsim_as_a_metric(folder):
    path = folder / "mine.safetensors"
    make_semsim(path)
    resources = Resources(checkpoints=folder)
    return path, lambda: SemSimDistance(checkpoint="mine").prepare(resources)


def of_split_system(folder):
    path = folder / "piece.pt"
    write_tensors(path, {"w": torch.ones(300)})
    return path, lambda: read_tensors(path)


def of_attacked_image(folder):
    store, picture = PieceStore(folder), np.zeros((9, 9, 3), np.uint8)
    done = {"error": "", "objective": 0.5, "shift_x": 0, "shift_y": 0, "flipped": False}
    result = AttackResult(picture=picture, attacked=picture, **done)
    about = {"image_id": "a", "class_id": 0, "class_name": "cat", "crashed": False}
    store.cells.write("a", StoredCell(original=picture, result=result, seconds=1.0, **about))
    return store.cells.path("a"), lambda: store.cells.read("a")


def of_reconstruction_set(folder):
    (folder / "run.json").write_text('{"format": 1}')
    path = folder / "manifest.parquet"
    pd.DataFrame({"a": range(99)}).to_parquet(path)
    return path, lambda: read_set(folder)


KINDS = [
    of_target_training,
    of_semsim_training,
    of_target,
    of_semsim,
    of_semsim_as_a_metric,
    of_split_system,
    of_attacked_image,
    of_reconstruction_set,
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_cut_short_is_named(kind, tmp_path: Path):
    path, read = kind(tmp_path)
    whole = path.read_bytes()
    named = tmp_path.name if kind is of_reconstruction_set else path.name
    for length in (0, 1, 7, 8, 20, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(SemsimError, match=named):
            read()
    path.write_bytes(bytes(len(whole)))  # what some file systems make of a power cut
    with pytest.raises(SemsimError):
        read()
