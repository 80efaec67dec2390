"""What lies in deploy/ and is not started by a test: what can be known of it without."""

import shutil
import subprocess
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

import pytest
import yaml
from helpers import skip_or_fail
from studio import ROOT

DEPLOY = ROOT / "deploy"
IGNORED = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8")
# `COPY . .` takes the files of a checkout: what git has and what people made.
TRACKED = subprocess.run(
    ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
).stdout.splitlines()


def is_ignored(path: str) -> bool:
    """Whether an image lacks a file: the last pattern that fits it, or a folder of it, says."""
    one = PurePosixPath(path)
    whole = [str(part) for part in (one, *one.parents)]
    ignored = False
    for line in IGNORED.splitlines():
        pattern = line.removeprefix("!").removeprefix("**/")
        deep = line.startswith("**/")
        fits = any(
            part.count("/") == pattern.count("/") and fnmatchcase(part, pattern)
            for part in ([PurePosixPath(part).name for part in whole] if deep else whole)
        )
        if fits and not line.startswith("#"):
            ignored = not line.startswith("!")
    return ignored


@pytest.mark.parametrize(
    "path",
    [
        "data/studies.db",
        "data/studies.db-wal",
        "data/images/ab/cd.png",
        "data/backups/2026.db",
        "data/runs/net/originals/0.png",
        "checkpoints/mine.safetensors",
        "checkpoints/mine.card.json",
        ".git/config",
        ".venv/bin/python",
        "semsim/__pycache__/x.pyc",
        "site/index.html",
    ],
)
def test_an_image_holds_nothing_that_people_made(path):
    assert is_ignored(path)


def test_an_image_holds_all_that_comes_with_the_product():
    if not TRACKED:
        skip_or_fail("git does not know this folder")
    assert [path for path in TRACKED if is_ignored(path)] == []


def test_votes_and_trained_semsims_outlive_a_container():
    told = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    studio, database = told["services"]["studio"], told["services"]["database"]
    home = studio["environment"]["SEMSIM_HOME"]
    assert "--data-dir" not in studio["command"]
    assert "--checkpoints" not in studio["command"]
    kept = [volume.split(":") for volume in (*studio["volumes"], *database["volumes"])]
    assert kept[0] == ["kept", home]
    assert {name for name, _ in kept} == set(told["volumes"])


def test_the_unit_is_one_that_systemd_reads(tmp_path):
    program = shutil.which("systemd-analyze")
    if program is None:
        skip_or_fail("no systemd-analyze is installed")
    unit = shutil.copy(DEPLOY / "semsim-studio@.service", tmp_path)
    done = subprocess.run(
        [str(program), "verify", unit], capture_output=True, text=True, check=False
    )
    # Nothing of the product is installed there.
    absent = "Command /opt/semsim-studio/.venv/bin/python is not executable: No such file"
    assert [line for line in done.stderr.splitlines() if absent not in line] == []
    assert absent in done.stderr
