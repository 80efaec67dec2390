"""`campaign run --own-network`: from processes that know nothing of the network."""

import json
import os
import re
import subprocess
from pathlib import Path

import copies
from helpers import ROOT
from made_campaign import SYMBOLS
from made_network import write_network
from typer.testing import CliRunner

from semsim.base.sets.reader import read_set
from semsim.cli.main import app
from semsim.targets.chance import CLASSIFIER
from semsim.weights import read_facts

TINY = ("--name", "own", "--dataset", SYMBOLS, "--strategy", "none", "--images", "2")
TINY += ("--attack", "invgrad:steps=3", "--train", "epochs=1", "--workers", "1")


def typed(folder: Path, *words: str) -> subprocess.CompletedProcess:
    """`semsim-studio campaign …` in `folder`, in a process of its own."""
    return python(folder, "-m", "semsim", "campaign", *words)


def python(folder: Path, *words: str) -> subprocess.CompletedProcess:
    around = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return copies.run(words, cwd=folder, env=around)


def test_a_network_of_ones_own_goes_through_the_whole_campaign(tmp_path):
    """Begun, broken off, resumed from elsewhere in processes on Dask, and never computed twice."""
    mine, elsewhere = tmp_path / "mine", tmp_path / "elsewhere"
    elsewhere.mkdir()
    named = write_network(mine, "nets.small")
    data = ("--data-dir", str(tmp_path / "data"))
    asked = (*TINY, *data, "--own-network", named)

    begun = typed(mine, "run", *asked, "--device", "cpu", "--scheduler", "nonsense://x")
    assert begun.returncode == 2
    assert "No Dask scheduler answers" in begun.stderr
    (job,) = (tmp_path / "data/jobs").iterdir()
    done = typed(elsewhere, "run", "--job", str(job), "--scheduler", "")
    assert done.returncode == 0, done.stderr
    assert "2 ok / 0 failed (2 computed now, 0 done before)" in done.stdout

    folder = tmp_path / "data/runs/own/Tiny__none__invgrad"
    found = read_set(folder)
    assert found.model == "Tiny/none/invgrad"
    architecture = found.run["target"]["architecture"]
    assert architecture["settings"]["network"] == "nets.small:Tiny"
    assert re.fullmatch("[0-9a-f]{12}", architecture["settings"]["source"])
    assert str(tmp_path) not in json.dumps(found.run["target"])  # it may be passed on
    (weights,) = (tmp_path / "data/runs").rglob("targets/**/*.safetensors")
    config = read_facts(weights, CLASSIFIER)
    assert (config["name"], config["settings"]) == ("own", architecture["settings"])

    (mine / "nets/parts.py").write_text("from torch import nn\n\nactivation = nn.Tanh\n")
    lines = (("run", *asked), ("plan", *asked, "--name", "second"))
    done, ((other, _), (planned, said)) = in_turn(mine, *lines)
    assert (other, planned) == (2, 0), done.stderr
    assert "Another campaign is called 'own'" in done.stderr
    assert "2 images to attack, 0 of them done" in said
    assert "1 target, 1 of them still to train" in said


def test_a_network_that_cannot_be_attacked_is_told_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    write_network(tmp_path, "told.nets")
    words = {
        "gone:Tiny": "gone cannot be imported",
        "told.nets:no_module": "should give a torch.nn.Module",
        "told.nets:wrong_shape": "should give logits",
    }
    plan = ("campaign", "plan", *TINY, "--data-dir", str(tmp_path / "data"), "--own-network")
    for named, why in words.items():
        done = CliRunner().invoke(app, [*plan, named])
        assert done.exit_code == 2
        (error,) = done.stderr.splitlines()
        assert error.startswith("Error: ")
        assert why in error
    assert not (tmp_path / "data" / "runs").exists()


def in_turn(
    folder: Path, *lines: tuple[str, ...]
) -> tuple[subprocess.CompletedProcess, list[tuple[int, str]]]:
    """`semsim-studio campaign …`, line by line, in one process that imports torch once.

    Of each line its exit code and what it printed; what it complained of is the process's.
    """
    given, results = folder / "steps.json", folder / "results.json"
    words = [("python", "-m", "semsim", "campaign", *line) for line in lines]
    given.write_text(json.dumps([("", line) for line in words]))
    done = python(folder, str(ROOT / "tests/readme_runner.py"), str(given), str(results))
    return done, json.loads(results.read_text())
