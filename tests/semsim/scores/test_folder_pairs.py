import re

import numpy as np
import pytest
import torch
from PIL import Image

from semsim.errors import DataError
from semsim.images import write_png
from semsim.scores.folder_pairs import match_folders


def folders(tmp_path, names=("a", "b", "c"), side=8):
    for folder in ("left", "right"):
        for name in names:
            write_png(torch.full((3, side, side), 0.5), tmp_path / folder / f"{name}.png")
    return tmp_path / "left", tmp_path / "right"


def test_images_are_matched_by_path_without_suffix(tmp_path):
    left, right = folders(tmp_path, ("cat/1", "cat/2", "top"))
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(right / "cat" / "1.bmp")
    (right / "cat" / "1.png").unlink()
    (left / "notes.txt").write_text("not an image")
    found = match_folders(left, right)
    assert found.problems == ()
    assert found.pairs["image_id"].tolist() == ["cat/1", "cat/2", "top"]
    assert found.pairs["class_name"].tolist()[:2] == ["cat", "cat"]
    assert found.pairs["class_name"].isna().tolist() == [False, False, True]
    assert found.pairs["reconstruction"][0] == str(right / "cat" / "1.bmp")
    assert found.pairs["attacked"].isna().all()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda left, right: (right / "b.png").unlink(), "left/b.png has no reconstruction"),
        (lambda left, right: (left / "b.png").unlink(), "right/b.png has no original"),
        (lambda left, right: (right / "b.png").write_bytes(b"no"), "right/b.png is not a readable"),
        (
            lambda left, right: write_png(torch.zeros(3, 8, 9), right / "b.png"),
            "left/b.png is 8×8 but .*right/b.png is 9×8",
        ),
        (
            lambda left, right: [
                write_png(torch.zeros(3, 4, 4), f / "b.png") for f in (left, right)
            ],
            "right/b.png is 4×4 but most are 8×8",
        ),
        (
            lambda left, right: write_png(torch.zeros(3, 8, 8), left / "b.bmp"),
            "b.bmp and b.png in .*left have one name",
        ),
    ],
)
def test_what_does_not_fit_is_left_out_and_named(tmp_path, spoil, words):
    left, right = folders(tmp_path)
    spoil(left, right)
    found = match_folders(left, right)
    assert found.pairs["image_id"].tolist() == ["a", "c"]
    assert any(re.search(words, problem) for problem in found.problems)


def test_folders_with_nothing_in_common_are_refused(tmp_path):
    left, right = folders(tmp_path, ("a",))
    (right / "a.png").rename(right / "z.png")
    with pytest.raises(DataError, match=r"(?s)No pair of images.*a.png has no reconstruction"):
        match_folders(left, right)


def test_what_is_no_folder_of_images_is_refused(tmp_path):
    left, _ = folders(tmp_path)
    with pytest.raises(DataError, match="is not a folder"):
        match_folders(left, tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no image"):
        match_folders(left, tmp_path / "empty")
