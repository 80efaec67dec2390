import pandas as pd
import pytest

from semsim.base.errors import DataError
from semsim.base.table_files import for_images
from semsim.importers.class_names import (
    all_classes,
    class_name,
    read_class_names,
    read_class_table,
)


@pytest.fixture
def write(tmp_path):
    def to_file(text, name="classes.txt"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return to_file


def test_names_come_by_number(write):
    names = read_class_names(write("apple\n baby \nbear\n\n"))
    assert names == ("apple", "baby", "bear")
    assert [class_name(number, names) for number in (0, 2, 3)] == ["apple", "bear", None]


def test_without_a_list_a_class_is_its_number():
    assert read_class_names(None) == ()
    assert class_name(17, ()) == "17"
    assert all_classes((), ["10", "9", "9"]) == ("9", "10")
    assert all_classes(("a", "b", "c"), ["b"]) == ("a", "b", "c")


@pytest.mark.parametrize("text", ["", "a\n\nb", "a\na"])
def test_lists_with_gaps_or_twins_are_refused(write, text):
    with pytest.raises(DataError, match="one class a line"):
        read_class_names(write(text))


def test_an_absent_list_is_refused(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        read_class_names(tmp_path / "nothing.txt")


def test_classes_of_images_come_from_a_table(write, tmp_path):
    expected = {"001": "cat", "002": "dog"}
    assert read_class_table(write("image_id,class_name\n001,cat\n002,dog\n", "c.csv")) == expected
    pd.DataFrame({"image_id": ["001", "002"], "class_name": ["cat", "dog"], "x": 1}).to_parquet(
        tmp_path / "c.parquet"
    )
    assert read_class_table(tmp_path / "c.parquet") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image_id,name\n1,cat\n", "lacks the columns class_name"),
        ("image_id,class_name\n1,cat\n1,dog\n", "image 1 two classes"),
        ("image_id,class_name\n1,cat\n2,\n", "see line 3"),
        ("image_id,class_name\n1,cat\n2\n", "line 3: has 1 cell,"),
    ],
)
def test_tables_that_are_not_clear_are_refused(write, text, message):
    with pytest.raises(DataError, match=message):
        read_class_table(write(text, "c.csv"))


def test_ids_are_matched_without_endings_zeros_and_case_where_one_is_meant():
    said = {"001.JPG": "a", "2": "b", "Cat.v2": "c", "7": "d", "07": "e", "08": "f", "x": "g"}
    found = for_images(said, {"001", "002", "cat.v2", "7", "007", "8", "08", "y"})
    assert found == {
        "001": "a", "002": "b", "cat.v2": "c", "7": "d", "07": "e", "08": "f", "x": "g"
    }  # fmt: skip


def test_a_list_from_old_windows_is_read_and_it_is_said(tmp_path, caplog):
    (tmp_path / "classes.txt").write_text("Bär\nKäse\n", encoding="cp1252")
    assert read_class_names(tmp_path / "classes.txt") == ("Bär", "Käse")
    assert "classes.txt is not UTF-8 and was read as Latin-1" in caplog.text
