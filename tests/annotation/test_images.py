"""Images are kept as their pixels and nothing else."""

import os

import numpy as np
import pytest
from PIL import Image, PngImagePlugin
from study_factory import picture, save_png

from annotation.errors import StudyError
from annotation.images import (
    decode,
    encode,
    keep,
    keep_all,
    mean_squared_error,
    read_pixels,
    sha256,
    shuffled,
)


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


def test_a_picture_taken_on_its_side_is_shown_upright(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # orientation: turn it clockwise
    pixels = picture(1)
    Image.fromarray(np.rot90(pixels)).save(tmp_path / "a.png", exif=exif)
    assert np.array_equal(read_pixels(tmp_path / "a.png"), pixels)
    Image.fromarray(pixels).save(tmp_path / "b.png", exif=b"Exif\0\0no such thing")
    assert np.array_equal(read_pixels(tmp_path / "b.png"), pixels)


def test_grey_images_become_rgb(tmp_path):
    save_png(tmp_path / "a.png", picture(1)[..., 0])
    assert read_pixels(tmp_path / "a.png").shape == (6, 6, 3)


def test_missing_and_broken_files_are_named(tmp_path):
    (tmp_path / "broken.png").write_bytes(b"not a picture")
    (tmp_path / "short.png").write_bytes(encode(picture(1))[:-60])
    with pytest.raises(StudyError, match=r"No image at .*gone\.png"):
        read_pixels(tmp_path / "gone.png")
    for name in ("broken", "short"):
        with pytest.raises(StudyError, match=rf"{name}\.png is not a readable image"):
            read_pixels(tmp_path / f"{name}.png")


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


@pytest.mark.parametrize("mode", ["I;16", "I", "F"])
def test_pixels_of_more_than_8_bits_are_refused_rather_than_made_white(tmp_path, mode):
    path = tmp_path / "deep.tif"
    Image.new(mode, (4, 4), 1000).save(path)
    with pytest.raises(StudyError, match=f"deep.tif has pixels of kind {mode}.*8 bits a channel"):
        read_pixels(path)


def test_what_shows_through_is_refused_rather_than_made_up(tmp_path):
    picture = Image.new("RGBA", (4, 4), (255, 0, 0, 255))
    picture.save(tmp_path / "whole.png")
    assert (read_pixels(tmp_path / "whole.png") == (255, 0, 0)).all()
    picture.putpixel((1, 2), (255, 0, 0, 254))
    picture.save(tmp_path / "clear.png")
    grey = Image.new("L", (4, 4), 7)
    grey.save(tmp_path / "grey.png")
    assert (read_pixels(tmp_path / "grey.png") == 7).all()
    grey.save(tmp_path / "hole.png", transparency=7)
    for name in ("clear", "hole"):
        with pytest.raises(StudyError, match=f"{name}.png is partly transparent"):
            read_pixels(tmp_path / f"{name}.png")


def test_pictures_survive_a_power_cut_before_a_study_has_them(tmp_path, monkeypatch):
    settled = set()
    monkeypatch.setattr(os, "fsync", lambda opened: settled.add(os.fstat(opened).st_ino))
    keep_all(tmp_path / "images", [b"one", b"two"])
    found = [tmp_path / "images", *(tmp_path / "images").iterdir()]
    assert len(found) == 3
    assert {one.stat().st_ino for one in found} <= settled
    keep_all(tmp_path / "none", [])
    assert not (tmp_path / "none").exists()


def test_a_pipe_with_the_name_of_a_picture_keeps_nobody_waiting(tmp_path):
    os.mkfifo(tmp_path / "a.png")
    with pytest.raises(StudyError, match="it is no file"):
        read_pixels(tmp_path / "a.png")
