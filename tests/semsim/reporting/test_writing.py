import io
import re
from dataclasses import replace
from html.parser import HTMLParser

import pandas as pd
import pytest

from semsim.reporting.tables import Table, tables
from semsim.reporting.writing import csv, html, latex, markdown

NASTY = "50 % & <b>x_1</b> | $a^b$ [−0.2] \\ # ~ {ρ}"
FRAME = pd.DataFrame({"name": [NASTY, "b"], "value": [1 / 3, float("nan")]})
CELLS = pd.DataFrame({"Name_1": [NASTY, "b"], "|ρ|": ["0.333", "–"]})
TABLE = Table(
    **{"name": "nasty", "title": "T & t", "caption": "C <c>.", "frame": FRAME, "cells": CELLS},
    best=frozenset({(0, 1)}),
)


@pytest.mark.parametrize(("title", "said"), [("Is it so?", "Is it so? C"), ("So", "So. C")])
def test_a_title_that_asks_has_its_own_mark_before_the_caption(title, said):
    assert said in latex(replace(TABLE, title=title))


def test_csv_keeps_every_digit_of_the_raw_numbers():
    again = pd.read_csv(io.StringIO(csv(TABLE.frame)))
    assert again["value"][0] == 1 / 3
    assert again["name"].tolist() == [NASTY, "b"]


def test_csv_holds_nothing_a_spreadsheet_would_run():
    frame = pd.DataFrame({"model": ["=cmd()", "-1+1", "plain"], "@sum": [-1.5, 2.0, float("nan")]})
    assert csv(frame) == "model,'@sum\n'=cmd(),-1.5\n'-1+1,2.0\nplain,\n"


def test_every_table_survives_csv(analysis):
    for one in tables(analysis):
        again = pd.read_csv(io.StringIO(csv(one.frame)))
        assert len(again) == len(one.frame), one.name
        for column in one.frame.select_dtypes("float"):
            if len(one.frame):
                name = column or "Unnamed: 0"
                pd.testing.assert_series_equal(
                    again[name], one.frame[column], check_names=False, check_dtype=False
                )


def test_latex_escapes_what_is_special_and_marks_the_best():
    text = latex(TABLE)
    assert r"\textbf{0.333}" in text
    assert r"50 \% \& $<$b$>$x\_1$<$/b$>$ $|$ \$a\textasciicircum{}b\$" in text
    assert r"{[}$-$0.2] \textbackslash{} \# \textasciitilde{} \{$\rho$\}" in text
    assert r"Name\_1 & $|$$\rho$$|$ \\" in text
    assert r"\caption{T \& t. C $<$c$>$.}" in text


def test_every_table_is_whole_latex(analysis):
    for one in tables(analysis):
        text = latex(one)
        plain = re.sub(r"\\[{}$&]", "", text)
        assert plain.count("{") == plain.count("}"), one.name
        assert plain.count("$") % 2 == 0, one.name
        body = text.split(r"\toprule")[1].split(r"\bottomrule")[0]
        rows = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert len(rows) == len(one.cells) + 1
        for row in rows:
            assert len(re.findall(r"(?<!\\)&", row)) == one.cells.shape[1] - 1, one.name
        assert text.isascii() or set(text) - set(map(chr, range(128))) <= set("’"), one.name


def test_markdown_has_a_cell_a_value_and_marks_the_best():
    text = markdown(TABLE)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert [len(re.findall(r"(?<!\\)\|", line)) for line in lines] == [3, 3, 3, 3]
    assert "**0.333**" in lines[2]
    assert r"\<b\>x\_1\</b\>" in lines[2]
    assert text.startswith("**T & t**")
    assert text.endswith("C \\<c\\>.\n")


class Cells(HTMLParser):
    """Texts of the cells of a table, and the tags there are."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.tags = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        if self.rows and self.rows[-1]:  # else a line break between two tags
            self.rows[-1][-1] += data.strip("\n")


def test_html_is_escaped_scrolls_and_marks_the_best():
    text = html(TABLE)
    found = Cells(text)
    assert found.rows == [["Name_1", "|ρ|"], [NASTY, "0.333"], ["b", "–"]]
    assert found.tags == {"div", "table", "thead", "tbody", "tr", "th", "td"}
    assert '<td class="semsim-best">0.333</td>' in text
    assert 'tabindex="0"' in text
    assert 'aria-label="T &amp; t"' in text


@pytest.mark.parametrize("write", [latex, markdown, html])
def test_a_table_without_rows(write, empty):
    for one in tables(empty):
        assert write(one)
    assert "There is nothing to show." in html(tables(empty)[0])
