"""That what is said of how often intervals hold is what `benchmarks/coverage.py` wrote."""

import json

import pytest

from benchmarks import coverage

ROWS = json.loads(coverage.RESULTS.read_text(encoding="utf-8"))["rows"]


def test_the_page_has_the_table_of_the_file():
    page = coverage.PAGE.read_text(encoding="utf-8")
    between = page.partition(coverage.START)[2].partition(coverage.END)[0]
    assert between.strip() == coverage.table_of(ROWS)


def test_every_part_was_measured_and_says_how():
    assert {row["part"] for row in ROWS} == set(coverage.PARTS)
    wanted = {"number", "kind", "originals", "value", "error", "n", "command", "commit"}
    assert all(wanted <= set(row) for row in ROWS)
    assert all(row["command"].startswith("python -m benchmarks.coverage ") for row in ROWS)


@pytest.mark.parametrize("part", coverage.PARTS)
def test_each_part_still_runs_and_mostly_holds_the_truth(part, monkeypatch):
    monkeypatch.setattr(coverage, "ORIGINALS", (8,))
    monkeypatch.setattr(coverage, "MANY", 2000)
    rows = coverage.measure(part, 20)
    told = {row["number"] for row in ROWS if row["part"] == part}
    assert {row["number"] for row in rows} == told
    held = [row["value"] for row in rows if row["number"] != coverage.TYPE_I]
    assert sum(held) / len(held) > 0.75  # numbers of one study hang together
