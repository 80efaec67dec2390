import json
import os
import threading

import pytest

from semsim.base.errors import SemsimError
from semsim.base.storage.atomic import (
    require_room,
    sweep,
    whole,
    whole_folder,
    whole_folders,
    write_bytes,
    write_json,
    write_text,
)


class BrokenError(Exception):
    """What a writer ends in."""


def half_written(place):
    """Begin to write into `place`, then break."""
    with place as part:
        (part / "a.txt" if part.is_dir() else part).write_bytes(b"half")
        raise BrokenError


def test_a_file_appears_with_its_folder_and_nothing_beside_it(tmp_path):
    path = tmp_path / "new" / "a.txt"
    write_text(path, "ü")
    assert path.read_bytes() == "ü".encode()
    assert list(path.parent.iterdir()) == [path]


def test_a_writer_that_breaks_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a"
    write_bytes(path, b"old")
    with pytest.raises(BrokenError):
        half_written(whole(path))
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_nobody_sees_a_file_before_it_is_whole(tmp_path):
    with whole(tmp_path / "a") as part:
        part.write_bytes(b"half")
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a").read_bytes() == b"half"


def test_two_threads_that_write_one_file_do_not_meet(tmp_path):
    inside = threading.Barrier(2)

    def write(content):
        with whole(tmp_path / "a") as part:
            part.write_bytes(content)
            inside.wait()  # both are in the middle of it
            assert part.read_bytes() == content

    threads = [threading.Thread(target=write, args=(one,)) for one in (b"first", b"second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "a").read_bytes() in (b"first", b"second")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_who_may_read_a_file_is_up_to_the_umask(tmp_path):
    before = os.umask(0o022)
    try:
        write_bytes(tmp_path / "a", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(("sort", "names"), [(True, ["a", "b"]), (False, ["b", "a"])])
def test_json_is_sorted_where_asked_for(tmp_path, sort, names):
    write_json(tmp_path / "a.json", {"b": 1, "a": "ü"}, sort=sort)
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert list(json.loads(text)) == names
    assert "ü" in text
    assert text.endswith("}\n")


def test_what_is_no_json_leaves_the_old_file(tmp_path):
    write_json(tmp_path / "a.json", {"a": 1})
    with pytest.raises(TypeError):
        write_json(tmp_path / "a.json", {"a": object()})
    assert json.loads((tmp_path / "a.json").read_text()) == {"a": 1}


def fill(folder, text):
    (folder / "a.txt").write_text(text)


def test_a_folder_takes_the_place_of_an_older_one_at_once(tmp_path):
    folder = tmp_path / "deep" / "set"
    with whole_folder(folder) as part:
        fill(part, "old")
        assert not folder.exists()
    (folder / "more").mkdir()
    with whole_folder(folder) as part:
        fill(part, "new")
        assert (folder / "a.txt").read_text() == "old"
    assert [path.name for path in folder.iterdir()] == ["a.txt"]
    assert (folder / "a.txt").read_text() == "new"
    assert list(folder.parent.iterdir()) == [folder]


def test_a_folder_whose_writer_breaks_stays_what_it_was(tmp_path):
    with whole_folder(tmp_path / "set") as part:
        fill(part, "old")
    with pytest.raises(BrokenError):
        half_written(whole_folder(tmp_path / "set"))
    assert (tmp_path / "set" / "a.txt").read_text() == "old"
    assert list(tmp_path.iterdir()) == [tmp_path / "set"]


def second_cannot_be_named(places, folder):
    with places as parts:
        for part in parts:
            fill(part, "new")
        parts[1].rename(folder / "away")


@pytest.mark.parametrize("replace", [True, False])
def test_of_several_folders_all_appear_or_none(tmp_path, replace):
    first, second = tmp_path / "first", tmp_path / "second"
    if replace:
        with whole_folder(first) as part:
            fill(part, "old")
    with pytest.raises(OSError, match="second"):
        second_cannot_be_named(whole_folders(first, second, replace=replace), tmp_path)
    assert not second.exists()
    assert first.exists() == replace
    if replace:
        assert (first / "a.txt").read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["away", "first"][: 1 + replace]


def test_a_folder_that_is_there_is_kept_unless_its_place_is_to_be_taken(tmp_path):
    folder = tmp_path / "set"
    with whole_folder(folder) as part:
        fill(part, "old")
    with pytest.raises(OSError, match="set"), whole_folders(folder) as (part,):
        fill(part, "new")
    assert (folder / "a.txt").read_text() == "old"
    assert list(tmp_path.iterdir()) == [folder]


def test_what_killed_writers_left_is_swept_once_it_is_old(tmp_path):
    kept = tmp_path / "runs"
    for name in (".a.json.12.34.part", ".b.12.34.part/x.png", ".c.12.34.old/y", "c/z", "t.part"):
        write_text(kept / name, "")
    write_text(kept / ".d.12.34.old" / "y", "the only one there is")
    sweep(tmp_path, age=3600)
    assert len(list(kept.iterdir())) == 6
    sweep(tmp_path, age=-1)
    assert sorted(path.name for path in kept.iterdir()) == ["c", "d", "t.part"]
    assert (kept / "c" / "z").exists()
    assert (kept / "d" / "y").exists()


def write_either(path, kind, text):
    with whole(path, settled=True) as part:
        if kind == "folder":
            part.mkdir()
        (part / "a.txt" if kind == "folder" else part).write_text(text)
        assert not path.exists() or text != "new"
        if text == "half":
            raise ValueError(text)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_is_written_appears_when_it_is_whole(tmp_path, kind):
    write_either(tmp_path / "one", kind, "new")
    assert list(tmp_path.iterdir()) == [tmp_path / "one"]
    assert (tmp_path / "one").is_dir() == (kind == "folder")


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_writer_that_breaks_leaves_nothing_and_changes_nothing(tmp_path, kind):
    (tmp_path / "one").write_text("old")
    with pytest.raises(ValueError, match="half"):
        write_either(tmp_path / "one", kind, "half")
    assert (tmp_path / "one").read_text() == "old"
    assert list(tmp_path.iterdir()) == [tmp_path / "one"]


def test_a_folder_that_cannot_be_written_is_named_before_work_begins(tmp_path):
    require_room(tmp_path / "new/below")
    assert list((tmp_path / "new/below").iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(SemsimError, match=r"file/below cannot be written .*name another folder"):
        require_room(tmp_path, tmp_path / "file/below")
