"""What the README tells people to type is typed here."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from semsim.cli import app

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    for line in block.strip().splitlines()
]
MADE = [line for line in COMMANDS if line.startswith("make ")]
TYPED = [line for line in COMMANDS if line.startswith("python ")]


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A folder that looks like a fresh clone, in which commands may write."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("app.py", "semsim", "annotation", "checkpoints"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "data/demo", folder / "data/demo")
    return folder


def test_readme_has_only_commands_that_are_tested():
    assert MADE[:2] == ["make run", "make test"]
    assert len(TYPED) > 3
    assert set(COMMANDS) == {*MADE, *TYPED}


@pytest.mark.parametrize("line", TYPED)
def test_command_works(line, clone):
    words = shlex.split(line)
    done = subprocess.run(
        [sys.executable, *words[1:]],
        cwd=clone,
        env={**os.environ, "PYTHONPATH": str(clone)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize("line", MADE)
def test_make_knows_the_target(line):
    dry = subprocess.run(
        [*shlex.split(line), "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert dry.returncode == 0, dry.stderr


def test_every_command_explains_itself():
    group = get_command(app)
    assert {"demo", "learn", "score", "weights"} <= set(group.commands)
    for command in group.commands.values():
        assert command.help


def test_links_in_the_readme_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
