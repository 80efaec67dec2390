"""`semsim-studio study plan crowd`."""

import json

import pytest
from typer.testing import CliRunner

from annotation.cli.main import app
from annotation.design.workload import COLUMNS, FIGURES

SMALL = ("plan", "crowd", "--items", "300", "--each", "40", "--runs", "2")


def run(*arguments):
    return CliRunner().invoke(app, [*SMALL, *arguments])


def test_the_table_has_each_figure_by_catch_trials_and_says_how_many_are_enough():
    said = run("--wage", "10")
    assert said.exit_code == 0, said.output
    head, columns, *lines, needed, early = said.stdout.splitlines()
    assert "4 quiet looks in a row" in early
    assert "nobody real: 2 studies each of 300 pictures × 5 votes" in head
    assert columns.split() == ["catch", "trials", "per", "vote", "none", "0.025", "0.05", "0.1"]
    assert [line.split("  ")[0] for line in lines] == [title for title, _ in FIGURES.values()]
    assert needed.startswith("At most 3.00% wrong labels: ")
    assert run("--most-wrong", "0").stdout.splitlines()[-2].endswith("people who see more.")
    assert (
        run("--most-wrong", "1").stdout.splitlines()[-2].endswith("without catch trials as well.")
    )


def test_as_json_it_has_the_same_rows_without_what_is_no_number():
    rows = json.loads(run("--json", "--spammers", "0").stdout)["figures"]
    assert all(set(row) == set(COLUMNS) for row in rows)
    assert len(rows) == 4 * len(FIGURES)
    assert {row["mean"] for row in rows if row["figure"] == "caught"} == {None}
    money = {row["catch_rate"]: row["mean"] for row in rows if row["figure"] == "money"}
    hours = {row["catch_rate"]: row["mean"] for row in rows if row["figure"] == "hours"}
    assert money[0.05] == pytest.approx(12 * hours[0.05])  # the wage where none is given


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--arrivals", "0", "arrivals must be above 0; got 0"),
        ("--pause-after", "-1", "pause_after must be 0 or more; got -1"),
    ],
)
def test_what_is_wrong_is_named(option, value, words):
    said = run(option, value)
    assert said.exit_code == 2
    assert words in said.stderr
