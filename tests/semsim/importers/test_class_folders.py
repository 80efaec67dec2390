"""Pictures that nobody has attacked yet: what is read, left out, kept, and attacked from there."""

import os
import shutil

import pytest
from PIL import Image

from semsim.base.errors import DataError
from semsim.base.sets.imports import list_pictures, places_of
from semsim.base.storage.folders import SPLITS
from semsim.datasets import DATASETS
from semsim.datasets.folder import Folder
from semsim.importers import AUTO, plan_import
from semsim.importers.import_folder import carry_out

KIND = "class-folders"


def example(folder, draw):
    for number in range(12):
        draw(folder / ("cat", "dog", "my cow")[number % 3] / f"{number}.png", number, (6, 8))
    return folder


@pytest.fixture
def tree(tmp_path, draw):
    return example(tmp_path / "mine", draw)


def test_what_is_kept_is_what_the_data_set_reads(tree, tmp_path):
    (tree / "cat" / "broken.png").write_bytes(b"no picture")
    (tree / "notes.txt").write_text("x")
    plan = plan_import(AUTO, tree, "mine")
    assert plan.kind == KIND
    assert dict(plan.found.counts) == {"pictures": 12, "classes": 3}
    left = {one.where: one.why for one in plan.found.unread}
    assert set(left) == {"notes.txt", "cat/broken.png"}
    assert "not a readable image" in left["cat/broken.png"]
    assert not plan.complete
    (made,) = carry_out(plan, places_of("mine", tmp_path / "data"))
    assert made == (tmp_path / "data/pictures/mine").resolve()
    data = Folder(root=str(made), size=6)
    parts = {split: data(split) for split in SPLITS}
    assert sorted(one for part in parts.values() for one in part.ids) == sorted(
        f"{('cat', 'dog', 'my cow')[n % 3]}-{n}" for n in range(12)
    )
    assert {part.classes for part in parts.values()} == {("cat", "dog", "my cow")}
    for path in plan.found.pictures.paths:
        assert (made / path.relative_to(tree)).read_bytes() == path.read_bytes()
    train, test = (len(parts[split].ids) for split in SPLITS)
    notes = plan.found.notes
    assert f"{train} pictures to train targets on; {test} " in notes[0]
    assert notes[0].endswith(" to attack, unless you choose another share than 0.2.")
    become = "each becomes 32×32, whatever its shape, or the size that you choose"
    assert notes[1] == f"They are 8×6 pixels; {become}."


def test_the_smallest_and_the_largest_are_told_by_their_pixels(tree, draw):
    draw(tree / "cat/wide.png", 1, (5, 500))
    draw(tree / "cat/small.png", 1, (20, 2))
    assert "They are 2×20 to 500×5 pixels; " in plan_import(KIND, tree, "mine").found.notes[1]


def test_train_and_test_are_told_from_classes(tree, tmp_path):
    for split, kind in (("train", "cat"), ("train", "dog"), ("test", "dog")):
        shutil.copytree(tree / kind, tmp_path / "parted" / split / kind)
    shutil.copytree(tree / "dog", tmp_path / "parted" / "val" / "dog")
    (tmp_path / "parted" / "train" / "list.csv").write_text("x")
    plan = plan_import(KIND, tmp_path / "parted", "mine")
    assert dict(plan.found.counts) == {"pictures": 12, "classes": 2}
    assert plan.found.notes[0] == (
        "8 pictures to train targets on; 4 pictures to test them on and to attack."
    )
    left = {one.where: one.why for one in plan.found.unread}
    assert left == {"val": "beside train and test", "train/list.csv": "not an image file"}


def test_pictures_of_32_pixels_are_not_said_to_be_brought_to_another_size(tmp_path, draw):
    for number in range(12):
        draw(tmp_path / "mine" / "ab"[number % 2] / f"{number}.png", number, (32, 32))
    assert len(plan_import(KIND, tmp_path / "mine", "mine").found.notes) == 1


def test_of_two_that_would_be_called_the_same_the_first_is_taken(tree, tmp_path):
    with Image.open(tree / "cat/0.png") as picture:
        picture.save(tree / "cat/0.bmp")
    plan = plan_import(KIND, tree, "mine")
    assert [str(one) for one in plan.found.unread] == [
        "cat/0.png: it would be called as cat/0.bmp is"
    ]
    (made,) = carry_out(plan, places_of("mine", tmp_path / "data"))
    assert DATASETS["folder"](root=str(made), size=6)("train").ids  # which refuses two of one name


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda tree, draw: draw(tree / "originals/0.png"), "has a folder originals"),
        (lambda tree, draw: draw(tree / "Recs/0.png"), "has a folder Recs"),
        (lambda tree, draw: draw(tree / "cat/0_1_rec.png"), "named as a picture of an attack"),
        (lambda tree, draw: draw(tree / "cat/a_rec.png"), "named as a picture of an attack"),
        (lambda tree, draw: draw(tree / "cat/a-Recon.png"), "named as a picture of an attack"),
        (lambda tree, draw: [shutil.rmtree(tree / one) for one in ("dog", "my cow")], "1 class"),
        (lambda tree, draw: shutil.rmtree(tree) or draw(tree / "0.png"), "0 classes"),
    ],
)
def test_what_is_of_an_attack_or_cannot_be_told_apart_is_none(tree, draw, change, says):
    change(tree, draw)
    with pytest.raises(DataError, match=says):
        plan_import(KIND, tree, "mine")


def test_words_that_any_picture_may_have_in_its_name_are_none_of_an_attack(tree, draw):
    draw(tree / "cat/face-real.png", 1, (6, 8))
    assert plan_import(KIND, tree, "mine").found.counts["pictures"] == 13


def test_without_any_to_attack_it_says_how_to_lay_them(tmp_path, draw):
    for kind in "ab":
        draw(tmp_path / f"mine/{kind}/{kind}.png")
    with pytest.raises(DataError, match=r"share of 0\.2 .* is for tests: add images"):
        plan_import(KIND, tmp_path / "mine", "mine")


def test_whoever_reads_them_as_reconstructions_goes_before(tree, draw):
    for number in range(3):
        draw(tree / "net" / f"{number}.png", 50 + number, (6, 8))
    draw(tree / "net" / "stray.png")  # which the other leaves out
    shutil.copytree(tree / "net", tree.parent / "clean")
    plan = plan_import(AUTO, tree, "mine", {"originals": tree.parent / "clean"})
    assert plan.kind == "variant-folders"
    assert plan.refusals[KIND] == "takes no originals that lie apart"
    (tree / "net").rename(tree / "originals")
    assert plan_import(AUTO, tree, "mine").kind == "variant-folders"


def test_what_was_kept_is_listed_and_what_is_broken_says_so(tree, tmp_path):
    data = tmp_path / "data"
    carry_out(plan_import(KIND, tree, "mine"), places_of("mine", data))
    (data / "pictures/odd").mkdir()
    mine, odd = list_pictures(data).values()
    assert (mine.name, mine.count("pictures"), mine.count("classes")) == ("mine", 12, 3)
    assert "import.json is missing" in odd.problem
    path = data / "pictures/mine/import.json"
    path.write_text(path.read_text().replace('"pictures": 12', '"pictures": null'))
    assert "expected a number by name" in next(iter(list_pictures(data).values())).problem


def test_a_misnamed_picture_and_what_macs_leave_do_not_hinder_the_others(tree, draw):
    draw(tree / "cat" / os.fsdecode(b"\xe9.png"))
    draw(tree / "__MACOSX/1.png")
    draw(tree / ".thumbnails/1.png")
    found = plan_import(KIND, tree, "mine").found
    assert found.pictures.classes == ("cat", "dog", "my cow")
    assert [one.where for one in found.unread] == ["cat/\\udce9.png"]


def test_two_forms_of_a_name_are_one_class_for_the_importer_and_the_data_set(tmp_path, draw):
    for number, name in enumerate(("B\u00e4r", "Ba\u0308r", "Hund", "HUND")):
        for more in range(6):
            draw(tmp_path / f"mine/{name}/{number}{more}.png", number)
    found = plan_import(AUTO, tmp_path / "mine", "mine").found
    assert dict(found.counts) == {"pictures": 24, "classes": 2}
    assert "are one class" in " ".join(found.notes)
    data = Folder(root=str(tmp_path / "mine"), size=6)
    assert [len(data(split).classes) for split in SPLITS] == [2, 2]
    assert sum(len(data(split).ids) for split in SPLITS) == 24
