import re
from dataclasses import fields, replace

import pytest
import torch
from helpers import example_of

from annotation.tasks import KINDS
from semsim.base.errors import DataError, SettingsError
from semsim.base.registry import build
from semsim.datasets import DATASETS, OnDisk

# By setting, so that a new data set is small here without an edit.
SMALL = {
    "size": 16,
    "count": 90,
    "min_images": 3,
    "train_per_class": 2,
    "train_per_face": 2,
    "test_per_class": 2,
}


def settings_of(name):
    return {field.name for field in fields(DATASETS[name])}


@pytest.fixture
def dataset(request, tmp_path, monkeypatch):
    settings = {key: SMALL[key] for key in SMALL.keys() & settings_of(request.param)}
    if "root" in settings_of(request.param):
        example_of(DATASETS[request.param], root=tmp_path, monkeypatch=monkeypatch)
        settings["root"] = str(tmp_path)
    return build(DATASETS, request.param, settings)


@pytest.mark.parametrize("dataset", DATASETS, indirect=True)
def test_splits_are_rgb_images_with_labels_and_their_own_ids(dataset):
    train, test = dataset("train"), dataset("test")
    assert train.classes == test.classes
    for data in (train, test):
        assert data.images.dtype == torch.float32
        assert data.images.shape[:2] == (len(data), 3)
        assert 0 <= data.images.min() < data.images.max() <= 1
        assert data.labels.shape == (len(data),)
        assert 0 <= data.labels.min() <= data.labels.max() < len(data.classes)
        assert len(set(data.ids)) == len(data)
    assert not set(train.ids) & set(test.ids)


@pytest.mark.parametrize("dataset", DATASETS, indirect=True)
def test_the_same_settings_give_the_same_images(dataset):
    first, second = dataset("train"), dataset("train")
    assert first.ids == second.ids
    assert torch.equal(first.images, second.images)


@pytest.mark.parametrize("dataset", DATASETS, indirect=True)
def test_picking_keeps_images_labels_and_ids_together(dataset):
    data = dataset("test")
    picked = data.pick([2, 0])
    assert picked.ids == (data.ids[2], data.ids[0])
    assert torch.equal(picked.images[1], data.images[0])
    assert picked.labels.tolist() == [data.labels[2], data.labels[0]]


@pytest.mark.parametrize("dataset", DATASETS, indirect=True)
def test_unknown_splits_are_refused(dataset):
    with pytest.raises(ValueError, match="elsewhere"):
        dataset("elsewhere")


@pytest.mark.parametrize("dataset", DATASETS, indirect=True)
def test_a_data_set_says_what_it_is_and_what_people_are_asked(dataset):
    assert dataset.task in KINDS
    assert dataset.about


LIMITED = [name for name, kind in DATASETS.items() if hasattr(kind, "home")]


@pytest.mark.parametrize("dataset", LIMITED, indirect=True)
def test_limits_take_the_first_and_change_none_of_the_others(dataset):
    whole = dataset("train")
    few = replace(dataset, classes=2, per_class=1)("train")
    assert few.classes == whole.classes[:2]
    assert few.labels.tolist() == [0, 1]
    places = [whole.ids.index(image_id) for image_id in few.ids]
    assert places == [whole.labels.tolist().index(label) for label in (0, 1)]
    assert torch.equal(few.images, whole.images[places])
    for limit in ("classes", "per_class"):
        with pytest.raises(SettingsError, match=limit):
            replace(dataset, **{limit: 0})("train")


@pytest.mark.parametrize("name", LIMITED)
def test_missing_files_say_which_command_gets_them(name, tmp_path):
    missing = build(DATASETS, name, {"root": str(tmp_path / "nowhere")})
    assert isinstance(missing, OnDisk)
    assert not missing.present()
    command = f"semsim-studio datasets get {name} --root {tmp_path / 'nowhere'}"
    with pytest.raises(DataError, match=re.escape(command)):
        missing("train")
    assert not (tmp_path / "nowhere").exists()  # asking leaves no folder behind


@pytest.mark.parametrize(
    "dataset", [name for name in LIMITED if "size" in settings_of(name)], indirect=True
)
def test_files_that_are_not_wanted_are_not_opened(dataset):
    few = replace(dataset, classes=1, per_class=1)
    (wanted,) = few("train").ids
    stem = wanted.rpartition("-")[2]  # the file's name without its ending
    images = [
        path for path in dataset.folder.rglob("*") if path.suffix.lower() in {".jpg", ".jpeg"}
    ]
    others = [path for path in images if path.stem != stem]
    assert len(others) > 8
    for path in others:
        path.write_bytes(b"no image")
    assert few("train").ids == (wanted,)
    with pytest.raises(DataError, match="not a readable image"):
        dataset("train")
