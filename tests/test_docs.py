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
PUBLISHED = "semsim_cifar100_labels.csv"  # not part of the project
SHARED = ROOT.parent / "shared/data" / PUBLISHED
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
    if SHARED.exists():
        (folder / PUBLISHED).symlink_to(SHARED)
    return folder


def test_readme_has_only_commands_that_are_tested():
    assert MADE[:2] == ["make run", "make test"]
    assert len(TYPED) > 3
    assert set(COMMANDS) == {*MADE, *TYPED}


@pytest.mark.parametrize("line", TYPED)
def test_command_works(line, clone):
    if (PUBLISHED in line or "imports/paper" in line) and not SHARED.exists():
        pytest.skip(f"the published votes are not here ({PUBLISHED})")
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
    if "--headline" in words:
        check_cells(words[-1], done.stdout)


def check_cells(rule, printed):
    """The README's table of the paper's cells is what the command prints."""
    told = re.findall(r"^\| the .*?" + r" \| ([\d.]+)" * 4 + r" \|$", README, re.MULTILINE)
    cells = told[["released", "majority"].index(rule)]
    rows = {line.split()[0]: line.split()[2:4] for line in printed.splitlines() if line.split()}
    assert (*rows["PSNR"], *rows["MSE"]) == cells


@pytest.mark.parametrize("line", MADE)
def test_make_knows_the_target(line):
    dry = subprocess.run(
        [*shlex.split(line), "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert dry.returncode == 0, dry.stderr


def test_every_command_explains_itself():
    group = get_command(app)
    names = {"demo", "import", "score", "learn", "compare", "report", "weights"}
    assert names == set(group.commands)
    for command in group.commands.values():
        assert command.help


def test_links_in_the_readme_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
