"""Nothing that a spreadsheet would run gets out, and everything comes back as it was."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.formats.spreadsheet import escape, restore

RISKY = ("=", "+", "-", "@", "\t", "\r")
TEXTS = st.lists(st.text(alphabet="=+-@\t\r\n'1.e a", max_size=6) | st.text(max_size=4))


def column(texts):
    return pd.DataFrame({"text": pd.Series(texts, dtype="str")})


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("=1+1", "'=1+1"),
        ("+cmd", "'+cmd"),
        ("-cmd|' /C calc'!A0", "'-cmd|' /C calc'!A0"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("'=1", "''=1"),
        ("-1", "-1"),
        ("+2.5e-3", "+2.5e-3"),
        ("-1+1", "'-1+1"),
        ("cat", "cat"),
        ("'cat'", "'cat'"),
        ("a=b", "a=b"),
    ],
)
def test_what_is_escaped(text, escaped):
    assert escape(column([text]))["text"].tolist() == [escaped]


@given(TEXTS)
def test_reading_takes_off_exactly_what_writing_put_on(texts):
    table = column(texts)
    pd.testing.assert_frame_equal(restore(escape(table)), table)


@given(TEXTS)
def test_no_cell_that_starts_like_a_formula_is_left_but_numbers(texts):
    for text in escape(column(texts))["text"]:
        if text.startswith(RISKY):
            float(text)


def test_numbers_and_what_is_missing_are_not_touched():
    table = pd.DataFrame({"n": [-1.5, 2.0], "text": pd.Series([None, "=x"], dtype="str")})
    got = escape(table)
    assert got["n"].tolist() == [-1.5, 2.0]
    assert got["text"].isna().tolist() == [True, False]
