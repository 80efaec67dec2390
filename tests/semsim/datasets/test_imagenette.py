import shutil

import pytest
from made_pictures import blocky

from semsim.base.errors import DataError, SettingsError
from semsim.datasets.imagenette import Imagenette
from semsim.datasets.on_disk import content_of


def example(root):
    for number, wnid in enumerate(("n01440764", "n02102040", "n02979186")):
        for split in ("train", "val"):
            for image in range(3):
                name = f"{wnid}_{split}_{image}.JPEG"
                blocky(root / "imagenette2-160" / split / wnid / name, 10 * number + image)


def test_classes_have_words_and_val_is_the_test_split(tmp_path):
    example(tmp_path)
    data = Imagenette(root=str(tmp_path), size=16)
    assert data("train").classes == ("tench", "English springer", "cassette player")
    assert data("test").labels.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert data("test").ids[3] == "imagenette-n02102040_val_0"


def test_source_names_a_release(tmp_path):
    example(tmp_path)
    (tmp_path / "imagenette2-160").rename(tmp_path / "imagenette2-320")
    assert len(Imagenette(root=str(tmp_path), size=16, source="320px")("train")) == 9
    with pytest.raises(DataError, match="imagenette2-160"):
        Imagenette(root=str(tmp_path), size=16)("train")
    with pytest.raises(SettingsError, match="320px"):
        Imagenette(source="200px")


def test_what_is_there_tells_a_part_from_all_of_it(tmp_path):
    data = Imagenette(root=str(tmp_path))
    assert content_of(data) == ""
    example(tmp_path)
    before = content_of(data)
    next((tmp_path / "imagenette2-160/train").rglob("*.JPEG")).unlink()
    assert content_of(data) not in ("", before)


def test_a_broken_folder_is_named(tmp_path):
    example(tmp_path)
    shutil.rmtree(tmp_path / "imagenette2-160/train/n01440764")
    (tmp_path / "imagenette2-160/train/n01440764").mkdir()
    with pytest.raises(DataError, match="is not Imagenette"):
        Imagenette(root=str(tmp_path))("train")
