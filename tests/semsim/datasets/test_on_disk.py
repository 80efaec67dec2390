import numpy as np
import pytest
import torch
from made_pictures import blocky
from PIL import Image

from semsim.base.errors import DataError
from semsim.datasets.celeba import CelebA
from semsim.datasets.on_disk import fetched, first_of_each
from semsim.datasets.photographs import Caltech101, balanced_split, read_middle


def test_the_middle_square_is_read(tmp_path):
    wide = np.zeros((10, 30, 3), dtype=np.uint8)
    wide[:, 10:20] = (255, 0, 102)
    Image.fromarray(wide).save(tmp_path / "wide.png")
    Image.fromarray(wide.transpose(1, 0, 2)).save(tmp_path / "tall.png")
    expected = torch.tensor([1.0, 0.0, 0.4]).view(3, 1, 1).expand(3, 5, 5)
    for name in ("wide.png", "tall.png"):
        assert torch.equal(read_middle(tmp_path / name, 5), expected)


def test_unreadable_images_are_named(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"text")
    with pytest.raises(DataError, match=r"a\.jpg is not a readable image"):
        read_middle(tmp_path / "a.jpg", 8)
    with pytest.raises(DataError, match=r"No image at .*b\.jpg"):
        read_middle(tmp_path / "b.jpg", 8)


def test_the_first_of_each_class_are_taken():
    labels = [2, 0, 0, 1, 2, 0, 1, 2]
    assert first_of_each(labels, 3, 2) == [0, 1, 2, 3, 4, 6]
    assert first_of_each(labels, 2, 1) == [1, 3]
    assert first_of_each(labels, 2, None) == [1, 2, 3, 5, 6]


@pytest.mark.parametrize(("count", "tests", "kept"), [(20, 5, 5), (3, 5, 2), (1, 5, 0), (0, 5, 0)])
def test_both_splits_together_are_the_class(count, tests, kept):
    train = balanced_split(count, tests, "train", (0, 4))
    test = balanced_split(count, tests, "test", (0, 4))
    assert sorted(train + test) == list(range(count))
    assert len(test) == kept


def test_a_failed_download_says_what_to_do_by_hand(tmp_path):
    data = Caltech101(root=str(tmp_path))

    def fetch(root):
        blocky(root / "caltech101/101_ObjectCategories/ant/image_0001.jpg", 1)
        raise RuntimeError("'gdown' is required.")

    with pytest.raises(DataError, match=r"gdown.*mzrjq-6wc02 by hand.*101_ObjectCategories"):
        fetched(data, fetch)
    assert not data.present()  # what had come before the failure is in nobody's way
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_what_is_fetched_comes_to_its_place_when_it_is_whole(tmp_path):
    data = Caltech101(root=str(tmp_path), size=8, test_per_class=1)

    def fetch(root):
        for place in ("ant/image_0001", "ant/image_0002", "bee/image_0001", "bee/image_0002"):
            assert not data.present()
            blocky(root / f"caltech101/101_ObjectCategories/{place}.jpg", 1)
        (root / "caltech-101.zip").write_bytes(b"the archive")

    fetched(data, fetch)
    assert data("train").classes == ("ant", "bee")
    files = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.parts[:2] for path in files} == {("caltech101", "101_ObjectCategories")}
    assert len(files) == 4


def test_a_part_that_is_there_already_is_left_alone_and_named(tmp_path):
    data = CelebA(root=str(tmp_path))
    blocky(data.folder / "img_align_celeba/000001.jpg", 1)
    with pytest.raises(DataError, match=r"celeba holds a part of it. Remove that folder"):
        fetched(data, lambda root: pytest.fail("fetched all the same"))
    assert (data.folder / "img_align_celeba/000001.jpg").is_file()
