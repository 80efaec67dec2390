"""What the README tells people to type is typed here."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from made_campaign import toy_campaign
from studio import until
from typer.main import get_command

from semsim.cli.main import app
from semsim.jobs.orders import to_record

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED = "semsim_cifar100_labels.csv"  # not part of the project
SHARED = ROOT.parent / "shared/data" / PUBLISHED
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = [
    block.strip().splitlines() for block in re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
]
TEXTS = [
    block.strip().splitlines()
    for block in re.findall(r"```text\n(.*?)```", README, flags=re.DOTALL)
]
SEVERAL_MACHINES = next(lines for lines in TEXTS if lines[0] == "dask scheduler")
EXAMPLE = "tcp://10.0.0.1:8786"  # the address in the README
COMMANDS = [line for block in BLOCKS for line in block]
MADE = [line for line in COMMANDS if line.startswith("make ")]
TYPED = [line for line in COMMANDS if line.startswith("python ")]


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A folder that looks like a fresh clone, in which commands may write."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("semsim", "annotation", "data/demo"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "checkpoints").mkdir()
    shutil.copy(ROOT / "checkpoints/manifest.json", folder / "checkpoints")
    shutil.copy(ROOT / "app.py", folder)
    if SHARED.exists():
        (folder / PUBLISHED).symlink_to(SHARED)
    return folder


def test_readme_has_only_commands_that_are_tested():
    assert MADE[:2] == ["make run", "make test"]
    assert len(TYPED) > 3
    assert set(COMMANDS) == {*MADE, *TYPED}


@pytest.fixture(scope="module")
def typed(clone, tmp_path_factory):
    """Each command → its exit code and what it printed; all of them, in the order of the README."""
    folder = tmp_path_factory.mktemp("typed")
    given, results = folder / "commands.json", folder / "results.json"
    lines = [line for line in TYPED if SHARED.exists() or not needs_published(line)]
    given.write_text(json.dumps([shlex.split(line)[1:] for line in lines]))
    runner = Path(__file__).with_name("readme_runner.py")
    done = subprocess.run(
        [sys.executable, str(runner), str(given), str(results)],
        cwd=clone,
        env={**os.environ, "PYTHONPATH": str(clone)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = [(*one, done.stderr) for one in json.loads(results.read_text())]
    return dict(zip(lines, found, strict=True))


def needs_published(line):
    return PUBLISHED in line or "data/imports/paper" in line


@pytest.mark.parametrize("line", TYPED)
def test_a_command_works(line, typed):
    if needs_published(line) and not SHARED.exists():
        pytest.skip(f"the published votes are not here ({PUBLISHED})")
    code, printed, errors = typed[line]
    assert code == 0, (printed, errors)
    assert printed.strip()
    if "--headline" in line:
        check_cells(shlex.split(line)[-1], printed)


def check_cells(rule, printed):
    """The README's table of the paper's cells is what the command prints."""
    told = re.findall(r"^\| the .*?" + r" \| ([\d.]+)" * 4 + r" \|$", README, re.MULTILINE)
    cells = told[["released", "majority"].index(rule)]
    rows = {line.split()[0]: line.split()[2:4] for line in printed.splitlines() if line.split()}
    assert (*rows["PSNR"], *rows["MSE"]) == cells


def test_no_block_is_left_out():
    kinds = re.findall(r"^```(\w+)$", README, flags=re.MULTILINE)
    assert set(kinds) == {"sh", "text", "python", "powershell"}
    assert TEXTS == [SEVERAL_MACHINES]


def test_several_machines_are_set_up_as_typed(clone, tmp_path):
    """Each line in a shell of its own in the checkout; only the example's address is another."""
    campaign = toy_campaign(strategies=("none",), attacks=("invgrad:steps=3",))
    (clone / "campaign.json").write_text(json.dumps(to_record(campaign)))
    around = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    around["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{around['PATH']}"
    scheduler, worker, last = SEVERAL_MACHINES
    running = []

    def begin(line, log):
        with log.open("wb") as told:
            running.append(
                subprocess.Popen(
                    ["sh", "-c", line],
                    cwd=clone,
                    env=around,
                    stdout=told,
                    stderr=told,
                    start_new_session=True,
                )
            )

    try:
        begin(scheduler, tmp_path / "scheduler.log")
        until(lambda: address_in(tmp_path / "scheduler.log"), 60)
        address = address_in(tmp_path / "scheduler.log")
        begin(worker.replace(EXAMPLE, address), tmp_path / "worker.log")
        line = ["sh", "-c", last.replace(EXAMPLE, address)]
        done = subprocess.run(
            line, cwd=clone, env=around, capture_output=True, text=True, check=False, timeout=300
        )
    finally:
        for process in running:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
    assert done.returncode == 0, done.stderr
    assert "3 ok / 0 failed (3 computed now, 0 done before)" in done.stdout


def address_in(log):
    """Where the scheduler says it is; "" before."""
    found = re.search(r"Scheduler at:\s+(tcp://\S+)", log.read_text())
    return found[1] if found else ""


@pytest.mark.parametrize("line", MADE)
def test_make_knows_the_target(line):
    dry = subprocess.run(
        [*shlex.split(line), "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert dry.returncode == 0, dry.stderr


def test_every_command_explains_itself():
    group = get_command(app)
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        assert command.name == name
        assert command.help
    assert group.get_command(None, "nonsense") is None


def test_links_in_the_readme_lead_somewhere():
    for target in re.findall(r"\]\((?!https://)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
