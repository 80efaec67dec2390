import pickle

import numpy as np
import pytest
from torchvision.datasets import CIFAR100

from semsim.base.errors import DataError
from semsim.datasets.cifar import Cifar100


def made(root, labels=(0, 2, 1, 0, 1, 2)):
    """The files of three classes; returns the pixels of each split, (N, 32, 32, 3) uint8."""
    place = root / CIFAR100.base_folder
    place.mkdir(parents=True)
    pixels = {}
    for seed, split in enumerate(("train", "test")):
        planes = np.random.default_rng(seed).integers(0, 256, (len(labels), 3072), dtype=np.uint8)
        names = [f"{number}.png" for number in range(len(labels))]
        table = {"data": planes, "fine_labels": list(labels), "filenames": names}
        (place / split).write_bytes(pickle.dumps(table, protocol=2))
        pixels[split] = planes.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    names = {"fine_label_names": ["apple", "bear", "cup"], "coarse_label_names": ["things"]}
    (place / "meta").write_bytes(pickle.dumps(names, protocol=2))
    return pixels


def trust(monkeypatch):
    """Torchvision takes only files of the right checksum; ours have none to compare with."""
    monkeypatch.setattr(CIFAR100, "train_list", [["train", None]])
    monkeypatch.setattr(CIFAR100, "test_list", [["test", None]])
    monkeypatch.setattr(CIFAR100, "meta", {**CIFAR100.meta, "md5": None})


def example(root, monkeypatch):
    trust(monkeypatch)
    made(root)


def test_pixels_labels_and_ids_are_those_of_the_files(tmp_path, monkeypatch):
    pixels = made(tmp_path)
    trust(monkeypatch)
    for split in ("train", "test"):
        data = Cifar100(root=str(tmp_path))(split)
        assert data.classes == ("apple", "bear", "cup")
        assert data.labels.tolist() == [0, 2, 1, 0, 1, 2]
        back = (data.images * 255).round().byte().permute(0, 2, 3, 1).numpy()
        assert np.array_equal(back, pixels[split])
        assert data.ids[4] == f"cifar100-{split}-00004"


def test_an_id_stays_the_place_in_the_files_when_images_are_left_out(tmp_path, monkeypatch):
    pixels = made(tmp_path)
    trust(monkeypatch)
    data = Cifar100(root=str(tmp_path), classes=2, per_class=1)("test")
    assert data.ids == ("cifar100-test-00000", "cifar100-test-00002")
    assert data.images[1, 0, 3, 5] == pixels["test"][2, 3, 5, 0] / np.float32(255)


def test_files_of_another_checksum_are_refused(tmp_path):
    made(tmp_path)
    with pytest.raises(DataError, match="not those of CIFAR-100"):
        Cifar100(root=str(tmp_path))("train")
