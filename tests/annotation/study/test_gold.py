"""Gold items are read from a CSV file and say where they stand in it."""

from io import StringIO

import pytest

from annotation.design.quality import Gold
from annotation.errors import StudyError
from annotation.study.create import read_gold


def test_rows_keep_their_words_and_know_their_line(tmp_path):
    path = tmp_path / "gold.csv"
    path.write_text("image_id,note,model,answer\n007,x,resnet,NA\n8,,vgg,none\n")
    assert read_gold(path)[0] == [
        Gold(model="resnet", image_id="007", answer="NA", where="gold.csv, line 2: "),
        Gold(model="vgg", image_id="8", answer="none", where="gold.csv, line 3: "),
    ]


def test_a_table_from_a_spreadsheet(tmp_path):
    path = tmp_path / "gold.csv"
    path.write_text("model,image_id,answer\na,1,cat\n", encoding="utf-8-sig")
    assert [row.model for row in read_gold(path)[0]] == ["a"]


def test_what_is_copied_from_a_spreadsheet_may_hold_commas():
    copied = StringIO("model\timage_id\tanswer\na\tcat, grey\tcat\n")
    ((row,), _) = read_gold(copied)
    assert (row.model, row.image_id, row.answer) == ("a", "cat, grey", "cat")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "does not exist"),
        ("", "holds no row"),
        ("model,answer\na,cat\n", "lacks the columns image_id"),
        ("model,image_id,answer\na,cat, grey,cat\n", "line 2: has 4 cells.*quote cells"),
    ],
)
def test_what_is_no_such_table(tmp_path, content, words):
    path = tmp_path / "gold.csv"
    if content is not None:
        path.write_text(content)
    with pytest.raises(StudyError, match=words):
        read_gold(path)


def test_a_gold_table_may_come_out_of_a_spreadsheet(tmp_path):
    path = tmp_path / "gold.csv"
    path.write_text("sep=;\nmodel;image_id;answer\na ;007; cat\n", encoding="utf-16")
    ((row,), _) = read_gold(path)
    assert (row.model, row.image_id, row.answer) == ("a", "007", "cat")


def test_letters_of_old_windows_are_read_and_it_is_said(tmp_path):
    path = tmp_path / "gold.csv"
    path.write_text("model,image_id,answer\na,1,Bär\n", encoding="cp1252")
    (row,), (said,) = read_gold(path)
    assert row.answer == "Bär"
    assert "gold.csv is not UTF-8" in said
