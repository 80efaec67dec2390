import os
import struct
import zlib

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from semsim.base.errors import DataError
from semsim.base.picture_files import read_pixels
from semsim.datasets.photographs import read_middle
from semsim.images import is_image_file, read_image, read_images, to_uint8, write_png


@settings(max_examples=20)
@given(st.lists(st.integers(0, 255), min_size=12, max_size=12))
def test_writing_and_reading_loses_nothing(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("png") / "a.png"
    image = torch.tensor(values, dtype=torch.float32).reshape(3, 2, 2) / 255
    write_png(image, path)
    assert torch.equal(read_image(path), image)


def test_rounds_to_nearest_and_clips():
    image = torch.tensor([-0.2, 0.5 / 255 - 1e-4, 0.5 / 255 + 1e-4, 1.7]).reshape(1, 2, 2)
    assert to_uint8(image)[..., 0].tolist() == [[0, 0], [1, 255]]


def test_grey_becomes_rgb_and_size_is_changed(tmp_path):
    Image.new("L", (10, 6), 128).save(tmp_path / "g.png")
    image = read_image(tmp_path / "g.png", size=(3, 5))
    assert image.shape == (3, 3, 5)
    assert torch.allclose(image, torch.full_like(image, 128 / 255))


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp"])
def test_a_picture_taken_on_its_side_is_read_as_viewers_show_it(suffix, tmp_path):
    path = tmp_path / f"phone.{suffix}"
    drawn = Image.new("RGB", (16, 8))
    drawn.paste((255, 255, 255), (0, 0, 8, 8))  # the left half, which is the top once turned
    exif = Image.Exif()
    exif[0x0112] = 6  # orientation: turn it clockwise
    drawn.save(path, exif=exif, quality=100)
    image = read_image(path)
    assert image.shape == (3, 16, 8)
    assert image[:, :7].min() > 0.9
    assert image[:, 9:].max() < 0.1
    drawn.save(path, exif=b"Exif\0\0no such thing", quality=100)
    assert read_image(path).shape == (3, 8, 16)


def test_png_has_no_metadata(tmp_path):
    write_png(torch.zeros(3, 4, 4), tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as file:
        assert file.info == {}


def test_missing_broken_and_unequal_images_are_named(tmp_path):
    with pytest.raises(DataError, match=r"No image at .*none\.png"):
        read_image(tmp_path / "none.png")
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nrest is missing")
    write_png(torch.rand(3, 6, 6), tmp_path / "short.png")
    (tmp_path / "short.png").write_bytes((tmp_path / "short.png").read_bytes()[:-60])
    for name in ("broken", "short"):
        with pytest.raises(DataError, match=rf"{name}\.png is not a readable image"):
            read_image(tmp_path / f"{name}.png")
    write_png(torch.zeros(3, 4, 4), tmp_path / "small.png")
    write_png(torch.zeros(3, 8, 4), tmp_path / "large.png")
    with pytest.raises(DataError, match=r"large\.png is 4×8 but .*small\.png is 4×4"):
        read_images([tmp_path / "small.png", tmp_path / "large.png"])
    with pytest.raises(DataError, match="No images"):
        read_images([])


def test_a_colour_of_grey_that_stands_for_nothing_is_refused(tmp_path):
    grey = Image.new("L", (4, 4), 7)
    grey.save(tmp_path / "grey.png")
    assert (read_pixels(tmp_path / "grey.png") == 7).all()
    grey.save(tmp_path / "hole.png", transparency=7)
    with pytest.raises(DataError, match=r"hole\.png is partly transparent"):
        read_pixels(tmp_path / "hole.png")


def test_a_pipe_with_the_name_of_a_picture_keeps_nobody_waiting(tmp_path):
    os.mkfifo(tmp_path / "a.png")
    with pytest.raises(DataError, match="it is no file"):
        read_pixels(tmp_path / "a.png")


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_a_partly_transparent_picture_is_refused_rather_than_shown_as_what_lies_below(
    mode, tmp_path
):
    path = tmp_path / "clear.png"
    drawn = Image.new("RGBA", (4, 4), (255, 0, 0, 255))
    drawn.convert(mode).save(path)
    assert read_image(path).shape == (3, 4, 4)  # opaque throughout
    drawn.putpixel((1, 2), (0, 0, 0, 0))
    drawn.convert(mode).save(path)
    with pytest.raises(DataError, match=r"clear\.png is partly transparent; save it without"):
        read_image(path)


@pytest.mark.parametrize("kind", ["I;16", "I", "F"])
def test_pixels_of_more_than_8_bits_are_refused_rather_than_made_white(tmp_path, kind):
    path = tmp_path / "deep.tif"
    Image.new(kind, (4, 4), 1000).save(path)
    with pytest.raises(DataError, match=f"{path.name} has pixels of kind {kind}.*8 bits a channel"):
        read_image(path)
    with pytest.raises(DataError, match="8 bits a channel"):
        read_middle(path, 4)


def test_only_images_that_are_not_hidden_count(tmp_path):
    names = ["a.png", "b.JPG", "c.txt", "._d.png"]
    assert [is_image_file(tmp_path / name) for name in names] == [True, True, False, False]


def test_colours_of_16_bits_are_refused_as_greys_are(tmp_path):
    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", 1, 1, 16, 2, 0, 0, 0)
    pixel = zlib.compress(b"\0" + struct.pack(">3H", 1, 300, 65535))
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + chunks)
    with pytest.raises(DataError, match="RGB;16B; expected 8 bits a channel"):
        read_image(tmp_path / "a.png")
