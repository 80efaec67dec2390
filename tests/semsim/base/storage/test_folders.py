"""Contents of a folder that somebody hands over, without what systems leave there."""

from pathlib import PurePath

import pytest

from semsim.base.storage.folders import files_below, is_hidden, shown, splits_in


def put(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def test_files_below_links_are_found_once_a_way_and_without_end(tmp_path):
    for name in "ab":
        put(tmp_path / f"tree/{name}/1.png")
    (tmp_path / "tree/a/to-b").symlink_to(tmp_path / "tree/b")
    (tmp_path / "tree/b/to-a").symlink_to(tmp_path / "tree/a")
    (tmp_path / "tree/up").symlink_to(tmp_path)
    (tmp_path / "tree/gone").symlink_to(tmp_path / "nothing")
    assert [
        path.relative_to(tmp_path / "tree").as_posix()
        for path in files_below(tmp_path / "tree").paths
    ] == [
        *("a/1.png", "a/to-b/1.png", "a/to-b/to-a"),
        *("b/1.png", "b/to-a/1.png", "b/to-a/to-b"),
        *("gone", "up"),
    ]


@pytest.mark.parametrize(
    "left",
    [
        *(
            "a/.ipynb_checkpoints/1-checkpoint.png",
            "__MACOSX/a/._1.png",
            "a/.DS_Store",
            "a/Thumbs.db",
        ),
        *("a/DESKTOP.INI", ".git/objects/1.png", "@eaDir/1.png", "$RECYCLE.BIN/1.png", "a/._1.png"),
        *("~$votes.xlsx", "#recycle/1.png", "@Recycle/1.png", "Network Trash Folder/1.png"),
    ],
)
def test_what_systems_leave_is_no_file(tmp_path, left):
    put(tmp_path / "a/1.png")
    put(tmp_path / left)
    assert is_hidden(PurePath(left))
    assert files_below(tmp_path) == ([tmp_path / "a/1.png"], 1)
    assert tmp_path / left not in shown(tmp_path, "*") + shown(tmp_path, "*/*")


@pytest.mark.parametrize(
    ("train", "test"),
    [
        *(("train", "test"), ("Train", "Test"), ("TRAINING", "Validation"), ("train", "val")),
        *(("train_set", "test-set"), ("train2017", "val2017"), ("training data", "dev")),
        *(("imgs_train", "images-val"), ("01_train", "02_test"), ("Train", "val.")),
    ],
)
def test_splits_have_many_names(tmp_path, train, test):
    for name in (train, test):
        (tmp_path / name).mkdir()
    assert splits_in(tmp_path) == {"train": tmp_path / train, "test": tmp_path / test}


def test_with_three_parts_tests_are_those_called_so(tmp_path):
    for name in ("val", "train", "test"):
        (tmp_path / name).mkdir()
    assert splits_in(tmp_path) == {"train": tmp_path / "train", "test": tmp_path / "test"}


def test_classes_are_no_splits(tmp_path):
    for name in ("train", "plane"):
        (tmp_path / name).mkdir()
    assert splits_in(tmp_path) == {}
