"""Which studies ask about a set, so that nobody deletes it."""

import json

import pytest
from study_factory import picture, save_png, small_sets, small_study, write_set

from annotation.images import path_of
from annotation.study.sets import read_set, sets_of, users_of


@pytest.fixture
def study(store, tmp_path):
    small_sets(tmp_path / "sets")
    return small_study(store, tmp_path, name="Asked")


def test_a_study_is_known_by_its_set(store, tmp_path, study):
    images, folder = tmp_path / "images", tmp_path / "sets/convnet8"
    assert users_of(store, images, folder) == ["Asked"]
    small_study(store, tmp_path / "more", name="Another")
    assert users_of(store, images, folder) == ["Another", "Asked"]


def test_a_set_of_the_same_names_with_other_pictures_is_another(store, tmp_path, study):
    folder = write_set(tmp_path / "other/convnet8", model="convnet8")
    images = tmp_path / "images"
    assert users_of(store, images, folder) == ["Asked"]
    for number, path in enumerate(sorted((folder / "reconstructions").iterdir())):
        save_png(path, picture(900 + number))
    assert users_of(store, images, folder) == []


def test_a_study_whose_own_copy_is_gone_still_counts(store, tmp_path, study):
    images = tmp_path / "images"
    for path in images.glob("*.png"):
        path.unlink()
    assert path_of(images, "x").parent == images
    assert users_of(store, images, tmp_path / "sets/convnet8") == ["Asked"]


def test_a_study_is_made_of_the_set_that_shows_what_it_shows(store, tmp_path, study):
    images, other = tmp_path / "images", write_set(tmp_path / "other", model="convnet8", noise=90)
    known = {"its own": read_set(tmp_path / "sets/convnet8"), "another": read_set(other)}
    found = sets_of(store, images, study, known)
    assert found == {"resnet20-4": [], "convnet8": ["its own"]}
    (tmp_path / "sets/convnet8/reconstructions/image-000.png").unlink()
    assert sets_of(store, images, study, known)["convnet8"] == []
    for path in images.glob("*.png"):
        path.unlink()
    whole = {**known, "its own": read_set(tmp_path / "sets/resnet20-4"), "third": known["another"]}
    assert sets_of(store, images, study, whole)["convnet8"] == ["another", "third"]


def test_nobody_asks_about_what_cannot_be_read_or_has_another_name(store, tmp_path, study):
    folder = tmp_path / "sets/convnet8"
    run = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**run, "model": "another"}))
    assert users_of(store, tmp_path / "images", folder) == []
    (folder / "run.json").write_text("{")
    assert users_of(store, tmp_path / "images", folder) == []
