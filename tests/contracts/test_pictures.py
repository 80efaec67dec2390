"""No reader of pictures decodes one that would fill the memory."""

import struct
import zlib

import pytest

from semsim.base.errors import DataError, SettingsError
from semsim.datasets.photographs import read_middle
from semsim.images import read_image

READERS = {
    "semsim": (read_image, DataError, SettingsError),
    "data sets": (lambda path: read_middle(path, 8), DataError, SettingsError),
}


def claimed(path, width, height):
    """A PNG whose header claims that size, in black and white, with one black row."""

    def chunk(kind, data):
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    row = zlib.compress(bytes(1 + (width + 7) // 8))
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", row) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunks)
    return path


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("width", "height", "words"),
    [
        (60_000, 60_000, "too large"),  # which PIL would refuse by itself
        (13_000, 13_000, "13000×13000 is 169 megapixels; at most 50 are read"),
        (50_001, 1_000, "50001×1000 is 50.001 megapixels; at most 50 are read"),
    ],
)
def test_a_picture_is_refused_by_the_size_in_its_header(tmp_path, reader, width, height, words):
    read, error, _ = READERS[reader]
    with pytest.raises(error, match=rf"bomb\.png.*{words}"):
        read(claimed(tmp_path / "bomb.png", width, height))


@pytest.mark.parametrize("reader", READERS)
def test_a_kind_of_file_whose_header_says_nothing_of_its_size_is_no_picture(tmp_path, reader):
    """An icon names a size of its own and holds a PNG of any other, decoded as soon as opened."""
    read, error, _ = READERS[reader]
    inner = claimed(tmp_path / "inner.png", 8_000, 8_000).read_bytes()
    head = struct.pack("<HHHBBBBHHII", 0, 1, 1, 16, 16, 0, 0, 1, 32, len(inner), 22)
    (tmp_path / "icon.png").write_bytes(head + inner)
    with pytest.raises(error, match=r"icon\.png.*cannot identify image file"):
        read(tmp_path / "icon.png")


@pytest.mark.parametrize("reader", READERS)
def test_the_limit_is_a_setting(tmp_path, reader, monkeypatch):
    read, error, of_settings = READERS[reader]
    path = claimed(tmp_path / "a.png", 1001, 1)
    monkeypatch.setenv("SEMSIM_MAX_MEGAPIXELS", "0.001001")
    read(path)
    monkeypatch.setenv("SEMSIM_MAX_MEGAPIXELS", "0.001")
    with pytest.raises(error, match=r"a\.png is too large.*SEMSIM_MAX_MEGAPIXELS"):
        read(path)
    for wrong in ("many", "0", "nan"):
        monkeypatch.setenv("SEMSIM_MAX_MEGAPIXELS", wrong)
        with pytest.raises(of_settings, match=f"SEMSIM_MAX_MEGAPIXELS.*{wrong}"):
            read(path)


@pytest.mark.parametrize("reader", READERS)
def test_a_path_that_no_file_can_have_is_no_image(tmp_path, reader):
    read, error, _ = READERS[reader]
    with pytest.raises(error, match="not a readable image"):
        read(tmp_path / "a\0b.png")
