import shutil
from pathlib import Path

import pytest
from made_pictures import blocky

from semsim.base.errors import DataError, SettingsError
from semsim.campaign.plan import data_content
from semsim.datasets.on_disk import content_of
from semsim.datasets.photographs import Caltech101, Imagenette


def caltech(root):
    place = root / "caltech101" / "101_ObjectCategories"
    for number, name in enumerate(("ant", "BACKGROUND_Google", "beaver", "cup")):
        for image in range(1, 6):
            blocky(place / name / f"image_{image:04d}.jpg", 10 * number + image)


def imagenette(root):
    for number, wnid in enumerate(("n01440764", "n02102040", "n02979186")):
        for split in ("train", "val"):
            for image in range(3):
                name = f"{wnid}_{split}_{image}.JPEG"
                blocky(root / "imagenette2-160" / split / wnid / name, 10 * number + image)


def example(root):
    caltech(root)
    imagenette(root)


PUBLISHED = Path(__file__).resolve().parents[4] / "shared/data/caltech101_sample"


def test_split_is_balanced_whole_and_without_the_clutter(tmp_path):
    caltech(tmp_path)  # five images a class
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
    caltech(tmp_path)
    before = data_content(text)
    shutil.move(tmp_path / "caltech101", tmp_path / "other")
    caltech(tmp_path)
    assert data_content(text) == before != ""  # the same files, unpacked anew
    blocky(tmp_path / "caltech101/101_ObjectCategories/ant/image_0006.jpg", 77)
    assert data_content(text) != before


def test_seed_decides_the_split(tmp_path):
    caltech(tmp_path)

    def test_ids(seed):
        return Caltech101(root=str(tmp_path), size=8, test_per_class=2, seed=seed)("test").ids

    assert test_ids(0) == test_ids(0)
    assert len({test_ids(seed) for seed in range(4)}) > 1


def test_a_class_keeps_an_image_for_training(tmp_path):
    caltech(tmp_path)
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


def test_classes_have_words_and_val_is_the_test_split(tmp_path):
    imagenette(tmp_path)
    data = Imagenette(root=str(tmp_path), size=16)
    assert data("train").classes == ("tench", "English springer", "cassette player")
    assert data("test").labels.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert data("test").ids[3] == "imagenette-n02102040_val_0"


def test_source_names_a_release(tmp_path):
    imagenette(tmp_path)
    (tmp_path / "imagenette2-160").rename(tmp_path / "imagenette2-320")
    assert len(Imagenette(root=str(tmp_path), size=16, source="320px")("train")) == 9
    with pytest.raises(DataError, match="imagenette2-160"):
        Imagenette(root=str(tmp_path), size=16)("train")
    with pytest.raises(SettingsError, match="320px"):
        Imagenette(source="200px")


def test_what_is_there_tells_a_part_from_all_of_it(tmp_path):
    data = Imagenette(root=str(tmp_path))
    assert content_of(data) == ""
    imagenette(tmp_path)
    before = content_of(data)
    next((tmp_path / "imagenette2-160/train").rglob("*.JPEG")).unlink()
    assert content_of(data) not in ("", before)


def test_a_broken_folder_is_named(tmp_path):
    imagenette(tmp_path)
    shutil.rmtree(tmp_path / "imagenette2-160/train/n01440764")
    (tmp_path / "imagenette2-160/train/n01440764").mkdir()
    with pytest.raises(DataError, match="is not Imagenette"):
        Imagenette(root=str(tmp_path))("train")
