import pytest

from semsim.base.errors import DataError
from semsim.importers.train_with_ori import TrainWithOri


def example(folder, draw):
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


def test_everything_that_does_not_fit_is_named(released, draw, reasons):
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


def test_another_tree_is_refused(tmp_path, draw):
    with pytest.raises(DataError, match="is not a folder"):
        TrainWithOri()(tmp_path / "nothing", "paper")
    draw(tmp_path / "tree/a/b.png")
    with pytest.raises(DataError, match=r"holds no <id>.* First problem: a/b.png"):
        TrainWithOri()(tmp_path / "tree", "paper")
