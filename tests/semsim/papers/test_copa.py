"""`reproduce copa`: what it prints, writes and does not compute again."""

import json

import pandas as pd
import pytest
from made_papers import check_kept
from PIL import Image
from typer.testing import CliRunner

from benchmarks.papers import PARTS
from semsim.attacks.linear.rows import METHODS
from semsim.cli.reproduce import app
from semsim.papers import REPRODUCTIONS
from semsim.papers.copa import Networks, kept_rows, pictures_of, table_2, varied, works_of
from tests.made_campaign import one_thread_cluster

SMALL = ["copa", "--count", "1", "--seeds", "1", "--variants", "4", "--activations", "tanh"]


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    out = tmp_path_factory.mktemp("copa")
    return run(*SMALL, "--out", out), out


def test_both_tables_are_printed(first):
    done, _ = first
    assert done.exit_code == 0, done.output
    assert "−2,266.5  −2,267" in done.output
    assert "1 images of built-in pictures" in done.output
    for method in ("rgap", "copa denoised", "copa-prior", "grey"):
        assert f"tanh        4        {method}" in done.output
    assert "0.0472, 61.4" in done.output


def test_both_tables_are_printed_as_json_too(first):
    plain, out = first
    done = run(*SMALL, "--out", out, "--json")
    rows = json.loads(done.stdout)
    assert [row["value"] for row in rows if row["table"] == 1] == [-2266.5, -1995.0, 0.0, -2146.0]
    assert {row["method"] for row in rows if row["table"] == 2} >= {"rgap", "grey"}
    assert "Table 2: 1 images of built-in pictures" in done.stderr
    for written in (done, plain):
        assert f"Wrote {out / 'figure1.png'}" in written.stderr
        assert "Wrote" not in written.stdout


def test_tables_and_the_figure_are_written(first):
    _, out = first
    assert list(pd.read_csv(out / "table1.csv")["value"]) == [-2266.5, -1995.0, 0.0, -2146.0]
    rows = pd.read_parquet(out / "rows.parquet")
    written = pd.read_csv(out / "table2.csv")
    assert list(written["mse"]) == pytest.approx(list(table_2(rows)["mse"]))
    assert Image.open(out / "figure1.png").size[0] > 1000
    assert not (out / "figure2.png").exists()


def test_what_benchmarks_keep_of_it_lies_in_its_folder(first):
    _, out = first
    lacking = [("tanh", 1), ("tanh", 2), ("tanh", 3), *(("leaky-relu", one) for one in range(1, 5))]
    copies = {f"{kind} {n} {one}": f"tanh 4 {one}" for kind, n in lacking for one in METHODS}
    check_kept("copa", PARTS["copa"].read(out), {"methods": copies})


def test_a_plan_says_what_is_done(first):
    _, out = first
    networks = Networks(varied(pictures_of(None), 1), [4, 3], ["tanh"], [0])
    done, none = works_of(networks, out / "pieces")
    assert (done.cells, done.done) == (1, 1)
    assert (none.cells, none.done) == (1, 0)


def test_a_finished_network_is_not_computed_again(first):
    _, out = first
    (piece,) = (out / "pieces").glob("*.parquet")
    pd.read_parquet(piece).assign(mse=0.125).to_parquet(piece)
    networks = Networks(varied(pictures_of(None), 1), [4], ["tanh"], [0])
    rows = kept_rows(networks, out / "pieces")
    assert set(rows["mse"]) == {0.125}


def test_several_processes_find_the_same_as_one(first, tmp_path):
    networks, told = Networks(varied(pictures_of(None), 1), [4], ["tanh"], [0, 1]), []
    rows = kept_rows(networks, tmp_path, told.append, workers=2)
    assert (told[-1].done, told[-1].total) == (200, 200)
    here = pd.read_parquet(first[1] / "rows.parquet")
    shared = rows[rows["seed"] == 0]
    assert list(shared["mse"]) == pytest.approx(list(here["mse"]))
    assert list(rows["seed"].unique()) == [0, 1]


def test_a_cluster_finds_the_same_as_this_process(first, tmp_path):
    networks = Networks(varied(pictures_of(None), 1), [4], ["tanh"], [0])
    with one_thread_cluster() as cluster:
        there = kept_rows(networks, tmp_path, scheduler=cluster.scheduler_address)
    here = pd.read_parquet(first[1] / "rows.parquet")
    assert list(there["mse"]) == pytest.approx(list(here["mse"]))


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--variants", "5", "1,2,3,4"),
        ("--activations", "relu", "tanh, leaky-relu"),
        ("--seeds", "0", "1 or more"),
        ("--count", "0", "--count is 1 to"),
        ("--workers", "0", "or equal to 1"),
        ("--images", "nowhere", "No folder nowhere"),
        ("--scheduler", "nonsense://x", "No Dask scheduler answers"),
    ],
)
def test_what_cannot_be_done_says_why(option, value, says, tmp_path):
    done = run("copa", option, value, "--out", tmp_path)
    assert done.exit_code == 2
    assert says in done.output


def test_every_reproduction_is_a_command_with_a_help():
    for name in REPRODUCTIONS:
        assert run(name, "--help").exit_code == 0
