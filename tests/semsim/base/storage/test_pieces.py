import pytest

from semsim.base.errors import DataError, SettingsError
from semsim.base.storage.atomic import write_bytes
from semsim.base.storage.names import checked_name
from semsim.base.storage.pieces import Pieces


@pytest.fixture
def kept(tmp_path):
    return Pieces(
        tmp_path / "made", ".error.txt", read=lambda path: path.read_bytes(), write=write_bytes
    )


def test_what_is_kept_is_found_again_until_it_is_forgotten(kept):
    assert kept.missing(["a", "b"]) == ["a", "b"]
    kept.write("a", b"one")
    (kept.folder / ".b.error.txt.1.1.part").touch()  # somebody is writing it
    assert kept.missing(["a", "b"]) == ["b"]
    assert "a" in kept
    assert kept.read("a") == b"one"
    kept.forget("a")
    kept.forget("a")
    assert "a" not in kept


def test_what_is_not_there_says_what_to_do(kept):
    with pytest.raises(DataError, match=r"a\.error\.txt does not exist"):
        kept.read("a")


@pytest.mark.parametrize("name", ["", "../up", ".hidden", "a/b", "a" * 81])
def test_a_name_that_no_folder_can_have_is_refused(name):
    assert checked_name("a-1.2_b", "a set") == "a-1.2_b"
    with pytest.raises(SettingsError, match="cannot name a set: use up to 80"):
        checked_name(name, "a set")
