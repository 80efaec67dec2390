import pytest

from semsim.errors import DataError
from semsim.importers.variant_folders import VariantFolders


def example(folder, draw):
    for image in (1, 2):
        draw(folder / f"original/{image}.jpg", image)
        draw(folder / f"m/{image}.jpg", image + 50)
    return folder


@pytest.fixture
def tree(tmp_path, draw):
    root = tmp_path / "ats"
    for index, folder in enumerate(("original", "rec_", "rec_3-1-7+43")):
        for image in ("001", "002"):
            draw(root / folder / f"{image}.jpg", 10 * index + int(image))
    return root


def test_one_set_a_variant_and_only_the_pair_task(tree):
    found = VariantFolders(dataset="cifar100")(tree, "ats")
    assert found.unread == ()
    assert [one.model for one in found.sets] == ["rec_", "rec_3-1-7+43"]
    assert found.sets[0].classes == ("unknown",)
    assert any("pair task" in note for note in found.notes)


def test_classes_come_from_a_table(tree, tmp_path):
    table = tmp_path / "classes.csv"
    table.write_text("image_id,class_name\n001,cat\n002,dog\n003,cow\n")
    found = VariantFolders(classes=table)(tree, "ats")
    assert found.sets[0].classes == ("cat", "dog")
    assert [pair.class_name for pair in found.sets[0].pairs] == ["cat", "dog"]
    assert found.notes == ("Classes of images that are not there: 003.",)


def test_everything_without_a_partner_is_named(tree, draw, reasons):
    draw(tree / "rec_/003.jpg")
    (tree / "rec_3-1-7+43/002.jpg").unlink()
    draw(tree / "rec_/002.png")
    draw(tree / "loose.png")
    (tree / "README.md").touch()
    assert reasons(VariantFolders()(tree, "ats")) == {
        "image 003 of rec_": "no original in the source",
        "image 002 of rec_3-1-7+43": "no reconstruction in the source",
        "rec_/002.png": "002.jpg has its name",
        "loose.png": "not in a folder",
        "README.md": "not an image file",
    }


def test_the_folder_of_originals_has_to_be_there(tree):
    with pytest.raises(DataError, match=r"no folder 'clean'. It has: original, rec_"):
        VariantFolders(originals="clean")(tree, "ats")
