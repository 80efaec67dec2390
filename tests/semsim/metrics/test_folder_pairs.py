import re

import numpy as np
import pytest
import torch
from PIL import Image

from semsim.base.errors import DataError
from semsim.images import write_png
from semsim.metrics import Resources
from semsim.metrics.scoring import match_folders, score_sets, wide_table


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
    with pytest.raises(DataError, match="nowhere does not exist"):
        match_folders(left, tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no image"):
        match_folders(left, tmp_path / "empty")


def test_pairs_of_each_size_are_scored(tmp_path):
    left, right = folders(tmp_path)
    for folder, value in ((left, 0.0), (right, 0.2)):
        write_png(torch.full((3, 4, 6), value), folder / "b.png")
    found = match_folders(left, right)
    assert found.problems == ()
    names = ["mse", "psnr"]
    table = wide_table(found, score_sets([found], names, Resources(), None), names)
    assert table["image_id"].tolist() == ["a", "b", "c"]
    assert table["mse"].tolist() == pytest.approx([0, 0.04, 0])
    assert table.attrs["metrics"]["mse"]["n"] == 3


def test_names_that_are_the_same_word_are_one_name(tmp_path):
    left, right = folders(tmp_path, ("x",))
    for folder, name in ((left, "cl\u00e9"), (right, "Cle\u0301")):
        write_png(torch.zeros(3, 8, 8), folder / f"{name}.png")
    found = match_folders(left, right)
    assert (found.pairs["image_id"].tolist(), found.problems) == (["cl\u00e9", "x"], ())


def test_names_that_several_could_mean_are_matched_letter_by_letter(tmp_path):
    left, right = folders(tmp_path, ("a", "A"))
    (right / "A.png").unlink()
    found = match_folders(left, right)
    assert found.pairs["image_id"].tolist() == ["a"]
    assert "A.png has no reconstruction" in found.problems[0]


@pytest.mark.parametrize("junk", [".ipynb_checkpoints/a.png", "__MACOSX/a.png", "._a.png"])
def test_what_systems_leave_is_no_pair(tmp_path, junk):
    left, right = folders(tmp_path, ("a",))
    for folder in (left, right):
        write_png(torch.zeros(3, 8, 8), folder / junk)
    found = match_folders(left, right)
    assert (found.pairs["image_id"].tolist(), found.problems) == (["a"], ())


@pytest.mark.parametrize("ending", [".gif", ".JFIF", ".avif", ".heic"])
def test_kinds_that_are_not_read_are_named(tmp_path, ending):
    left, right = folders(tmp_path, ("a",))
    (left / f"b{ending}").touch()
    (problem,) = match_folders(left, right).problems
    assert f"b{ending} is a picture of a kind that is not read" in problem
    for path in (right / "a.png",):
        path.rename(path.with_suffix(ending))
    with pytest.raises(DataError, match=f"holds no image. .*a{ending} is a picture"):
        match_folders(left, right)


@pytest.mark.parametrize("ending", ["png", "webp", "tif"])
def test_of_several_frames_the_first_counts_and_it_is_said(tmp_path, ending):
    left, right = folders(tmp_path, ("a",))
    black, white = (Image.new("RGB", (8, 8), (value,) * 3) for value in (0, 255))
    for folder in (left, right):
        black.save(folder / f"m.{ending}", save_all=True, append_images=[white], lossless=True)
    found = match_folders(left, right)
    assert found.problems == ()
    assert found.notes == ("More than one frame or page, of which the first counts: m.",)


@pytest.mark.parametrize("sides", [("left",), ("right",), ("left", "right")])
def test_a_picture_that_its_camera_turned_beside_one_that_it_did_not_is_said(tmp_path, sides):
    folders(tmp_path, ("a",))
    note = Image.Exif()
    note[0x0112] = 6
    for side in sides:
        Image.new("RGB", (8, 8)).save(tmp_path / side / "a.png", exif=note)
    found = match_folders(tmp_path / "left", tmp_path / "right")
    told = [one for one in found.notes if "turned as its camera says" in one and "a" in one]
    assert len(told) == (len(sides) == 1)


def turned(path, how, size=(8, 8)):
    note = Image.Exif()
    note[0x0112] = how
    Image.new("RGB", size).save(path, exif=note)


def test_cameras_that_turned_two_pictures_otherwise_are_said(tmp_path):
    left, right = folders(tmp_path, ("a",))
    turned(left / "a.png", 6)
    turned(right / "a.png", 8)
    assert "turned as its camera says" in match_folders(left, right).notes[0]


def test_sizes_that_differ_by_a_turn_are_said_to(tmp_path):
    left, right = folders(tmp_path, ("a", "b"))
    turned(left / "b.png", 6, (8, 4))
    Image.new("RGB", (8, 4)).save(right / "b.png")
    (problem,) = match_folders(left, right).problems
    assert "is 4×8 but" in problem
    assert "turned as its camera says" in problem
