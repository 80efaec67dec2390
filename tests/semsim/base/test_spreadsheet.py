"""Nothing that a spreadsheet would run gets out, and everything comes back as it was."""

import csv
import io

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semsim.base.table_files import escaped, of_table, restored

RISKY = ("=", "+", "-", "@", "＝")
TEXTS = st.lists(st.text(alphabet="=+-@\t\r\n';\"1.e a", max_size=8) | st.text(max_size=4))


def column(texts):
    return pd.DataFrame({"text": pd.Series(texts, dtype="str")})


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("=1+1", "'=1+1"),
        ("+cmd", "'+cmd"),
        ("-cmd|' /C calc'!A0", "'-cmd|' /C calc'!A0"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t'=1"),
        ("\r=1", "'\r'=1"),
        ("x;=1", "x;'=1"),
        ("x;;@a;-b", "x;;'@a;'-b"),
        ('x;"=1"', 'x;\'"=1"'),
        ("'\"=1", "''\"=1"),
        ("x; y=1", "x; y=1"),
        ("'=1", "''=1"),
        ("-1", "-1"),
        ("+2.5e-3", "+2.5e-3"),
        ("-1+1", "'-1+1"),
        ("cat", "cat"),
        ("'cat'", "'cat'"),
        ("a=b", "a=b"),
    ],
)
def test_what_is_escaped(text, made):
    assert of_table(column([text]), escaped)["text"].tolist() == [made]


@given(TEXTS)
def test_reading_takes_off_exactly_what_writing_put_on(texts):
    table = column(texts)
    pd.testing.assert_frame_equal(of_table(of_table(table, escaped), restored), table)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@given(texts=TEXTS)
def test_wherever_a_spreadsheet_splits_no_cell_is_a_formula_but_numbers(texts, separator):
    written = of_table(column(["x", *texts]).assign(second="y")[["second", "text"]], escaped)
    lines = written.to_csv(index=False, lineterminator="\r\n")
    for row in csv.reader(io.StringIO(lines, newline=""), delimiter=separator):
        for cell in row:
            if cell.startswith(RISKY):
                float(cell)


def test_numbers_and_what_is_missing_are_not_touched():
    table = pd.DataFrame({"n": [-1.5, 2.0], "text": pd.Series([None, "=x"], dtype="str")})
    got = of_table(table, escaped)
    assert got["n"].tolist() == [-1.5, 2.0]
    assert got["text"].isna().tolist() == [True, False]
