import json
from dataclasses import fields

import pandas as pd
import pytest
import torch
from made_weights import make_classifier
from typer.testing import CliRunner

from semsim.base.sets.imports import list_imports, read_import
from semsim.cli.imports import app
from semsim.images import write_png
from semsim.importers import IMPORTERS

VOTES = "model,image_id,class_name,annotator,answer\nm,1,cat,A,cat\nm,2,cat,A,none\n"


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def votes(tmp_path):
    path = tmp_path / "my votes.csv"
    path.write_text(VOTES)
    return path


def test_an_import_lands_where_compare_looks(votes, tmp_path):
    done = run("table", votes, "--data-dir", tmp_path / "data")
    assert done.exit_code == 0, done.output
    for words in ("votes            2", "Nothing is left out.", "Wrote "):
        assert words in done.output
    (folder,) = list_imports(tmp_path / "data/imports")
    assert folder.name == "my_votes"
    assert len(read_import(folder).votes) == 2


def test_a_dry_run_says_the_same_and_writes_nothing(votes, tmp_path):
    done = run("table", votes, "--data-dir", tmp_path / "data", "--dry-run")
    assert done.exit_code == 0
    assert "votes            2" in done.output
    assert "Dry run: nothing was written." in done.output
    assert not (tmp_path / "data").exists()


def test_a_plan_is_printed_as_json_too(votes, tmp_path):
    votes.write_text(VOTES + "m,3,cat,,cat\n")
    for more in ((), ("--dry-run",)):
        done = run("table", votes, "--out", tmp_path / "out", "--json", *more)
        assert done.exit_code == 1
        parts = json.loads(done.stdout)
        assert {"name": "votes", "n": 2} in parts["counts"]
        (left,) = parts["left_out"]
        assert left["why"] == "has no annotator"
        assert ("Dry run" if more else "Wrote ") in done.stderr


def test_what_is_left_out_is_named_and_the_exit_code_says_so(votes, tmp_path):
    votes.write_text(VOTES + "m,3,cat,,cat\n")
    for words in (("--dry-run",), ("--out", tmp_path / "out")):
        done = run("table", votes, *words)
        assert done.exit_code == 1
        assert "Left out: 1" in done.output
        assert "my votes.csv line 4: has no annotator" in done.output
    assert len(read_import(tmp_path / "out").votes) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("table", "gone.csv"), "There is nothing at gone.csv"),
        (("table", "VOTES", "--model-column", "net"), "lacks the columns net"),
        (("table", "VOTES", "--name", "../x"), "An import's name is that of a folder"),
        (("table", "VOTES", "--out", "TAKEN"), "is there already"),
        (("train-with-ori", "TAKEN"), "holds no <id>/"),
    ],
)
def test_when_nothing_can_be_done_nothing_is_written(votes, tmp_path, words, message):
    (tmp_path / "taken").mkdir()
    places = {"VOTES": votes, "TAKEN": tmp_path / "taken"}
    done = run(*(places.get(word, word) for word in words), "--data-dir", tmp_path / "data")
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())
    assert not (tmp_path / "data").exists()


def test_a_second_import_of_one_name_is_refused(votes, tmp_path):
    assert run("table", votes, "--data-dir", tmp_path).exit_code == 0
    again = run("table", votes, "--data-dir", tmp_path)
    assert again.exit_code == 2
    assert "choose another --name" in again.output
    assert run("table", votes, "--data-dir", tmp_path, "--name", "b").exit_code == 0


@pytest.mark.parametrize("kind", IMPORTERS)
def test_every_importer_has_a_command_with_its_settings(kind, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    done = run(kind, "--help")
    assert done.exit_code == 0
    for one in fields(IMPORTERS[kind]):
        named = one.metadata["option"] or one.name.replace("_", "-")
        assert f"--{named} " in done.output


def test_settings_of_the_command_reach_the_importer(votes, tmp_path):
    votes.write_text("net,image_id,class_name,annotator,answer\nm,1,cat,A,cat\n")
    done = run(
        *("table", votes, "--out", tmp_path / "o", "--model-column", "net", "--votes-per-item", 3),
        *("--dataset", "pets", "--headline", "mean-response"),
    )
    assert done.exit_code == 0, done.output
    labels = pd.read_parquet(tmp_path / "o/labels.parquet")
    assert labels["dataset"].tolist() == ["pets"]
    assert labels["votes_per_item"].tolist() == [3]
    assert labels["headline"].tolist() == ["mean-response"]


def test_where_no_picture_comes_along_a_judge_has_nothing_to_read(votes, tmp_path):
    make_classifier(tmp_path / "weights/judges/J.safetensors")
    where = ("--data-dir", tmp_path / "data", "--checkpoints", tmp_path / "weights")
    done = run("table", votes, *where, "--distractor-model", "J")
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1] == "No reconstructions, nothing was judged."


def test_a_judge_reads_what_is_imported_or_nothing_is(tmp_path):
    for name in ("1_0_ori", "1_0_rec", "2_1_ori", "2_1_rec"):
        picture = torch.rand(3, 16, 16, generator=torch.Generator().manual_seed(len(name)))
        write_png(picture, tmp_path / f"models/m/{name}.png")
    make_classifier(tmp_path / "weights/judges/J.safetensors", classes=("0", "1"))
    make_classifier(tmp_path / "weights/judges/K.safetensors", classes=("0", "dog"))
    words = ("model-folders", tmp_path / "models", "--checkpoints", tmp_path / "weights")
    words += ("--data-dir", tmp_path / "data", "--distractor-model")
    refused = run(*words, "K")
    assert refused.exit_code == 2
    assert "is known to one of them only" in refused.output
    assert not (tmp_path / "data").exists()
    done = run(*words, "J")
    assert done.exit_code == 0, done.output
    assert "4 pictures judged" in done.output
    assert list((tmp_path / "data/runs/models").glob("*/predictions.parquet"))
