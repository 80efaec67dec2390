"""Images are kept as their pixels and nothing else."""

import os

import numpy as np
from PIL import Image, PngImagePlugin
from study_factory import picture

from annotation.images import decode, encode, keep, keep_all, mean_squared_error, sha256, shuffled
from semsim.base.picture_files import read_pixels


def test_a_kept_image_has_the_same_pixels_and_its_hash_as_name(tmp_path):
    pixels = picture(1)
    path = keep(tmp_path / "new" / "images", encode(pixels))
    assert path.name == f"{sha256(path.read_bytes())}.png"
    assert np.array_equal(read_pixels(path), pixels)


def test_a_file_that_a_power_cut_left_empty_is_written_again(tmp_path):
    content = encode(picture(1))
    path = keep(tmp_path, content)
    path.write_bytes(b"")
    assert keep(tmp_path, content).read_bytes() == content


def test_keeping_twice_leaves_one_file(tmp_path):
    content = encode(picture(1))
    assert keep(tmp_path, content) == keep(tmp_path, content)
    assert len(list(tmp_path.iterdir())) == 1


def test_metadata_does_not_survive(tmp_path):
    info = PngImagePlugin.PngInfo()
    info.add_text("class", "chess_knight")
    Image.fromarray(picture(1)).save(tmp_path / "a.png", pnginfo=info)
    assert encode(read_pixels(tmp_path / "a.png")) == encode(picture(1))
    assert b"knight" not in encode(read_pixels(tmp_path / "a.png"))


def test_mean_squared_error():
    black, white = np.zeros((2, 2, 3), np.uint8), np.full((2, 2, 3), 255, np.uint8)
    assert mean_squared_error(black, white) == 1.0
    assert mean_squared_error(white, black) == 1.0
    assert mean_squared_error(white, white) == 0.0


def test_noise_has_the_same_pixels_elsewhere():
    pixels = decode(encode(picture(3)))
    assert np.array_equal(pixels, picture(3))
    noise = shuffled(pixels, np.random.default_rng(0))
    assert noise.shape == pixels.shape
    assert noise.dtype == pixels.dtype
    assert sorted(map(tuple, noise.reshape(-1, 3))) == sorted(map(tuple, pixels.reshape(-1, 3)))
    assert (noise != pixels).any(axis=2).mean() > 0.8


def test_pictures_survive_a_power_cut_before_a_study_has_them(tmp_path, monkeypatch):
    settled = set()
    monkeypatch.setattr(os, "fsync", lambda opened: settled.add(os.fstat(opened).st_ino))
    keep_all(tmp_path / "images", [b"one", b"two"])
    found = [tmp_path / "images", *(tmp_path / "images").iterdir()]
    assert len(found) == 3
    assert {one.stat().st_ino for one in found} <= settled
    keep_all(tmp_path / "none", [])
    assert not (tmp_path / "none").exists()
