"""`semsim-studio federated`: what it prints, keeps and refuses."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from semsim.cli.main import app
from semsim.sets.recognition import STATISTIC
from semsim.systems.federated.command import chosen_arms
from semsim.systems.federated.settings import ARMS

TINY = [
    *("federated", "--dataset", "symbols:train_per_class=1,test_per_class=1,size=16"),
    *("--network", "mlp-3", "--clients", "2", "--rounds", "2", "--images", "2"),
    *("--attack", "invgrad:steps=1", "--arms", "uplink-closed-form"),
]


def test_a_comparison_is_told_and_kept(tmp_path: Path):
    done = CliRunner().invoke(app, [*TINY, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    for words in ("FedAvg", "numbers up", "first layer solved", "A client finds γ"):
        assert words in done.output
    lead = re.search(r"A reference classifier .*recognises .* from plain training", done.output)
    assert lead, done.output
    assert lead.start() < done.output.index(STATISTIC) < done.output.index("numbers up")
    kept = json.loads((tmp_path / "out" / "result.json").read_text())
    assert kept["order"]["network"] == "mlp-3"
    assert (tmp_path / "out" / "sets" / "uplink-closed-form" / "manifest.parquet").exists()
    again = CliRunner().invoke(app, [*TINY, "--out", str(tmp_path / "out"), "--json"])
    tables = json.loads(again.stdout)
    assert [row["scheme"] for row in tables["training"]] == ["FedAvg", "PBPFL"]
    assert {"forward", "bytes_up"} <= {row["cost"] for row in tables["cost"]}
    assert "uplink-closed-form" in [row["arm"] for row in tables["leak"]]
    assert "A client finds γ" in again.stderr


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--network", "lenet-5000"], "lenet-5000"),
        (["--split", "odd"], "split must be iid or dirichlet"),
        (["--arms", "everybody"], "everybody"),
        (["--noise-scope", "all"], "noise_scope"),
        (["--images", "1", "--arms", "all"], "--images 2"),
    ],
)
def test_a_wrong_word_is_refused_with_what_is_known(tmp_path: Path, more: list[str], words: str):
    done = CliRunner().invoke(app, [*TINY, "--out", str(tmp_path / "out"), *more])
    assert done.exit_code == 2
    assert words in done.output
    assert not (tmp_path / "out").exists()


def test_arms_by_name():
    assert chosen_arms("all") == tuple(ARMS)
    assert chosen_arms("none") == ()
    assert chosen_arms("uplink, server-pbpfl") == ("uplink", "server-pbpfl")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["serve", "localhost:1"], "Say either --certificates or --insecure"),
        (["serve", "localhost:1", "--insecure", "--network", "odd"], "odd"),
        (["join", "localhost:1", "--number", "0"], "Say either --authority or --insecure"),
        (["join", "localhost:1", "--number", "0", "--authority", "nowhere.crt"], "nowhere.crt"),
    ],
)
def test_what_cannot_be_shared_is_refused_before_anything_starts(tmp_path, words, said):
    done = CliRunner().invoke(app, ["federated", *words, "--out", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert said in done.output
    assert not (tmp_path / "out").exists()


def test_certificates_are_made(tmp_path):
    done = CliRunner().invoke(app, ["federated", "certificates", str(tmp_path / "new")])
    assert done.exit_code == 0, done.output
    assert "authority.crt" in done.output
    assert (tmp_path / "new" / "server.key").exists()


def test_a_table_of_ones_own_is_compared(tmp_path: Path):
    table = tmp_path / "bank.csv"
    rows = [f"{row},{'ab'[row % 2]},{row * row % 7}" for row in range(30)]
    table.write_text("\n".join(["x,kind,y", *rows]))
    words = ["--table", str(table), "--target", "y", "--network", "mlp-3", "--rounds", "2"]
    more = ["--images", "2", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, ["federated", *words, *more])
    assert done.exit_code == 0, done.output
    assert "first layer's gradient gives a client's row away" in " ".join(done.output.split())
    alone = CliRunner().invoke(app, ["federated", "--table", str(table), *more])
    assert alone.exit_code == 2
    assert "--target" in alone.output
