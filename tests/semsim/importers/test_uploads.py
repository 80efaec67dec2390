"""Files in pieces: whatever order they come in, what lies there is the file or its beginning."""

import os
import time

import pytest

from semsim.base.errors import DataError
from semsim.importers import uploads
from semsim.importers.uploads import GapError, NoUploadError, TooLargeError


@pytest.fixture
def root(tmp_path):
    return tmp_path / "uploads"


def test_pieces_become_the_file(root):
    one = uploads.begin(root, "My cats.zip", 6)
    assert (one.have, one.whole) == (0, False)
    uploads.append(root, one.id, 0, b"abc")
    whole = uploads.append(root, one.id, 3, b"def")
    assert whole.whole
    assert whole.file.read_bytes() == b"abcdef"
    assert whole.file.name == "My_cats.zip"


def test_a_piece_that_came_before_changes_nothing_and_one_that_overlaps_adds_the_rest(root):
    one = uploads.begin(root, "a.zip", 6)
    for at, piece in ((0, b"abc"), (0, b"abc"), (1, b"bcd"), (0, b"XXXX")):
        uploads.append(root, one.id, at, piece)
    assert one.file.read_bytes() == b"abcd"


def test_a_gap_is_refused_and_says_where_to_go_on(root):
    one = uploads.begin(root, "a.zip", 6)
    uploads.append(root, one.id, 0, b"ab")
    with pytest.raises(GapError) as error:
        uploads.append(root, one.id, 3, b"def")
    assert error.value.have == 2
    assert one.file.read_bytes() == b"ab"


@pytest.mark.parametrize(("at", "size"), [(-1, 2), (3, 4), (0, 7), (0, uploads.MOST_PIECE + 1)])
def test_more_than_was_announced_is_refused(root, at, size):
    one = uploads.begin(root, "a.zip", 6)
    uploads.append(root, one.id, 0, b"abc")
    with pytest.raises(TooLargeError):
        uploads.append(root, one.id, at, bytes(size))
    assert one.file.read_bytes() == b"abc"


@pytest.mark.parametrize("strange", ["x", "../../etc", "0" * 32, ""])
def test_an_id_that_is_none_leads_nowhere(root, strange):
    uploads.begin(root, "a.zip", 6)
    with pytest.raises(NoUploadError):
        uploads.append(root, strange, 0, b"a")
    with pytest.raises(NoUploadError):
        uploads.remove(root, strange)


@pytest.mark.parametrize("name", ["../a.zip", "/a.zip", "a\\b.zip", "..", "", "a\nb", "a" * 201])
def test_a_name_is_no_path(root, name):
    with pytest.raises(DataError, match="no file's name"):
        uploads.begin(root, name, 6)
    assert not root.exists()


def test_too_large_is_said_before_a_byte_comes(root):
    size = uploads.MOST_UPLOAD + 1
    with pytest.raises(TooLargeError, match="at most 4,000,000,000 are imported at once"):
        uploads.begin(root, "a.zip", size)
    assert not root.exists()


@pytest.mark.parametrize("size", [0, -1])
def test_an_empty_file_is_no_upload(root, size):
    with pytest.raises(DataError, match=r"a\.zip is empty"):
        uploads.begin(root, "a.zip", size)
    assert not root.exists()


def test_what_was_only_announced_takes_no_room_from_others(root):
    for _ in range(3):
        uploads.begin(root, "large.zip", uploads.MOST_UPLOAD)
    one = uploads.begin(root, "small.zip", 6)
    assert uploads.append(root, one.id, 0, b"abcdef").whole


def test_the_bytes_of_all_uploads_together_are_bounded(root, monkeypatch):
    monkeypatch.setattr(uploads, "MOST_HELD", 10)
    first, second = (uploads.begin(root, name, 6) for name in ("a.zip", "b.zip"))
    uploads.append(root, first.id, 0, b"abcdef")
    with pytest.raises(TooLargeError, match="discard one of them"):
        uploads.begin(root, "c.zip", 6)
    uploads.append(root, second.id, 0, b"abcd")
    with pytest.raises(TooLargeError, match="discard one of them"):
        uploads.append(root, second.id, 4, b"e")
    assert uploads.find(root, second.id).have == 4
    uploads.remove(root, first.id)
    assert uploads.append(root, second.id, 4, b"ef").whole


def test_an_upload_the_disk_cannot_hold_is_refused(root, monkeypatch):
    usage = type("Usage", (), {"free": 10})
    monkeypatch.setattr(uploads.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(TooLargeError, match="10 are free"):
        uploads.begin(root, "a.zip", 6)


def test_whoever_was_cut_off_finds_what_is_there(root):
    one = uploads.begin(root, "a.zip", 6, "k")
    uploads.append(root, one.id, 0, b"abcd")
    again = uploads.begin(root, "a.zip", 6, "k")
    assert (again.id, again.have) == (one.id, 4)
    others = [("a.zip", 6, ""), ("a.zip", 7, "k"), ("b.zip", 6, "k"), ("a.zip", 6, "j")]
    ids = {uploads.begin(root, *other).id for other in others}
    assert one.id not in ids
    assert len(ids) == 4


def test_what_was_cancelled_is_gone(root):
    one = uploads.begin(root, "a.zip", 6)
    uploads.remove(root, one.id)
    assert not list(root.iterdir())
    with pytest.raises(NoUploadError, match="Choose the files again"):
        uploads.append(root, one.id, 0, b"a")


def test_what_nobody_came_back_for_goes_after_a_day(root):
    old, young = uploads.begin(root, "a.zip", 6), uploads.begin(root, "b.zip", 6)
    (root / "not-an-upload").mkdir()
    past = time.time() - uploads.LEFT - 60
    for path in (old.folder, old.file, root / "not-an-upload"):
        os.utime(path, (past, past))
    uploads.sweep(root)
    assert {path.name for path in root.iterdir()} == {young.id, "not-an-upload"}


def test_a_clock_a_day_ahead_takes_nothing_that_somebody_looks_at_or_sends(root, monkeypatch):
    looked, sent, left = (uploads.begin(root, f"{name}.zip", 6) for name in "abc")
    uploads.hold(looked)
    uploads.append(root, sent.id, 0, b"a")
    now = time.time()
    monkeypatch.setattr(uploads.time, "time", lambda: now + 25 * 3600)
    uploads.begin(root, "d.zip", 6)
    there = {one.id for one in uploads.uploads(root)}
    assert {looked.id, sent.id} <= there
    assert left.id not in there
    monkeypatch.setattr(uploads.time, "time", lambda: now + uploads.HELD + 3600)
    uploads.sweep(root)
    assert looked.id not in {one.id for one in uploads.uploads(root)}  # not for ever
