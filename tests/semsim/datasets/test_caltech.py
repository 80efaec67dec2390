import shutil
from pathlib import Path

import pytest
from made_pictures import blocky

from semsim.campaign.plan import data_content
from semsim.datasets.caltech import Caltech101


def example(root):
    place = root / "caltech101" / "101_ObjectCategories"
    for number, name in enumerate(("ant", "BACKGROUND_Google", "beaver", "cup")):
        for image in range(1, 6):
            blocky(place / name / f"image_{image:04d}.jpg", 10 * number + image)


PUBLISHED = Path(__file__).resolve().parents[4] / "shared/data/caltech101_sample"


def test_split_is_balanced_whole_and_without_the_clutter(tmp_path):
    example(tmp_path)  # five images a class
    data = Caltech101(root=str(tmp_path), size=8, test_per_class=2)
    train, test = data("train"), data("test")
    assert train.classes == ("ant", "beaver", "cup")
    assert test.labels.bincount().tolist() == [2, 2, 2]
    assert train.labels.bincount().tolist() == [3, 3, 3]
    assert len({*train.ids, *test.ids}) == 15
    assert "caltech101-ant-image_0001" in {*train.ids, *test.ids}


def test_a_target_of_a_part_of_the_archive_is_not_that_of_all_of_it(tmp_path):
    text = f"caltech101:root={tmp_path}"
    assert data_content(text) == ""
    example(tmp_path)
    before = data_content(text)
    shutil.move(tmp_path / "caltech101", tmp_path / "other")
    example(tmp_path)
    assert data_content(text) == before != ""  # the same files, unpacked anew
    blocky(tmp_path / "caltech101/101_ObjectCategories/ant/image_0006.jpg", 77)
    assert data_content(text) != before


def test_seed_decides_the_split(tmp_path):
    example(tmp_path)

    def test_ids(seed):
        return Caltech101(root=str(tmp_path), size=8, test_per_class=2, seed=seed)("test").ids

    assert test_ids(0) == test_ids(0)
    assert len({test_ids(seed) for seed in range(4)}) > 1


def test_a_class_keeps_an_image_for_training(tmp_path):
    example(tmp_path)
    data = Caltech101(root=str(tmp_path), size=8, test_per_class=30)
    assert data("train").labels.bincount().tolist() == [1, 1, 1]


@pytest.mark.skipif(not PUBLISHED.exists(), reason="needs the real images, not part of the project")
def test_real_images_are_read(tmp_path):
    (tmp_path / "caltech101").mkdir()
    (tmp_path / "caltech101/101_ObjectCategories").symlink_to(PUBLISHED)
    data = Caltech101(root=str(tmp_path), per_class=1, test_per_class=2)("test")
    assert data.images.shape == (101, 3, 64, 64)
    assert "anchor" in data.classes
    assert 0.1 < data.images.std() < 0.5
