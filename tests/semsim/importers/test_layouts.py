"""The four layouts of folders of pictures: what is read, what is left out and why, what is kept."""

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
from semsim.importers.layouts import ModelFolders, TrainWithOri, VariantFolders


def example(importer, folder, draw):
    """A small source of any of the four."""
    made = {TrainWithOri: example_of_ids, ModelFolders: example_of_models}
    made[VariantFolders] = example_of_variants
    return made.get(type(importer), example_of_classes)(folder, draw)


def example_of_ids(folder, draw):
    """Two originals, two models: image 7 (class 3) and 12 (class 0).

    Recognisable are 7 by model 1 and 12 by both.
    """
    root = folder / "train_with_ori"
    draw(root / "7/7_3_ori.png", 7)
    draw(root / "7/7_3_rec_0_1.png", 71)
    draw(root / "-7/7_3_rec_3_2.png", 72)
    draw(root / "12/12_0_ori.png", 12)
    draw(root / "12/12_0_rec_1_1.png", 121)
    draw(root / "12/12_0_rec_2_2.png", 122)
    return root


def labels_of(found):
    keys = zip(found.tables.labels["model"], found.tables.labels["image_id"], strict=True)
    return dict(zip(keys, found.tables.labels["human:released"], strict=True))


def test_one_set_a_model_and_the_released_label(released):
    found = TrainWithOri()(released, "paper")
    assert found.unread == ()
    assert [one.model for one in found.sets] == ["model-01", "model-02"]
    assert labels_of(found) == {
        ("model-01", "7"): True,
        ("model-02", "7"): False,
        ("model-01", "12"): True,
        ("model-02", "12"): True,
    }
    assert found.tables.labels["human:released"].dtype == "boolean"
    assert found.sets[0].classes == ("0", "3")
    assert found.counts["released as recognisable"] == 3
    assert found.counts["released as unrecognisable"] == 1


def test_the_released_label_is_the_headline_and_what_semsim_learns(released):
    labels = TrainWithOri()(released, "paper").tables.labels
    assert labels["recognisable"].tolist() == labels["human:released"].tolist()
    assert set(labels["headline"]) == {"released"}
    assert (labels["n_votes"] == 0).all()
    assert labels["mean_response"].isna().all()


def test_the_folder_around_the_tree_will_do_and_others_are_counted(released, draw):
    draw(released.parent / "others/9.png")
    found = TrainWithOri()(released.parent, "paper")
    assert found.counts["reconstructions"] == 4
    assert any("others/" in note and "1 file" in note for note in found.notes)


def test_names_of_models_and_classes_come_from_lists(released, tmp_path):
    models, classes = tmp_path / "folders.txt", tmp_path / "classes.txt"
    models.write_text("ResNet20\nConvNet\n")
    classes.write_text("apple\nfish\nbaby\nbear\n")
    found = TrainWithOri(folder_names=models, classes=classes)(released, "paper")
    assert [one.model for one in found.sets] == ["ConvNet", "ResNet20"]
    assert found.sets[0].classes == ("apple", "fish", "baby", "bear")
    assert {pair.image_id: pair.class_name for pair in found.sets[0].pairs} == {
        "12": "apple",
        "7": "bear",
    }
    assert found.tables.labels["class_name"].tolist() == ["apple", "bear", "apple", "bear"]


def test_lists_that_are_too_short_leave_out_what_they_do_not_name(released, tmp_path, reasons):
    models, classes = tmp_path / "folders.txt", tmp_path / "classes.txt"
    models.write_text("ResNet20\n")
    classes.write_text("apple\nfish\n")
    left = reasons(TrainWithOri(folder_names=models, classes=classes)(released, "paper"))
    assert left["12/12_0_rec_2_2.png"] == "the list of models has no line 2"
    assert left["7/7_3_ori.png"] == "the list of classes has no class 3"


def test_everything_in_a_tree_of_ids_that_does_not_fit_is_named(released, draw, reasons):
    draw(released / "7/7_3_rec_2.png")
    draw(released / "7/8_3_rec_0_1.png")
    draw(released / "12/12_5_rec_0_3.png")
    draw(released / "99/99_1_rec_0_1.png")
    draw(released / "loose.png")
    draw(released / "7/deep/7_3_rec_0_3.png")
    draw(released / "7/7_3_ori.jpg")
    (released / "7/notes.txt").touch()
    (released / ".DS_Store").touch()
    found = TrainWithOri()(released, "paper")
    assert {where: why.split(";")[0] for where, why in reasons(found).items()} == {
        "7/7_3_rec_2.png": "expected <id>_<label>_ori or <id>_<label>_rec_<k>_<m> as its name",
        "7/8_3_rec_0_1.png": "is of image 8, in the wrong folder",
        "12/12_5_rec_0_3.png": "says class 5, its original 0",
        "99/99_1_rec_0_1.png": "its original is missing",
        "loose.png": "not in a folder",
        "7/deep": "a folder in a folder",
        "7/7_3_ori.png": "7/7_3_ori.jpg is an original of it already",
        "7/notes.txt": "not an image file",
    }
    assert found.notes == ("1 hidden file was not looked at.",)
    assert found.counts["reconstructions"] == 4


def test_an_image_in_both_folders_has_no_label(released, draw, reasons):
    draw(released / "-7/7_3_rec_3_1.png")
    found = TrainWithOri()(released, "paper")
    left = reasons(found)
    assert left["7/7_3_rec_0_1.png"] == "the same model and image as -7/7_3_rec_3_1.png"
    assert left["-7/7_3_rec_3_1.png"] == "the same model and image as 7/7_3_rec_0_1.png"
    assert left["image 7 of model-01"] == "no reconstruction in the source"
    assert ("model-01", "7") not in labels_of(found)
    (failed,) = [pair for pair in found.sets[0].pairs if pair.error]
    assert failed.image_id == "7"


def test_a_missing_reconstruction_is_recorded_as_such(released, reasons):
    (released / "12/12_0_rec_2_2.png").unlink()
    found = TrainWithOri()(released, "paper")
    assert reasons(found) == {"image 12 of model-02": "no reconstruction in the source"}
    assert found.counts["failed or missing"] == 1


def test_a_broken_image_has_no_label(released, reasons):
    (released / "-7/7_3_rec_3_2.png").write_bytes(b"broken")
    found = TrainWithOri()(released, "paper")
    assert "not a readable image" in reasons(found)["image 7 of model-02"]
    assert ("model-02", "7") not in labels_of(found)


def example_of_models(folder, draw):
    for image, label in ((1, 0), (2, 1)):
        draw(folder / f"m/{image}_{label}_ori.png", image)
        draw(folder / f"m/{image}_{label}_rec.png", image + 50)
    return folder


@pytest.fixture
def models(tmp_path, draw):
    """Two models, two originals; both models have the same _ori images."""
    root = tmp_path / "models"
    for index, model in enumerate(("resnet", "convnet")):
        for image, label in ((1, 49), (2, 0)):
            draw(root / model / f"{image}_{label}_ori.png", image)
            draw(root / model / f"{image}_{label}_rec.png", 10 * index + image + 50)
    return root


@pytest.fixture
def clean(tmp_path, draw):
    draw(tmp_path / "clean/1_49_ori.png", 101)
    draw(tmp_path / "clean/2.png", 102)
    return tmp_path / "clean"


def pairs_of_model(found, model):
    (one,) = [one for one in found.sets if one.model == model]
    return {pair.image_id: pair for pair in one.pairs}


def test_one_set_a_folder(models):
    found = ModelFolders(dataset="cifar100")(models, "x")
    assert found.unread == ()
    assert [one.model for one in found.sets] == ["convnet", "resnet"]
    assert found.sets[0].classes == ("0", "49")
    pair = pairs_of_model(found, "resnet")["1"]
    assert (pair.original, pair.attacked) == (models / "resnet/1_49_ori.png", None)
    assert pair.class_name == "49"


def test_with_clean_originals_the_models_own_are_what_was_attacked(models, clean, draw):
    draw(models / "resnet/1_49_ori.png", 7)  # augmented: another image than convnet's
    found = ModelFolders(originals=clean)(models, "x")
    assert found.unread == ()
    pair = pairs_of_model(found, "resnet")["1"]
    assert pair.original == clean / "1_49_ori.png"
    assert pair.attacked == models / "resnet/1_49_ori.png"
    assert pairs_of_model(found, "convnet")["2"].original == clean / "2.png"


def test_originals_that_differ_between_models_are_no_originals(models, draw, reasons):
    draw(models / "resnet/1_49_ori.png", 7)
    found = ModelFolders()(models, "x")
    left = reasons(found)
    assert left.keys() == {"image 1 of resnet", "image 1 of convnet"}
    assert all("--originals" in why for why in left.values())
    assert found.counts["reconstructions"] == 2


def test_a_model_folder_may_hold_the_clean_originals(models, draw):
    draw(models / "resnet/1_49_ori.png", 7)
    found = ModelFolders(originals=models / "convnet")(models, "x")
    assert found.unread == ()
    assert pairs_of_model(found, "resnet")["1"].original == models / "convnet/1_49_ori.png"


def test_originals_may_lie_in_a_folder_named_after_the_model(models):
    for path in sorted((models / "resnet").glob("*_ori.png")):
        (models / "resnet_ori").mkdir(exist_ok=True)
        path.rename(models / "resnet_ori" / path.name)
    found = ModelFolders()(models, "x")
    assert found.unread == ()
    assert [one.model for one in found.sets] == ["convnet", "resnet"]


def test_everything_in_folders_of_models_that_does_not_fit_is_named(models, draw, reasons):
    draw(models / "resnet/strange.png")
    draw(models / "resnet/3_1_rec_0_1.png")
    draw(models / "resnet/1_49_rec.jpg")
    draw(models / "originals/5_5_ori.png")
    draw(models / "loose.png")
    (models / "resnet/metric.npy").touch()
    (models / "convnet/deep").mkdir()
    (models / "convnet/2_0_ori.png").unlink()
    draw(models / "resnet/4_1_ori.png")
    assert reasons(ModelFolders()(models, "x")) == {
        "resnet/strange.png": "expected <id>_<label>_rec or <id>_<label>_ori as its name",
        "resnet/3_1_rec_0_1.png": "expected <id>_<label>_rec or <id>_<label>_ori as its name",
        "resnet/1_49_rec.png": "resnet/1_49_rec.jpg is the same image",
        "originals": "holds no <id>_<label>_rec image",
        "loose.png": "not in a folder",
        "resnet/metric.npy": "not an image file",
        "convnet/deep": "a folder in a folder",
        "image 2 of convnet": "no original in the source",
        "image 4 of resnet": "no reconstruction in the source",
    }


def test_an_id_with_two_classes_is_left_out(models, draw, reasons):
    draw(models / "convnet/1_7_rec.png")
    found = ModelFolders()(models, "x")
    assert set(reasons(found).values()) == {"image 1 has the classes 7, 49"}
    assert len(found.unread) == 5
    assert found.counts["originals"] == 1


def test_clean_originals_of_another_class_contradict_too(models, clean, reasons):
    (clean / "1_49_ori.png").rename(clean / "1_48_ori.png")
    found = ModelFolders(originals=clean)(models, "x")
    assert set(reasons(found).values()) == {"image 1 has the classes 48, 49"}


def test_classes_beyond_the_list_are_left_out(models, tmp_path, reasons):
    (tmp_path / "classes.txt").write_text("apple\n")
    found = ModelFolders(classes=tmp_path / "classes.txt")(models, "x")
    assert found.sets[0].classes == ("apple",)
    assert reasons(found) == {
        f"{model}/1_49_{kind}.png": "the list of classes has no class 49"
        for model in ("convnet", "resnet")
        for kind in ("rec", "ori")
    }


def test_what_one_model_has_and_another_lacks_is_recorded(models, reasons):
    (models / "resnet/1_49_ori.png").unlink()
    (models / "resnet/1_49_rec.png").unlink()
    found = ModelFolders()(models, "x")
    assert reasons(found) == {"image 1 of resnet": "no reconstruction in the source"}
    assert pairs_of_model(found, "resnet")["1"].original is None


def test_clean_originals_without_any_reconstruction_are_counted(models, clean, draw):
    draw(clean / "3.png")
    assert ModelFolders(originals=clean)(models, "x").notes == (
        "1 of 3 originals has no reconstruction.",
    )


def test_the_folder_of_clean_originals_has_to_be_there(models):
    with pytest.raises(DataError, match="nothing does not exist"):
        ModelFolders(originals=models / "nothing")(models, "x")


@pytest.mark.parametrize(
    ("importer", "holds"), [(TrainWithOri(), "no <id>"), (ModelFolders(), "no <model>")]
)
def test_another_tree_is_refused(tmp_path, draw, importer, holds):
    with pytest.raises(DataError, match="nothing does not exist"):
        importer(tmp_path / "nothing", "paper")
    draw(tmp_path / "tree/a/b.png")
    with pytest.raises(DataError, match=rf"holds {holds}.* First problem: a/b.png"):
        importer(tmp_path / "tree", "paper")


def test_an_ori_image_that_leads_nowhere_is_left_out_alone(models, reasons):
    (models / "resnet/1_49_ori.png").unlink()
    (models / "resnet/1_49_ori.png").symlink_to(models / "gone.png")
    found = ModelFolders()(models, "x")
    assert list(reasons(found)) == ["image 1 of resnet"]
    assert pairs_of_model(found, "convnet")["1"].error == ""


def example_of_variants(folder, draw):
    for image in (1, 2):
        draw(folder / f"original/{image}.jpg", image)
        draw(folder / f"m/{image}.jpg", image + 50)
    return folder


@pytest.fixture
def variants(tmp_path, draw):
    root = tmp_path / "ats"
    for index, folder in enumerate(("original", "rec_", "rec_3-1-7+43")):
        for image in ("001", "002"):
            draw(root / folder / f"{image}.jpg", 10 * index + int(image))
    return root


def test_one_set_a_variant_and_only_the_pair_task(variants):
    found = VariantFolders(dataset="cifar100")(variants, "ats")
    assert found.unread == ()
    assert [one.model for one in found.sets] == ["rec_", "rec_3-1-7+43"]
    assert found.sets[0].classes == ()
    assert {pair.class_name for pair in found.sets[0].pairs} == {""}
    (note,) = found.notes
    assert note.startswith("No class names found: ")
    assert "pair task" in note


def test_classes_come_from_a_table(variants, tmp_path):
    table = tmp_path / "classes.csv"
    table.write_text("image_id,class_name\n001,cat\n002,dog\n003,cow\n")
    found = VariantFolders(classes=table)(variants, "ats")
    assert found.sets[0].classes == ("cat", "dog")
    assert [pair.class_name for pair in found.sets[0].pairs] == ["cat", "dog"]
    assert found.notes == ("Classes of images that are not there: 003.",)
    table.write_text("image_id,class_name\n001,cat\n")
    found = VariantFolders(classes=table)(variants, "ats")
    assert found.sets[0].classes == ("cat",)
    assert found.notes[0].startswith("The class of 1 of 2 originals is not known: ")


def test_everything_without_a_partner_is_named(variants, draw, reasons):
    draw(variants / "rec_/003.jpg")
    (variants / "rec_3-1-7+43/002.jpg").unlink()
    draw(variants / "rec_/002.png")
    draw(variants / "loose.png")
    (variants / "README.md").touch()
    assert reasons(VariantFolders()(variants, "ats")) == {
        "image 003 of rec_": "no original in the source",
        "image 002 of rec_3-1-7+43": "no reconstruction in the source",
        "rec_/002.png": "002.jpg has its name",
        "loose.png": "not in a folder",
        "README.md": "not an image file",
    }


def test_the_folder_of_originals_has_to_be_there(variants):
    with pytest.raises(DataError, match=r"no folder 'clean'. It has: original, rec_"):
        VariantFolders(originals="clean")(variants, "ats")


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


def test_an_original_that_leads_nowhere_is_left_out_alone(variants, reasons):
    (variants / "original/003.jpg").symlink_to(variants / "gone.jpg")
    found = VariantFolders()(variants, "ats")
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
    assert pairs_of(found)["m1", "p0"].class_name == ""


def test_a_name_that_is_not_utf8_is_left_out_and_can_be_told(variants, draw, reasons, tmp_path):
    odd = os.fsdecode(b"caf\xe9")
    draw(variants / "rec_" / f"{odd}.png")
    draw(variants / odd / "001.png")
    plan = plan_import("variant-folders", variants, "mine")
    assert reasons(plan.found) == {
        f"{name}.png": "its name is not UTF-8; rename it"
        for name in ("rec_/caf\\udce9", "caf\\udce9/001")
    }
    (made,) = carry_out(plan, places_of("mine", tmp_path / "data"))
    assert "udce9" in (made / "import.json").read_text()


def test_what_is_done_to_pictures_that_are_in_is_told(variants, draw):
    pages = [Image.new("RGB", (6, 6), (n, n, n)) for n in range(2)]
    for folder in ("original", "rec_", "rec_3-1-7+43"):
        pages[0].save(variants / folder / "003.tiff", save_all=True, append_images=pages[1:])
    notes = VariantFolders()(variants, "ats").notes
    few = "image 003 of rec_, image 003 of rec_3-1-7+43"
    assert notes[0] == f"More than one frame or page, of which the first counts: {few}."
    assert "pair task" in notes[1]


def test_attacks_whose_folders_would_be_one_are_refused(tmp_path, draw):
    draw(tmp_path / "originals/p0.png")
    for attack in ("a b", "a_b"):
        draw(tmp_path / attack / "m1/p0.png", 1)
    with pytest.raises(DataError, match="would share a folder"):
        VariantFolders(attacks="a b,a_b")(tmp_path, "x")


def example_of_classes(folder, draw):
    for number in range(12):
        draw(folder / ("cat", "dog", "my cow")[number % 3] / f"{number}.png", number, (6, 8))
    return folder


@pytest.fixture
def kinds(tmp_path, draw):
    return example_of_classes(tmp_path / "mine", draw)


def test_what_is_kept_is_what_the_data_set_reads(kinds, tmp_path):
    (kinds / "cat" / "broken.png").write_bytes(b"no picture")
    (kinds / "notes.txt").write_text("x")
    plan = plan_import(AUTO, kinds, "mine")
    assert plan.kind == "class-folders"
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
        assert (made / path.relative_to(kinds)).read_bytes() == path.read_bytes()
    train, test = (len(parts[split].ids) for split in SPLITS)
    notes = plan.found.notes
    assert f"{train} pictures to train targets on; {test} " in notes[0]
    assert notes[0].endswith(" to attack, unless you choose another share than 0.2.")
    become = "each becomes 32×32, whatever its shape, or the size that you choose"
    assert notes[1] == f"They are 8×6 pixels; {become}."


def test_the_smallest_and_the_largest_are_told_by_their_pixels(kinds, draw):
    draw(kinds / "cat/wide.png", 1, (5, 500))
    draw(kinds / "cat/small.png", 1, (20, 2))
    assert (
        "They are 2×20 to 500×5 pixels; "
        in plan_import("class-folders", kinds, "mine").found.notes[1]
    )


def test_train_and_test_are_told_from_classes(kinds, tmp_path):
    for split, kind in (("train", "cat"), ("train", "dog"), ("test", "dog")):
        shutil.copytree(kinds / kind, tmp_path / "parted" / split / kind)
    shutil.copytree(kinds / "dog", tmp_path / "parted" / "val" / "dog")
    (tmp_path / "parted" / "train" / "list.csv").write_text("x")
    plan = plan_import("class-folders", tmp_path / "parted", "mine")
    assert dict(plan.found.counts) == {"pictures": 12, "classes": 2}
    assert plan.found.notes[0] == (
        "8 pictures to train targets on; 4 pictures to test them on and to attack."
    )
    left = {one.where: one.why for one in plan.found.unread}
    assert left == {"val": "beside train and test", "train/list.csv": "not an image file"}


def test_pictures_of_32_pixels_are_not_said_to_be_brought_to_another_size(tmp_path, draw):
    for number in range(12):
        draw(tmp_path / "mine" / "ab"[number % 2] / f"{number}.png", number, (32, 32))
    assert len(plan_import("class-folders", tmp_path / "mine", "mine").found.notes) == 1


def test_of_two_that_would_be_called_the_same_the_first_is_taken(kinds, tmp_path):
    with Image.open(kinds / "cat/0.png") as picture:
        picture.save(kinds / "cat/0.bmp")
    plan = plan_import("class-folders", kinds, "mine")
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
def test_what_is_of_an_attack_or_cannot_be_told_apart_is_none(kinds, draw, change, says):
    change(kinds, draw)
    with pytest.raises(DataError, match=says):
        plan_import("class-folders", kinds, "mine")


def test_words_that_any_picture_may_have_in_its_name_are_none_of_an_attack(kinds, draw):
    draw(kinds / "cat/face-real.png", 1, (6, 8))
    assert plan_import("class-folders", kinds, "mine").found.counts["pictures"] == 13


def test_without_any_to_attack_it_says_how_to_lay_them(tmp_path, draw):
    for kind in "ab":
        draw(tmp_path / f"mine/{kind}/{kind}.png")
    with pytest.raises(DataError, match=r"share of 0\.2 .* is for tests: add images"):
        plan_import("class-folders", tmp_path / "mine", "mine")


def test_whoever_reads_them_as_reconstructions_goes_before(kinds, draw):
    for number in range(3):
        draw(kinds / "net" / f"{number}.png", 50 + number, (6, 8))
    draw(kinds / "net" / "stray.png")  # which the other leaves out
    shutil.copytree(kinds / "net", kinds.parent / "clean")
    plan = plan_import(AUTO, kinds, "mine", {"originals": kinds.parent / "clean"})
    assert plan.kind == "variant-folders"
    assert plan.refusals["class-folders"] == "takes no originals that lie apart"
    (kinds / "net").rename(kinds / "originals")
    assert plan_import(AUTO, kinds, "mine").kind == "variant-folders"


def test_what_was_kept_is_listed_and_what_is_broken_says_so(kinds, tmp_path):
    data = tmp_path / "data"
    carry_out(plan_import("class-folders", kinds, "mine"), places_of("mine", data))
    (data / "pictures/odd").mkdir()
    mine, odd = list_pictures(data).values()
    assert (mine.name, mine.count("pictures"), mine.count("classes")) == ("mine", 12, 3)
    assert "import.json is missing" in odd.problem
    path = data / "pictures/mine/import.json"
    path.write_text(path.read_text().replace('"pictures": 12', '"pictures": null'))
    assert "expected a number by name" in next(iter(list_pictures(data).values())).problem


def test_a_misnamed_picture_and_what_macs_leave_do_not_hinder_the_others(kinds, draw):
    draw(kinds / "cat" / os.fsdecode(b"\xe9.png"))
    draw(kinds / "__MACOSX/1.png")
    draw(kinds / ".thumbnails/1.png")
    found = plan_import("class-folders", kinds, "mine").found
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
