"""Files that a full disk or a power cut left short: each is named, and nothing else is raised.

What a training resumes from, what scores, attacks and experiments in split inference are read from.
"""

import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from made_judged import judged_labels
from made_weights import make_classifier, make_semsim
from safetensors.torch import load_file, save_file

import semsim
from semsim.base.errors import DataError, SemsimError, WeightsError
from semsim.base.picture_files import read_pixels
from semsim.base.sets.reader import read_set
from semsim.base.storage.records import read_object
from semsim.campaign.store import PieceStore, StoredCell
from semsim.learning import TrainSettings
from semsim.learning.initial import START, load_initial, starts
from semsim.learning.settings import Order
from semsim.learning.train import read_state, train, write_state
from semsim.metrics import Resources
from semsim.metrics.network import load_semsim
from semsim.metrics.provenance import FORMAT, read_training
from semsim.metrics.semsim import SemSimDistance
from semsim.sets.image import AttackResult
from semsim.systems.split.training import read_tensors, write_tensors
from semsim.targets import checkpoint
from semsim.targets.model import CLASSIFIER, load_target
from semsim.weights import read_facts
from semsim.weights import write_tensors as write_tensors_at

QUICK = TrainSettings(backbone="lenet", lr=0.005, epochs=1, batch_size=8, triplets_per_original=2)


def of_target_training(folder):
    path = folder / "training.part"
    one, other = {"w": torch.ones(300)}, {"w": torch.ones(300)}
    state = checkpoint.TargetState(
        epoch=1, lr=0.1, model=one, momentum=other, rng=torch.get_rng_state()
    )
    checkpoint.write_state(path, state, "a")
    return path, lambda: checkpoint.read_state(path, "a")


def of_semsim_training(folder):
    path, labels = folder / "state.pt", judged_labels(folder / "toy", originals=6)
    order = Order(name="a", checkpoints=folder, settings=QUICK, study="made")
    train(labels, QUICK, save=lambda state: write_state(path, state, order, "a"))
    return path, lambda: read_state(path, order, "a")


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


HOSTILE = [
    {"config": "[" * 100_000},
    {"config": "{}"},
    {"config": "7"},
    *(
        {"config": json.dumps(config)}
        for config in (
            {"settings": 7, "training": 7, "mean": [0, 0, 0], "std": [1, 1, 1]},
            {"settings": {"backbone": 7}, "training": {"settings": []}},
            {"settings": {"backbone": ["lenet"]}, "mean": "x", "std": None},
        )
    ),
]


@pytest.mark.parametrize("metadata", HOSTILE)
@pytest.mark.parametrize("form", [FORMAT, START, CLASSIFIER, checkpoint.FORMAT])
def test_what_a_checkpoint_says_of_itself_is_not_believed(metadata, form, tmp_path, caplog):
    path = tmp_path / "hostile.safetensors"
    save_file({"a": torch.ones(1)}, path, {"format": form, **metadata})
    readers = {
        FORMAT: (read_training, load_semsim, semsim.SemSim.from_pretrained),
        CLASSIFIER: (load_target,),
        checkpoint.FORMAT: (lambda path: checkpoint.read_state(path, "a"),),
    }
    for read in readers.get(form, ()):
        with pytest.raises(WeightsError, match=r"hostile\.safetensors"):
            read(path)
    make_semsim(tmp_path / "whole.safetensors")
    assert set(starts(tmp_path)) - {path.name} == {"whole.safetensors"}
    if form in (FORMAT, START):  # others are taken for weights that do not say whose they are
        assert path.name not in starts(tmp_path)
        assert path.name in caplog.text


@pytest.mark.parametrize(("name", "value"), [("mean", float("nan")), ("std", 0.0), ("std", -1.0)])
def test_a_semsim_that_divides_by_nothing_is_refused(name, value, tmp_path):
    path = tmp_path / "mine.safetensors"
    make_semsim(path)
    tensors, facts = load_file(path), read_facts(path, FORMAT)
    tensors[name][0] = value
    write_tensors_at(path, tensors, FORMAT, facts)
    with pytest.raises(WeightsError, match="train it again"):
        load_semsim(path)
    with pytest.raises(WeightsError, match="train it again"):
        semsim.SemSim.from_pretrained(path)


def cell_with(path, shape="(10**12,)", facts="{}"):
    """An .npz whose array says it is of that shape."""
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".encode()
    array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    with zipfile.ZipFile(path, "w") as file:
        for name in ("original", "attacked", "picture", "facts"):
            file.writestr(f"{name}.npy", array)


@pytest.mark.parametrize("shape", ["(10**12,)", "(1000000000000,)", "(" * 5000, "'", "None"])
def test_a_cell_that_promises_what_no_memory_holds_is_named(shape, tmp_path):
    cells = PieceStore(tmp_path).cells
    cells.folder.mkdir(parents=True)
    cell_with(cells.path("a"), shape)
    with pytest.raises(DataError, match=r"a\.npz"):
        cells.read("a")


def test_what_is_no_state_dict_starts_no_training(tmp_path):
    path = tmp_path / "x.pth"
    torch.save([1, 2, 3], path)
    with pytest.raises(WeightsError, match=r"x\.pth"):
        load_initial(load_semsim(semsim_at(tmp_path)), str(path))


def semsim_at(folder):
    make_semsim(folder / "whole.safetensors")
    return folder / "whole.safetensors"


def test_a_pipe_with_the_name_of_a_file_keeps_nobody_waiting(tmp_path):
    path = tmp_path / "a.png"
    os.mkfifo(path)
    with pytest.raises(DataError, match="it is no file"):
        read_pixels(path)
    with pytest.raises(WeightsError, match="it is no file"):
        read_facts(path, FORMAT)
    with pytest.raises(DataError, match="it is no file"):
        read_object(path, DataError)
