import os
from pathlib import Path

import pytest

from semsim.base.errors import DataError
from semsim.importers.trees import Tree, below, id_and_label, image_name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("12_49_ori.png", ("12", 49, True, None)),
        ("12_49_rec.png", ("12", 49, False, None)),
        ("12_49_rec_3_14.png", ("12", 49, False, 14)),
        ("a_b_7_rec.png", ("a_b", 7, False, None)),
    ],
)
def test_names_of_images(name, expected):
    found = image_name(Path("somewhere") / name)
    assert (found.image_id, found.label, found.is_original, found.model_index) == expected


@pytest.mark.parametrize(
    "name", ["12_ori.png", "12_49.png", "12_49_rec_3.png", "12_x_rec.png", "12_49_rec_3_1_2.png"]
)
def test_other_names_say_nothing(name):
    assert image_name(Path(name)) is None


@pytest.mark.parametrize(
    ("stem", "expected"),
    [
        ("12_49_gt", ("12", 49)),
        ("12_49", ("12", 49)),
        ("12", ("12", None)),
        ("a_b_gt", ("a_b", None)),
    ],
)
def test_ids_and_labels(stem, expected):
    assert id_and_label(stem) == expected


def test_a_tree_tells_images_folders_and_the_rest_apart(tmp_path, draw):
    draw(tmp_path / "a/b.PNG")
    (tmp_path / "a/deep").mkdir()
    (tmp_path / "a/metric.npy").touch()
    (tmp_path / "a/.hidden.png").touch()
    tree = Tree(root=tmp_path)
    assert [path.name for path in tree.images_in(tmp_path / "a")] == ["b.PNG"]
    assert [path.name for path in tree.top(tmp_path / "a")] == ["deep"]
    assert {one.where: one.why for one in tree.unread if one.where.endswith("npy")} == {
        "a/metric.npy": "not an image file"
    }
    assert tree.hidden == 2  # once each time
    every = Tree(root=tmp_path)
    assert [path.name for path in every.files()] == ["b.PNG", "metric.npy"]
    assert every.hidden == 1


def test_a_tree_keeps_what_lies_where_it_does_not_belong(tmp_path, draw):
    draw(tmp_path / "a/b.png")
    draw(tmp_path / "loose.png")
    (tmp_path / "a/deep").mkdir()
    (tmp_path / "a/metric.npy").touch()
    (tmp_path / "a/.hidden").touch()
    tree = Tree(root=tmp_path)
    (folder,) = tree.top()
    assert [path.name for path in tree.images_in(folder)] == ["b.png"]
    assert [str(one) for one in tree.unread] == [
        "loose.png: not in a folder",
        "a/metric.npy: not an image file",
        "a/deep: a folder in a folder",
    ]
    assert tree.hidden == 1


def test_no_folder_is_an_error(tmp_path):
    with pytest.raises(DataError, match="nothing does not exist"):
        Tree(root=tmp_path / "nothing").top()


def test_paths_elsewhere_are_named_whole():
    assert below(Path("/a/b"), Path("/a")) == "b"
    assert below(Path("/x/b"), Path("/a")) == "/x/b"


def test_what_macs_leave_is_hidden_and_a_misnamed_file_is_told(tmp_path, draw):
    draw(tmp_path / "__MACOSX/1.png")
    draw(tmp_path / "cat" / os.fsdecode(b"\xe9.png"))
    tree = Tree(root=tmp_path)
    (folder,) = tree.top()
    assert tree.images_in(folder) == []
    assert [str(one) for one in tree.unread] == [
        "cat/\\udce9.png: its name is not UTF-8; rename it"
    ]
    assert tree.hidden == 1
