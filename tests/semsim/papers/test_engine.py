"""`reproduce … --plan`: what would run, what is done, and what was not run of the paper.

And what simulated annotators and metrics say on average, and of which sets.
"""

import json
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from semsim.cli.reproduce import app
from semsim.datasets.symbols import GLYPHS
from semsim.metrics import find_metric
from semsim.papers import REPRODUCTIONS
from semsim.papers.engine import BELOW, Work, plan_text
from semsim.papers.judged import Judged
from semsim.papers.pbpfl import loaded
from semsim.papers.simulated_votes import CONTROL
from semsim.reporting.not_run import NOT_RUN, SECTIONS

PAPERS = Path(__file__).parents[3] / "docs" / "papers.md"
# By reproduction: what asks for its smallest plan.
ASKED = {
    "copa": ("--count", "2", "--seeds", "3", "--variants", "4", "--activations", "tanh"),
    "deployed": ("--preset", "smoke"),
    "everything": ("--preset", "smoke"),
    "ensembler": ("--preset", "smoke"),
    "pbpfl": ("--preset", "smoke"),
    "threats": ("--preset", "smoke"),
}


def planned(name, folder, *words):
    place = ("--data-dir", folder) if name == "ensembler" else ("--out", folder)
    return CliRunner().invoke(app, [name, "--plan", *map(str, (*ASKED[name], *place, *words))])


def test_every_reproduction_says_what_was_not_run():
    # `people` is of no paper; a source that it lacks has a row that says so.
    assert set(NOT_RUN) == set(REPRODUCTIONS) - {"people"} == set(SECTIONS)
    assert all(NOT_RUN.values())


def test_the_page_ends_each_paper_with_its_list():
    # tests/test_claims.py holds that the page is what `benchmarks.claims` writes.
    page = PAPERS.read_text()
    ends = {
        name: re.search(rf"^## {re.escape(head)}$.*?(\n## |\Z)", page, re.M | re.S)
        for name, head in SECTIONS.items()
    }
    without = [n for n, end in ends.items() if end is None or f"=not-run {n} list-->" not in end[0]]
    assert not without


@pytest.mark.parametrize("name", ASKED)
def test_a_plan_counts_and_computes_nothing(name, tmp_path):
    folder = tmp_path / "out"
    done = planned(name, folder)
    assert done.exit_code == 0, done.output
    assert re.search(r"\d cells, 0 of them done\. A (step|cell) is ", done.output)
    for one in NOT_RUN[name]:
        assert f"- {one.what}: {one.why}." in done.output
    assert not folder.exists()
    rows = json.loads(planned(name, folder, "--json").stdout)["works"]
    assert all(row["cells"] > 0 and row["steps"] > 0 and row["done"] == 0 for row in rows)


@pytest.fixture
def blank_symbols(monkeypatch):
    """Symbols on which nothing is drawn: a plan counts pictures, whatever they show."""

    def blank(split, count, size, seed):
        return np.zeros((len(GLYPHS) * count, size, size, 3), np.float32)

    monkeypatch.setattr("semsim.datasets.symbols._drawn", blank)
    loaded.cache_clear()
    yield
    loaded.cache_clear()


@pytest.mark.usefixtures("blank_symbols")
@pytest.mark.parametrize("name", [one for one in ASKED if one != "copa"])
def test_a_plan_of_what_is_not_here_is_counted_beside_the_preset_below(name):
    largest = "small" if name == "threats" else "paper"
    asked = CliRunner().invoke(app, [name, "--plan", "--preset", largest])
    assert asked.exit_code == 0, asked.output
    said = " ".join(asked.output.split())
    times = r"([\d.,]+) times the steps of its"
    found = re.search(
        rf"Against {BELOW[largest]}, {largest} takes {times} trainings and {times} attacks; "
        "counted, not",
        said,
    )
    assert found
    assert all(float(one.replace(",", "")) > 1 for one in found.groups())


def test_a_plan_counts_what_the_command_would_do(tmp_path):
    copa, pbpfl = (
        json.loads(planned(name, tmp_path / name, "--json").stdout)["works"]
        for name in ("copa", "pbpfl")
    )
    assert [row["cells"] for row in copa] == [2 * 3]  # pictures and networks
    cells = {(row["part"], row["what"]): row["cells"] for row in pbpfl}
    for scheme in ("FedAvg-MSE", "PBPFL"):  # 1, 5 and 10 clients, one seed
        assert cells["Table 2", f"train mlp-3, {scheme}"] == 3
    attacked = {count for (part, _), count in cells.items() if part == "What leaks"}
    assert attacked == {2 * 2 * 2}  # untrained and trained, two seeds, two pictures


def test_steps_are_told_apart_by_trainings_and_attacks():
    def works(trained, attacked):
        return [
            Work(part="a", what="train x", cells=2, done=1, steps=trained),
            Work(part="a", what="attack x", cells=1_000, done=0, steps=attacked),
        ]

    def said_of(own, below, preset):
        return plan_text("copa", own, (preset, lambda lower: below))

    said = said_of(works(30, 48_000), works(20, 1_000), "paper")
    assert "1,002 cells, 1 of them done. A cell is a picture that COPA" in said
    assert "paper takes 1.5 times the steps of its trainings and 48 times the steps of its" in said
    assert "Against" not in said_of(works(1, 1), works(1, 1), "smoke")


@pytest.fixture
def judged() -> Judged:
    psnr = {"a": [20.0, 30.0], "b": [20.0, math.inf], "same": [math.inf, math.inf]}
    keys = [
        {
            "dataset": "toy",
            "attack": CONTROL if model == "same" else "invgrad",
            "model": model,
            "image_id": str(number),
        }
        for model in psnr
        for number in range(2)
    ]
    values = [value for own in psnr.values() for value in own]
    scores = pd.DataFrame(keys).assign(metric="psnr", value=values)
    votes = pd.DataFrame(keys).assign(recognised=[True, False, True, True, True, True])
    return Judged(
        labels=pd.DataFrame(keys),
        votes=votes,
        scores=scores,
        specs=(find_metric("psnr").spec, find_metric("mse").spec),
        absent={},
    )


def test_one_infinite_score_does_not_drown_the_others(judged):
    found = {model: judged.of([model]).means() for model in ("a", "b", "same")}
    assert {model: one["psnr"] for model, one in found.items()} == {
        "a": 25.0,
        "b": 20.0,
        "same": math.inf,
    }
    assert {model: one["people"] for model, one in found.items()} == {"a": 0.5, "b": 1, "same": 1}
    assert judged.of(["a", "b"]).means()["psnr"] == pytest.approx(70 / 3)
    assert all(math.isnan(one["mse"]) for one in found.values())  # nobody asked it
