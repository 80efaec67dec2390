import os

import numpy as np
import pandas as pd
import pytest
from made_tables import sheet

from semsim.base.errors import DataError
from semsim.base.table_files import read_frame, read_plain, read_texts, truth


def read_table(path):
    return read_texts(path, DataError)


def csv(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "votes.csv"
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_cells_are_text_and_rows_know_their_line(tmp_path, mark):
    found = read_table(csv(tmp_path, f"a{mark}b\n007{mark} x y \n\n{mark}NA\n"))
    assert found.cells.to_dict("index") == {
        "line 2": {"a": "007", "b": "x y"},
        "line 4": {"a": None, "b": "NA"},
    }
    assert found.unread == ()


def test_rows_of_another_length_are_left_out_and_named(tmp_path):
    found = read_table(csv(tmp_path, "a,b\n1,2\n3\n4,5,6\n"))
    assert found.cells["a"].tolist() == ["1"]
    assert [str(one) for one in found.unread] == [
        "votes.csv line 3: has 1 cell, the header has 2",
        "votes.csv line 4: has 3 cells, the header has 2",
    ]


def test_parquet_is_read_as_csv_would_be(tmp_path):
    path = tmp_path / "votes.parquet"
    pd.DataFrame(
        {"id": [3.0, np.nan], "p": [0.25, 9.93685], "t": [True, None], "s": ["x", ""]}
    ).to_parquet(path)
    assert read_table(path).cells.to_dict("index") == {
        "row 1": {"id": "3", "p": "0.25", "t": "True", "s": "x"},
        "row 2": {"id": None, "p": "9.93685", "t": None, "s": None},
    }


def test_a_byte_order_mark_is_no_part_of_the_header(tmp_path):
    assert list(read_table(csv(tmp_path, "a\n1\n", "utf-8-sig")).cells) == ["a"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no row"),
        ("a,b\n", "holds no row"),
        ("a,a\n1,2\n", "need a name each"),
        ('a\n"1\n', "not a readable table"),
    ],
)
def test_tables_without_names_or_rows_are_refused(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read_table(csv(tmp_path, text))


def test_other_encodings_and_files_are_refused(tmp_path):
    with pytest.raises(DataError, match="not a readable table"):
        read_table(csv(tmp_path, "a\n\x81\n", "latin-1"))
    with pytest.raises(DataError, match=r"should be a table: CSV .*Excel"):
        read_table(tmp_path / "votes.ods")
    (tmp_path / "x.parquet").write_bytes(b"PAR1 broken")
    with pytest.raises(DataError, match="not a readable table"):
        read_table(tmp_path / "x.parquet")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("limit", "why"),
    [("MOST_ROWS", "more than 3 rows.*cut the table"), ("MOST_CELLS", "more than 3 cells")],
)
def test_a_table_too_large_for_the_memory_is_refused(tmp_path, monkeypatch, ending, limit, why):
    monkeypatch.setattr(f"semsim.base.table_files.{limit}", 3)
    table, path = pd.DataFrame({"a": list("wxyz")}), tmp_path / f"x.{ending}"
    getattr(table, f"to_{ending}")(path, index=False)
    with pytest.raises(DataError, match=f"x.{ending} has {why}"):
        read_table(path)
    getattr(table[: 3 if limit == "MOST_ROWS" else 2], f"to_{ending}")(path, index=False)
    assert read_table(path).cells["a"].tolist()[:2] == ["w", "x"]


def test_no_more_of_a_long_table_is_read_than_is_taken(tmp_path, monkeypatch):
    monkeypatch.setattr("semsim.base.table_files.MOST_ROWS", 3)
    broken = "a\n" + "1\n" * 4 + '"never closed'
    with pytest.raises(DataError, match="more than 3 rows"):
        read_table(csv(tmp_path, broken))
    monkeypatch.setattr("semsim.base.table_files.MOST_CELLS", 8)
    with pytest.raises(DataError, match="more than 8 cells"):
        read_table(csv(tmp_path, "a\n" + "," * 9))


def test_lists_in_cells_are_refused(tmp_path):
    pd.DataFrame({"a": [[1, 2]]}).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(DataError, match="holds ndarray"):
        read_table(tmp_path / "x.parquet")


def test_absent_columns_are_named_beside_those_there_are(tmp_path):
    table = read_table(csv(tmp_path, "a,b\n1,2\n"))
    with pytest.raises(DataError, match=r"lacks the columns c, d. It has: a, b"):
        table.columns("a", "c", "d")


def test_what_a_parquet_file_says_often_is_held_once(tmp_path):
    long = "i" * 20_000
    table = pd.DataFrame({"a": [long] * 999 + [None], "b": [f" {n} " for n in range(1000)]})
    table["c"] = [f"{n % 127}" for n in range(1000)]
    table.set_axis([*range(1, 1000), 0]).to_parquet(tmp_path / "x.parquet")
    cells = read_table(tmp_path / "x.parquet").cells
    assert list(cells) == ["a", "b", "c"]
    assert cells["a"][:-1].tolist() == [long] * 999
    assert len({id(one) for one in cells["a"][:-1]}) == 1
    assert cells["a"].iloc[-1] is None
    assert cells["b"].tolist() == [str(n) for n in range(1000)]
    assert cells["c"].tolist() == [str(n % 127) for n in range(1000)]


def test_a_parquet_file_that_would_become_too_large_is_refused(tmp_path, monkeypatch):
    pd.DataFrame({"a": ["x" * 999 + str(n) for n in range(999)]}).to_parquet(tmp_path / "x.parquet")
    assert (tmp_path / "x.parquet").stat().st_size < 100_000
    monkeypatch.setattr("semsim.base.table_files.MOST_BYTES", 100_000)
    with pytest.raises(DataError, match=r"more than 100,000 bytes, unpacked\. So many"):
        read_table(tmp_path / "x.parquet")


TIDY = {"model": ["a", "b"], "id": ["007", "008"], "psnr": ["30.5", "9.25"]}


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("model,id,psnr\na,007,30.5\nb,008,9.25\n", "utf-8"),
        ("model;id;psnr\na;007;30,5\nb;008;9,25\n", "utf-8-sig"),
        ("sep=;\nmodel;id;psnr\na;007;30,5\nb;008;9,25\n", "utf-8"),
        ("model\tid\tpsnr\r\na\t007\t30.5\r\nb\t008\t9.25\r\n", "utf-16"),
        ("model\tid\tpsnr\na\t007\t30,5\nb\t008\t9,25\n", "utf-16-be"),
        ("model,id,psnr\na,007,30.5\nb,008,9.25\n", "utf-32"),
        ("\n model , id\u00a0,psnr,,\na ,007, 30.5,,\n,,,,\nb,008,9.25,,\n,,,,\n", "utf-8"),
    ],
)
def test_a_table_is_the_same_however_it_is_written(tmp_path, text, encoding):
    table = read_table(csv(tmp_path, text, encoding))
    assert table.cells.to_dict("list") == TIDY
    assert (table.unread, table.remarks) == ((), ())
    for columns in (None, tuple(TIDY)):
        frame = read_frame(
            tmp_path / "votes.csv", DataError, texts=("model", "id"), columns=columns
        )
        assert frame.to_dict("list") == {**TIDY, "psnr": [30.5, 9.25]}


@pytest.mark.parametrize("columns", [None, ("model", "psnr")])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model,psnr\na,30,5\nb,9,25\n", "more cells than the header"),
        ("model,psnr\na,30.5\nb,9,25\n", "Expected 2 fields in line 3, saw 3"),
        ("model,psnr,psnr \na,30.5,1\n", "columns need a name each"),
    ],
)
def test_no_cell_of_a_frame_is_dropped_without_a_word(tmp_path, text, words, columns):
    with pytest.raises(DataError, match=words):
        read_frame(csv(tmp_path, text), DataError, texts=("model",), columns=columns)


def test_a_sheet_as_a_frame_names_what_was_not_read(tmp_path, caplog):
    rows = [["model", "psnr"], ["a", 30.5], ["b", 9.25, 7]]
    with pytest.raises(DataError, match="row 3: has 3 cells, the header has 2"):
        read_frame(sheet(tmp_path / "t.xlsx", rows), DataError)
    read_frame(sheet(tmp_path / "t.xlsx", rows[:2]), DataError)
    assert "Of the 2 sheets of t.xlsx the first was read." in caplog.text


def test_letters_of_old_windows_are_read_and_it_is_said(tmp_path):
    table = read_table(csv(tmp_path, "name\nÄnne – é\n", "cp1252"))
    assert table.cells["name"].tolist() == ["Änne – é"]
    assert "not UTF-8 and was read as Latin-1" in table.remarks[0]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
def test_a_small_text_is_read_in_every_encoding_of_a_table(tmp_path, caplog, encoding):
    (tmp_path / "t.txt").write_text("Bär\nKuh – é\n", encoding=encoding)
    assert read_plain(tmp_path / "t.txt", DataError) == "Bär\nKuh – é\n"
    said = "t.txt is not UTF-8 and was read as Latin-1"
    assert (said in caplog.text) is (encoding == "cp1252")


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"a\x81b", b"\xff\xfea"])
def test_what_is_no_text_is_refused(tmp_path, content):
    (tmp_path / "t.txt").write_bytes(content)
    with pytest.raises(DataError, match=r"t\.txt is not a readable text file \("):
        read_plain(tmp_path / "t.txt", DataError)


def test_a_comma_is_a_decimal_one_only_where_no_point_is(tmp_path):
    table = read_table(csv(tmp_path, "a;b\n1,5;2.5\n"))
    assert table.cells.to_dict("list") == {"a": ["1,5"], "b": ["2.5"]}


@pytest.mark.parametrize("inline", [True, False])
def test_an_excel_sheet_is_read_as_csv(tmp_path, inline):
    rows = [["model", "id", "psnr", "seen"], ["a", "007", 30.5, True], [None] * 4]
    rows += [["b", "008", 9.25, False]]
    table = read_table(sheet(tmp_path / "t.xlsx", rows, inline=inline))
    assert table.cells.to_dict("list") == {**TIDY, "seen": ["true", "false"]}
    assert table.cells.index.tolist() == ["row 2", "row 4"]
    assert table.remarks == ("Of the 2 sheets of t.xlsx the first was read.",)
    frame = read_frame(tmp_path / "t.xlsx", DataError, texts=("id",))
    assert frame["psnr"].tolist() == [30.5, 9.25]
    assert frame["id"].tolist() == ["007", "008"]


def test_what_is_called_a_sheet_and_is_none_is_refused(tmp_path):
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    with pytest.raises(DataError, match=r"not a readable table .* Save it as CSV"):
        read_table(tmp_path / "t.xlsx")


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        *(("Yes", True), ("ja ", True), ("WAHR", True), (1, True), ("1.0", True), (True, True)),
        *(("no", False), ("Nein", False), (0.0, False), ("faux", False)),
        *(("perhaps", None), ("2", None), (None, None), ("", None)),
    ],
)
def test_yes_and_no_in_words_and_numbers(cell, said):
    assert truth(cell) is said


@pytest.mark.parametrize("name", ["a.csv", "a.xlsx", "a.parquet"])
def test_a_pipe_with_the_name_of_a_table_keeps_nobody_waiting(tmp_path, name):
    os.mkfifo(tmp_path / name)
    for read in (read_table, lambda path: read_frame(path, DataError)):
        with pytest.raises(DataError, match="it is no file"):
            read(tmp_path / name)
