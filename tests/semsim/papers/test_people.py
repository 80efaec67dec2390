"""`reproduce people` on small copies made here."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from made_people import MAKERS
from typer.testing import CliRunner

from semsim.cli.main import app
from semsim.metrics import Resources
from semsim.papers.people import (
    COLUMNS,
    HALVES,
    SHUFFLE,
    Workshop,
    judged_by_people,
    people_table,
    shuffled_semsims,
)
from semsim.people import SOURCES
from semsim.weights import CHECKPOINTS

pytestmark = pytest.mark.usefixtures("unpinned")


@pytest.fixture(scope="module")
def copies(tmp_path_factory, unpinned):
    folder = tmp_path_factory.mktemp("copies")
    for name, make in MAKERS.items():
        make(folder / name)
    return folder


@pytest.fixture(scope="module")
def found(copies, tmp_path_factory):
    place = Workshop(
        copies=(copies,),
        scores=tmp_path_factory.mktemp("scores"),
        resources=Resources(checkpoints=CHECKPOINTS),
    )
    return judged_by_people(list(SOURCES), place)


def of(rows, source):
    return rows[rows["source"] == source].set_index("metric")


def test_every_source_has_a_row_and_pixel_metrics_agree_where_noise_decides(found):
    rows, _ = found
    assert list(rows.columns) == list(COLUMNS)
    assert list(dict.fromkeys(rows["source"])) == list(SOURCES)
    recurrent = of(rows, "recurrent")
    assert recurrent.loc["mse", "rho"] > 0.95
    assert (recurrent.loc["mse", "n"], recurrent.loc["mse", "n_originals"]) == (16, 8)
    assert recurrent.loc["psnr", "soft_accuracy"] > 0.9
    assert pd.isna(recurrent.loc["mse", "auc"])  # a share of a degradation is none of a picture
    assert {"semsim:demo", "semsim:demo.start"} <= set(recurrent.index)


def test_the_ceiling_is_of_people_and_stands_where_single_people_are(found):
    rows, _ = found
    assert of(rows, "recurrent").loc[HALVES, "rho"] > 0.9
    paper = of(rows, "semsim-votes")
    assert paper.loc[HALVES, "rho"] > 0
    assert paper.loc[HALVES, "auc"] > 0.5
    assert "no single votes" in of(rows, "things-mooney").loc[HALVES, "why"]


def test_single_pictures_are_ranked_where_there_is_one_model(found):
    rows, _ = found
    mooney = of(rows, "things-mooney")
    assert (mooney.loc["mse", "of"], mooney.loc["mse", "n"]) == ("pictures", 10)
    assert mooney.loc["mse", "rho"] > 0.9
    assert mooney.loc["mse", "auc"] > 0.9


def test_the_papers_votes_bring_their_scores(found):
    rows, _ = found
    paper = of(rows, "semsim-votes")
    assert set(paper.index) == {"psnr", "mse", HALVES}
    assert paper.loc["psnr", "rho"] == 1
    assert paper.loc["psnr", "auc"] > 0.5


@pytest.mark.parametrize("name", ["texture-vs-shape", "cifar-10h", "label-errors"])
def test_where_people_saw_the_originals_there_is_no_metric_and_a_reason(found, name):
    rows, _ = found
    own = of(rows, name)
    assert list(own.index) == [HALVES]
    assert "stands as original and as reconstruction" in own.loc[HALVES, "why"]


def test_metrics_without_weights_are_named(found):
    _, absent = found
    assert "ms-ssim" in absent  # pictures of 16 pixels are too small
    assert "psnr" not in absent


def test_a_semsim_of_shuffled_votes_is_trained_once_and_stands_in_one_row(copies, tmp_path):
    place = Workshop(
        copies=(copies / "recurrent",),
        scores=tmp_path / "scores",
        resources=Resources(checkpoints=CHECKPOINTS),
        shuffled=tmp_path / "shuffled",
        shuffles=1,
    )
    made = shuffled_semsims(place)
    (before,) = (path.stat().st_mtime_ns for path in made.glob("shuffle-01.safetensors"))
    rows, _ = judged_by_people(["recurrent"], place)
    (title,) = rows.loc[rows["metric"] == SHUFFLE.rstrip("-"), "title"]
    assert "1 shuffle of the votes" in title
    assert (made / "shuffle-01.safetensors").stat().st_mtime_ns == before


def test_without_the_shipped_semsim_there_is_nothing_to_shuffle(tmp_path):
    bare = Resources(checkpoints=tmp_path)
    place = Workshop(
        copies=(), scores=tmp_path, resources=bare, shuffled=tmp_path / "s", shuffles=1
    )
    assert shuffled_semsims(place) is None


def test_an_absent_source_has_a_line_that_says_how_to_get_it(tmp_path):
    place = Workshop(copies=(tmp_path,), scores=tmp_path / "s", resources=Resources())
    rows, _ = judged_by_people(["recurrent"], place)
    assert rows["why"].tolist() == [
        "not here: `semsim-studio people get recurrent`, or --from a folder with a copy"
    ]
    assert people_table(rows).cells.iloc[0]["metric"] == "–"


def test_the_command_writes_the_table_and_prints_it(copies, tmp_path):
    words = ["reproduce", "people", "--from", str(copies), "--out", str(tmp_path / "out")]
    words += ["--sources", "semsim-votes,cifar-10h", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["metrics"]
    assert {row["source"] for row in rows} == {"semsim-votes", "cifar-10h"}
    with open(tmp_path / "out/people.csv", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == len(rows)
    text = (tmp_path / "out/people.md").read_text(encoding="utf-8")
    assert "soft pairwise accuracy" in text
    assert SOURCES["cifar-10h"].licence in text
    assert np.isfinite([row["rho"] for row in rows if row["metric"] == "psnr"]).all()


def test_the_command_refuses_what_is_not_there(tmp_path):
    done = CliRunner().invoke(app, ["reproduce", "people", "--from", str(tmp_path / "no")])
    assert done.exit_code == 2
    assert "There is no folder" in done.stderr
