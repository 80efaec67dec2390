"""`study simulate --with vlm`, in process, against a server of our own."""

import json

import pandas as pd
import pytest
from chat_server import KEY, first_word, serving
from typer.testing import CliRunner

from annotation.cli.main import app

MODEL = "toy-vl"


@pytest.fixture
def made(run, folder):
    done = run("create", "sees", "--set", folder, "--voter", MODEL, "--votes-per-item", "2")
    assert done.exit_code == 0, done.output
    assert f"answered by model annotators ({MODEL})" in done.output
    return "sees"


@pytest.fixture
def vlm(run, made, monkeypatch):
    monkeypatch.setenv("SEMSIM_VLM_KEY", KEY)

    def vlm(server, *options):
        return run("simulate", made, "--with", "vlm", "--base-url", server.url, *options)

    return vlm


def test_a_model_answers_and_a_second_run_goes_on(run, vlm, tmp_path):
    assert f"model annotators ({MODEL})" in run("list").output
    with serving(first_word) as server:
        first = vlm(server, "--annotators", "2", "--calls", "5")
        assert first.exit_code == 0, first.output
        assert "5 of 8 votes, 0 refused, 0 malformed, 5 calls" in first.output
        assert "Stopped: the budget of 5 calls is used up." in first.output
        second = vlm(server, "--annotators", "2", "--voter", MODEL, "--calls", "50")
        assert "8 of 8 votes" in second.output
        third = vlm(server, "--annotators", "2")
        assert third.exit_code == 0
    assert len(server.asked) == 8
    shown = run("progress", "sees").output
    assert shown.startswith("sees: 8 of 8 votes\n")
    assert f"\n{MODEL} 1  " in shown
    run("export", "sees", "--out", tmp_path / "votes.csv")
    assert set(pd.read_csv(tmp_path / "votes.csv")["voter"]) == {f"model:{MODEL}"}
    (row,) = json.loads(run("list", "--json").stdout)["studies"]
    assert row["voter"] == f"model:{MODEL}"


def test_what_cannot_be_is_told(run, vlm, folder, monkeypatch):
    run("create", "people", "--set", folder)
    with serving(first_word) as server:
        told = run("simulate", "people", "--with", "vlm", "--base-url", server.url)
        assert "create one on the same sets with --voter NAME" in told.output
        assert "got other" in vlm(server, "--voter", "other").output
        assert "--price-in, --price-out" in vlm(server, "--money", "3").output
        assert "takes 2 votes" in vlm(server, "--annotators", "3").output
        monkeypatch.setenv("SEMSIM_VLM_KEY", "sk-wrong")
        wrong = vlm(server)
        assert wrong.exit_code == 2
        assert "the key is wrong or missing" in wrong.output
        assert "sk-wrong" not in wrong.output
        assert server.url not in wrong.output
    assert "give it with --base-url" in run("simulate", "sees", "--with", "vlm").output
    assert run("simulate", "sees").exit_code == 2  # not by the jury


def test_no_option_takes_a_key():
    page = CliRunner().invoke(app, ["simulate", "--help"], env={"COLUMNS": "200"}).output
    assert "--key-file" in page
    assert "--key " not in page
