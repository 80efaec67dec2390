import os

import pytest
from PIL import Image

from semsim.base.errors import DataError
from semsim.base.sets.imports import places_of
from semsim.importers import plan_import
from semsim.importers.import_folder import carry_out
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


def pairs_of(found):
    return {(one.model, pair.image_id): pair for one in found.sets for pair in one.pairs}


def test_what_is_named_as_an_original_beside_reconstructions_is_what_was_attacked(
    tmp_path, draw, reasons
):
    for n in range(2):
        draw(tmp_path / f"clean/p{n}.png", n)
        draw(tmp_path / f"got/m1/p{n}_ori.png", 10 + n)
    draw(tmp_path / "got/m1/p0_rec.png", 20)
    draw(tmp_path / "got/m1/p7_ori.png", 17)
    found = VariantFolders(originals=str(tmp_path / "clean"))(tmp_path / "got", "x")
    pair = pairs_of(found)["m1", "p0"]
    assert (pair.reconstruction.name, pair.attacked.name) == ("p0_rec.png", "p0_ori.png")
    assert reasons(found) == {
        "image p1 of m1": "no reconstruction in the source",
        "image p7 of m1": "no original in the source",
    }


def test_folders_that_are_links_are_read_and_loops_are_named(tmp_path, draw, reasons):
    root = tmp_path / "got"
    draw(root / "m1/p0.png", 1)
    draw(tmp_path / "elsewhere/p0.png", 2)
    draw(tmp_path / "clean/p0.png", 3)
    (root / "m2").symlink_to(tmp_path / "elsewhere")
    (root / "originals").symlink_to(tmp_path / "clean")
    (root / "m1/loop").symlink_to(root)
    found = VariantFolders()(root, "x")
    assert [one.model for one in found.sets] == ["m1", "m2"]
    assert reasons(found) == {"m1/loop": "not an image file"}


def test_an_attack_of_which_nothing_fits_is_lost_and_the_others_stay(tmp_path, draw, reasons):
    for attack, size in (("invgrad", (6, 6)), ("prior", (9, 9))):
        for model in ("m1", "m2"):
            draw(tmp_path / attack / model / "p0.png", 1, size)
    draw(tmp_path / "originals/p0.png", 2)
    found = VariantFolders(attacks="invgrad,prior")(tmp_path, "x")
    assert [(one.attack, one.model) for one in found.sets] == [("invgrad", "m1"), ("invgrad", "m2")]
    assert found.counts["attacks"] == 1
    assert [one[:16] for one in found.lost] == ["Nothing of m1 ca", "Nothing of m2 ca"]
    assert set(reasons(found)) == {"image p0 of m1", "image p0 of m2"}
    (tmp_path / "originals/p0.png").unlink()
    draw(tmp_path / "originals/p0.png", 2, (7, 7))
    with pytest.raises(DataError, match=r"No image has both .* different sizes"):
        VariantFolders(attacks="invgrad,prior")(tmp_path, "x")


def test_a_model_under_two_attacks_is_one_model(tmp_path, draw):
    draw(tmp_path / "originals/p0.png")
    for folder in ("invgrad/m1", "invgrad/m2", "prior/m1", "prior/m2"):
        draw(tmp_path / folder / "p0.png", 1)
    found = VariantFolders(attacks="invgrad,prior")(tmp_path, "x")
    assert (found.counts["models"], found.counts["attacks"], len(found.sets)) == (2, 2, 4)


def test_an_original_that_leads_nowhere_is_left_out_alone(tree, reasons):
    (tree / "original/003.jpg").symlink_to(tree / "gone.jpg")
    found = VariantFolders()(tree, "ats")
    assert [len(one.pairs) for one in found.sets] == [3, 3]
    assert set(reasons(found)) == {"image 003 of rec_", "image 003 of rec_3-1-7+43"}


@pytest.mark.parametrize("apart", ["clean", "../clean", "got/clean"])
def test_originals_elsewhere_may_be_named_from_where_one_is(tmp_path, draw, monkeypatch, apart):
    here = tmp_path / "here"
    draw(here / "got/m1/p0.png", 1)
    monkeypatch.chdir(here)
    draw(here / apart / "p0.png", 2)
    found = VariantFolders(originals=apart)(here / "got", "x")
    assert set(pairs_of(found)) == {("m1", "p0")}
    assert found.unread == ()


def test_a_class_may_be_called_as_originals_are(tmp_path, draw):
    for n, kind in enumerate(("real", "fake")):
        draw(tmp_path / f"got/originals/{kind}/p{n}.png", n)
        draw(tmp_path / f"got/m1/{kind}/p{n}_rec.png", 5 + n)
    found = VariantFolders()(tmp_path / "got", "x")
    classes = {key: pair.class_name for key, pair in pairs_of(found).items()}
    assert classes == {("m1", "p0"): "real", ("m1", "p1"): "fake"}
    (tmp_path / "got/originals").rename(tmp_path / "apart")
    found = VariantFolders(originals=str(tmp_path / "apart"))(tmp_path / "got", "x")
    assert {key: pair.class_name for key, pair in pairs_of(found).items()} == classes


def test_a_folder_around_all_originals_is_no_class(tmp_path, draw):
    draw(tmp_path / "apart/clean/p0.png")
    draw(tmp_path / "got/m1/p0.png", 1)
    found = VariantFolders(originals=str(tmp_path / "apart"))(tmp_path / "got", "x")
    assert pairs_of(found)["m1", "p0"].class_name == "unknown"


def test_a_name_that_is_not_utf8_is_left_out_and_can_be_told(tree, draw, reasons, tmp_path):
    odd = os.fsdecode(b"caf\xe9")
    draw(tree / "rec_" / f"{odd}.png")
    draw(tree / odd / "001.png")
    plan = plan_import("variant-folders", tree, "mine")
    assert reasons(plan.found) == {
        f"{name}.png": "its name is not UTF-8; rename it"
        for name in ("rec_/caf\\udce9", "caf\\udce9/001")
    }
    (made,) = carry_out(plan, places_of("mine", tmp_path / "data"))
    assert "udce9" in (made / "import.json").read_text()


def test_what_is_done_to_pictures_that_are_in_is_told(tree, draw):
    pages = [Image.new("RGB", (6, 6), (n, n, n)) for n in range(2)]
    for folder in ("original", "rec_", "rec_3-1-7+43"):
        pages[0].save(tree / folder / "003.tiff", save_all=True, append_images=pages[1:])
    notes = VariantFolders()(tree, "ats").notes
    few = "image 003 of rec_, image 003 of rec_3-1-7+43"
    assert notes[0] == f"More than one frame or page, of which the first counts: {few}."
    assert "pair task" in notes[1]


def test_attacks_whose_folders_would_be_one_are_refused(tmp_path, draw):
    draw(tmp_path / "originals/p0.png")
    for attack in ("a b", "a_b"):
        draw(tmp_path / attack / "m1/p0.png", 1)
    with pytest.raises(DataError, match="would share a folder"):
        VariantFolders(attacks="a b,a_b")(tmp_path, "x")
