"""`reproduce copa`: what it prints, writes and does not compute again."""

import json
import math

import pandas as pd
import pytest
import torch
from made_papers import check_kept
from PIL import Image
from typer.testing import CliRunner

from benchmarks.papers import PARTS
from semsim.base.errors import SettingsError
from semsim.cli.reproduce import app
from semsim.papers import REPRODUCTIONS
from semsim.papers.copa import (
    METHODS,
    TABLE_1,
    TABLE_2,
    Networks,
    kept_rows,
    pictures_of,
    shown_pair,
    table_1,
    table_2,
    text_1,
    text_2,
    varied,
    works_of,
)
from semsim.types import LabelledImages
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
    parts = json.loads(done.stdout)
    assert [row["value"] for row in parts["table_1"]] == [-2266.5, -1995.0, 0.0, -2146.0]
    assert {row["method"] for row in parts["table_2"]} >= {"rgap", "grey"}
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
        ("--image-dir", "nowhere", "No folder nowhere"),
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


def labelled(labels, classes=("deer", "ship", "truck")):
    return LabelledImages(
        dataset="made",
        classes=classes,
        ids=tuple(f"i{n}" for n in range(len(labels))),
        images=torch.rand(len(labels), 3, 4, 4),
        labels=torch.tensor(labels),
    )


def row(method, mse, *, variant=1, error="", blew_up=False, **fit):
    psnr = -10 * math.log10(mse) if mse else math.inf
    fit = {"equation_residual": math.nan, "residual": math.nan, "solver": "recursion", **fit}
    return {
        **{"activation": "tanh", "variant": variant, "method": method, "mse": mse},
        **{"psnr": psnr, "psnr_paper": psnr + 48.13, "error": error, "blew_up": blew_up, **fit},
    }


def test_table_1_rounds_to_the_printed_numbers():
    table = table_1()
    # Half away from zero, as the paper rounds.
    printed = [-math.floor(-value + 0.5) for value in table["value"]]
    assert printed == list(table["paper"]) == list(TABLE_1.values())
    assert "−2,266.5  −2,267" in text_1(table)


def test_table_1_says_the_condition_for_the_pull_back_ours_and_the_paper_s():
    table = table_1()
    # 3×32×32 to 6×30×30, 6×15×15, 6×30×30 and 1×30×30: the second and the last narrow.
    assert list(table["pull_back"]) == [True, False, True, False]
    assert list(table["full_rank"]) == [True, False, True, False]
    header, *lines = text_1(table).splitlines()
    assert header.endswith("layer 1 widens  its W has full rank")
    assert [line.split()[-2:] for line in lines] == [[word] * 2 for word in ("yes", "no") * 2]


def test_printed_psnr_is_of_255_for_images_up_to_1():
    """Return where four digits of the MSE are enough to tell."""
    for mse, psnr in (cell for pair in TABLE_2.values() for cell in pair):
        if mse > 0.02:
            assert psnr == pytest.approx(48.1308 - 10 * math.log10(mse), abs=0.02)


def test_the_cells_that_only_the_second_copy_of_the_paper_shows():
    animal = {key: pair[1] for key, pair in TABLE_2.items()}
    assert animal["leaky-relu", 4, "copa"] == (0.1061, 57.8722)
    assert animal["leaky-relu", 4, "copa denoised"] == (0.0908, 58.5509)
    assert animal["leaky-relu", 4, "rgap"] == (0.0382, 62.3075)


def test_table_2_is_a_mean_over_images_and_seeds():
    rows = [row("rgap", 0.04), row("rgap", 0.02, blew_up=True), row("grey", 0.05)]
    rows += [row("copa", 0.0), row("copa", math.nan, error="no finite solution")]
    table = table_2(pd.DataFrame(rows)).set_index("method")
    assert list(table.index) == ["rgap", "copa", "grey"]
    assert table.loc["rgap", "mse"] == pytest.approx(0.03)
    assert table.loc["rgap", "mse_sd"] == pytest.approx(0.01 * math.sqrt(2))
    assert tuple(table.loc["rgap", ["n", "failed", "blew_up"]]) == (2, 0, 1)
    assert tuple(table.loc["copa", ["n", "failed"]]) == (1, 1)
    assert table.loc["copa", "psnr"] == math.inf


def test_how_well_equations_and_gradient_fit_is_a_median():
    fits = [(1e-3, 0.25), (3e-3, 0.5), (0.5, 2.0)]
    rows = [row("rgap", 0.04, equation_residual=e, residual=g) for e, g in fits]
    table = table_2(pd.DataFrame([*rows, row("grey", 0.05, residual=0.7)])).set_index("method")
    assert tuple(table.loc["rgap", ["equation_residual", "gradient_distance"]]) == (3e-3, 0.5)
    assert math.isnan(table.loc["grey", "equation_residual"])
    lines = [" ".join(one.split()) for one in text_2(table.reset_index()).splitlines()]
    assert " 3e-03 5e-01 3 " in lines[1]
    assert " - 7e-01 1" in lines[2]


def test_the_paper_s_cells_stand_beside_ours():
    rows = [row("rgap", 0.04), row("copa-prior", 1e-5), row("copa", math.nan, error="no")]
    lines = text_2(table_2(pd.DataFrame(rows))).splitlines()
    assert lines[1].split()[-4:] == ["0.0483,", "61.3", "0.0578,", "60.5"]
    assert "1 failed" in lines[2]
    assert "1e-05" in lines[3]


def test_where_copa_took_the_image_of_rgap_is_counted():
    rows = [row("copa", 0.04, solver=solver) for solver in ("recursion", "rgap", "rgap")]
    table = table_2(pd.DataFrame(rows))
    assert list(table["as_rgap"]) == [2]
    assert "3, 2 as rgap" in text_2(table)


def test_images_are_taken_class_by_class():
    images = labelled([2, 2, 2, 0, 0, 1])
    assert varied(images, 5).labels.tolist() == [0, 1, 2, 0, 2]
    assert varied(images, 5).ids == ("i3", "i5", "i0", "i4", "i1")
    for count in (0, 7):
        with pytest.raises(SettingsError, match="1 to 6"):
            varied(images, count)


def test_figures_show_a_truck_and_a_deer_where_there_are():
    assert shown_pair(labelled([1, 0, 0, 2])).ids == ("i3", "i1")
    assert shown_pair(labelled([1, 1, 0])).ids == ("i2", "i0")
    assert shown_pair(labelled([1])).ids == ("i0",)


def test_every_network_is_one_piece():
    pieces = Networks(labelled([0, 1]), [1, 2], ["tanh"], range(2)).pieces
    assert len({key.partition("-")[0] for key in pieces}) == 1
    assert list(pieces.values()) == [
        *(("tanh", 1, 0), ("tanh", 1, 1)),
        *(("tanh", 2, 0), ("tanh", 2, 1)),
    ]
