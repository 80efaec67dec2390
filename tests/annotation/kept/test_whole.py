import pytest

from annotation.kept.whole import whole


def write(path, kind, text):
    with whole(path, settled=True) as part:
        if kind == "folder":
            part.mkdir()
        (part / "a.txt" if kind == "folder" else part).write_text(text)
        assert not path.exists() or text != "new"
        if text == "half":
            raise ValueError(text)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_is_written_appears_when_it_is_whole(tmp_path, kind):
    write(tmp_path / "one", kind, "new")
    assert list(tmp_path.iterdir()) == [tmp_path / "one"]
    assert (tmp_path / "one").is_dir() == (kind == "folder")


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_writer_that_breaks_leaves_nothing_and_changes_nothing(tmp_path, kind):
    (tmp_path / "one").write_text("old")
    with pytest.raises(ValueError, match="half"):
        write(tmp_path / "one", kind, "half")
    assert (tmp_path / "one").read_text() == "old"
    assert list(tmp_path.iterdir()) == [tmp_path / "one"]
