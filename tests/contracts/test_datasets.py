import pytest
import torch

from semsim.datasets import DATASETS
from semsim.images import write_png
from semsim.registry import build

SMALL = {
    "symbols": {"train_per_class": 2, "test_per_class": 1},
    "faces": {"train_per_face": 2},
    "folder": {"size": 16},
}


@pytest.fixture
def dataset(request, tmp_path):
    settings = dict(SMALL[request.param])
    if request.param == "folder":
        rng = torch.Generator().manual_seed(0)
        for split in ("train", "test"):
            for name in ("cat/a", "cat/b", "dog/a"):
                write_png(torch.rand(3, 16, 16, generator=rng), tmp_path / split / f"{name}.png")
        settings["root"] = str(tmp_path)
    return build(DATASETS, request.param, settings)


def test_every_data_set_is_tested_here():
    assert set(SMALL) == set(DATASETS)


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
