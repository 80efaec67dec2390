import pytest

from semsim.base.errors import DataError
from semsim.importers.model_folders import ModelFolders


def example(folder, draw):
    for image, label in ((1, 0), (2, 1)):
        draw(folder / f"m/{image}_{label}_ori.png", image)
        draw(folder / f"m/{image}_{label}_rec.png", image + 50)
    return folder


@pytest.fixture
def tree(tmp_path, draw):
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


def pairs_of(found, model):
    (one,) = [one for one in found.sets if one.model == model]
    return {pair.image_id: pair for pair in one.pairs}


def test_one_set_a_folder(tree):
    found = ModelFolders(dataset="cifar100")(tree, "x")
    assert found.unread == ()
    assert [one.model for one in found.sets] == ["convnet", "resnet"]
    assert found.sets[0].classes == ("0", "49")
    pair = pairs_of(found, "resnet")["1"]
    assert (pair.original, pair.attacked) == (tree / "resnet/1_49_ori.png", None)
    assert pair.class_name == "49"


def test_with_clean_originals_the_models_own_are_what_was_attacked(tree, clean, draw):
    draw(tree / "resnet/1_49_ori.png", 7)  # augmented: another image than convnet's
    found = ModelFolders(originals=clean)(tree, "x")
    assert found.unread == ()
    pair = pairs_of(found, "resnet")["1"]
    assert pair.original == clean / "1_49_ori.png"
    assert pair.attacked == tree / "resnet/1_49_ori.png"
    assert pairs_of(found, "convnet")["2"].original == clean / "2.png"


def test_originals_that_differ_between_models_are_no_originals(tree, draw, reasons):
    draw(tree / "resnet/1_49_ori.png", 7)
    found = ModelFolders()(tree, "x")
    left = reasons(found)
    assert left.keys() == {"image 1 of resnet", "image 1 of convnet"}
    assert all("--originals" in why for why in left.values())
    assert found.counts["reconstructions"] == 2


def test_a_model_folder_may_hold_the_clean_originals(tree, draw):
    draw(tree / "resnet/1_49_ori.png", 7)
    found = ModelFolders(originals=tree / "convnet")(tree, "x")
    assert found.unread == ()
    assert pairs_of(found, "resnet")["1"].original == tree / "convnet/1_49_ori.png"


def test_originals_may_lie_in_a_folder_named_after_the_model(tree):
    for path in sorted((tree / "resnet").glob("*_ori.png")):
        (tree / "resnet_ori").mkdir(exist_ok=True)
        path.rename(tree / "resnet_ori" / path.name)
    found = ModelFolders()(tree, "x")
    assert found.unread == ()
    assert [one.model for one in found.sets] == ["convnet", "resnet"]


def test_everything_that_does_not_fit_is_named(tree, draw, reasons):
    draw(tree / "resnet/strange.png")
    draw(tree / "resnet/3_1_rec_0_1.png")
    draw(tree / "resnet/1_49_rec.jpg")
    draw(tree / "originals/5_5_ori.png")
    draw(tree / "loose.png")
    (tree / "resnet/metric.npy").touch()
    (tree / "convnet/deep").mkdir()
    (tree / "convnet/2_0_ori.png").unlink()
    draw(tree / "resnet/4_1_ori.png")
    assert reasons(ModelFolders()(tree, "x")) == {
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


def test_an_id_with_two_classes_is_left_out(tree, draw, reasons):
    draw(tree / "convnet/1_7_rec.png")
    found = ModelFolders()(tree, "x")
    assert set(reasons(found).values()) == {"image 1 has the classes 7, 49"}
    assert len(found.unread) == 5
    assert found.counts["originals"] == 1


def test_clean_originals_of_another_class_contradict_too(tree, clean, reasons):
    (clean / "1_49_ori.png").rename(clean / "1_48_ori.png")
    found = ModelFolders(originals=clean)(tree, "x")
    assert set(reasons(found).values()) == {"image 1 has the classes 48, 49"}


def test_classes_beyond_the_list_are_left_out(tree, tmp_path, reasons):
    (tmp_path / "classes.txt").write_text("apple\n")
    found = ModelFolders(classes=tmp_path / "classes.txt")(tree, "x")
    assert found.sets[0].classes == ("apple",)
    assert reasons(found) == {
        f"{model}/1_49_{kind}.png": "the list of classes has no class 49"
        for model in ("convnet", "resnet")
        for kind in ("rec", "ori")
    }


def test_what_one_model_has_and_another_lacks_is_recorded(tree, reasons):
    (tree / "resnet/1_49_ori.png").unlink()
    (tree / "resnet/1_49_rec.png").unlink()
    found = ModelFolders()(tree, "x")
    assert reasons(found) == {"image 1 of resnet": "no reconstruction in the source"}
    assert pairs_of(found, "resnet")["1"].original is None


def test_clean_originals_without_any_reconstruction_are_counted(tree, clean, draw):
    draw(clean / "3.png")
    assert ModelFolders(originals=clean)(tree, "x").notes == (
        "1 of 3 originals has no reconstruction.",
    )


def test_the_folder_of_originals_has_to_be_there(tree):
    with pytest.raises(DataError, match="is not a folder of originals"):
        ModelFolders(originals=tree / "nothing")(tree, "x")


def test_another_tree_is_refused(tmp_path, draw):
    draw(tmp_path / "tree/a/b.png")
    with pytest.raises(DataError, match=r"holds no <model>.* First problem: a/b.png"):
        ModelFolders()(tmp_path / "tree", "x")


def test_an_ori_image_that_leads_nowhere_is_left_out_alone(tree, reasons):
    (tree / "resnet/1_49_ori.png").unlink()
    (tree / "resnet/1_49_ori.png").symlink_to(tree / "gone.png")
    found = ModelFolders()(tree, "x")
    assert list(reasons(found)) == ["image 1 of resnet"]
    assert pairs_of(found, "convnet")["1"].error == ""
