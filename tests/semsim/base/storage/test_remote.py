"""Files that lie elsewhere: kept, read once, and what is said where nobody answers."""

import os
import sys

import pytest
from fsspec.registry import _registry
from made_remote import PLACE, Unsteady

from semsim.base.errors import StoreError
from semsim.base.storage import remote
from semsim.base.storage.remote import MARK, STAYS, Remote


@pytest.fixture
def shared(tmp_path, unsteady):
    return Remote(PLACE, tmp_path / "copies", most=100)


def grown_old(path):
    """As if nobody had used it for longer than copies stay."""
    os.utime(path, (path.stat().st_atime, path.stat().st_mtime - STAYS - 60))


def test_what_one_keeps_the_other_reads_and_reads_once(shared, tmp_path):
    other = Remote(f"{PLACE}/", tmp_path / "elsewhere")
    shared.put({"a": b"one", "b": b"two"})
    other.fetch(["a", "b", "a"])
    assert [other.copy_of(name).read_bytes() for name in "ab"] == [b"one", b"two"]
    asked = list(Unsteady.reads)
    other.fetch(["a"])
    assert Unsteady.reads == asked
    assert not shared.copy_of("a").exists()


def test_more_files_than_are_asked_for_at_once(shared, monkeypatch):
    monkeypatch.setattr(remote, "TOGETHER", 2)
    shared.put({str(n): b"x" for n in range(5)})
    shared.fetch(map(str, range(5)))
    assert len(list(shared.copies.iterdir())) == 5


def test_a_file_that_is_gone_is_left_out(shared):
    shared.put({"a": b"one"})
    shared.fetch(["gone", "a"])
    assert [path.name for path in shared.copies.iterdir()] == ["a"]


def test_copies_unused_for_longest_go_and_none_of_this_week(shared):
    shared.put(dict.fromkeys("abcd", b"x" * 40))
    for name in "abc":
        shared.fetch([name])
    assert len(list(shared.copies.iterdir())) == 3
    for name in "ab":
        grown_old(shared.copy_of(name))
    shared.fetch(["a"])  # used again
    shared.fetch(["d"])
    assert {path.name for path in shared.copies.iterdir()} == set("acd")
    shared.fetch(["b"])
    assert shared.copy_of("b").exists()


def test_who_does_not_answer_is_told_in_the_log_and_people_are_asked_to_try_again(
    shared,
    unsteady,
    caplog,
):
    shared.put({"a": b"one"})
    unsteady.gone = "secret host is down"
    for work in (lambda: shared.fetch(["a"]), lambda: shared.put({"b": b"two"})):
        with pytest.raises(StoreError, match=r"Try again") as told:
            work()
        assert "secret" not in str(told.value)
    assert f"{PLACE}: ConnectionError: secret host is down" in caplog.text
    assert list(shared.copies.iterdir()) == []
    unsteady.gone = ""
    shared.fetch(["a"])
    unsteady.gone = "down"
    shared.fetch(["a"])  # its copy is here


def test_a_check_says_whether_a_studio_keeps_files_there(shared, unsteady):
    assert not shared.check()
    assert shared.check(write=True)
    assert shared.check()
    assert [path.rpartition("/")[2] for path in unsteady.store] == [MARK]
    unsteady.gone = "no {such} host"
    with pytest.raises(StoreError, match=r"cannot be used: no \{such\} host\. .*--image-store"):
        shared.check()


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("nothing://bucket", "is no address of pictures.*Expected s3://bucket/prefix"),
        ("gcs://bucket", "gcs://bucket needs libraries that are not installed: .*gcsfs"),
    ],
)
def test_an_address_that_cannot_be_read_is_an_error_that_says_so(address, words, tmp_path):
    with pytest.raises(StoreError, match=words):
        Remote(address, tmp_path)


def test_who_lacks_the_library_for_s3_is_told_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(_registry, "s3", raising=False)  # another test has read from one
    with pytest.raises(StoreError, match=r'pip install "semsim-studio\[s3\]"'):
        Remote("s3://bucket", tmp_path)
