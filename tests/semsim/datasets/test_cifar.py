import numpy as np
import pytest
from made_datasets import cifar100, trust_made_cifar100

from semsim.datasets.cifar import Cifar100
from semsim.errors import DataError


def test_pixels_labels_and_ids_are_those_of_the_files(tmp_path, monkeypatch):
    pixels = cifar100(tmp_path)
    trust_made_cifar100(monkeypatch)
    for split in ("train", "test"):
        data = Cifar100(root=str(tmp_path))(split)
        assert data.classes == ("apple", "bear", "cup")
        assert data.labels.tolist() == [0, 2, 1, 0, 1, 2]
        back = (data.images * 255).round().byte().permute(0, 2, 3, 1).numpy()
        assert np.array_equal(back, pixels[split])
        assert data.ids[4] == f"cifar100-{split}-00004"


def test_an_id_stays_the_place_in_the_files_when_images_are_left_out(tmp_path, monkeypatch):
    pixels = cifar100(tmp_path)
    trust_made_cifar100(monkeypatch)
    data = Cifar100(root=str(tmp_path), classes=2, per_class=1)("test")
    assert data.ids == ("cifar100-test-00000", "cifar100-test-00002")
    assert data.images[1, 0, 3, 5] == pixels["test"][2, 3, 5, 0] / np.float32(255)


def test_files_of_another_checksum_are_refused(tmp_path):
    cifar100(tmp_path)
    with pytest.raises(DataError, match="not those of CIFAR-100"):
        Cifar100(root=str(tmp_path))("train")
