"""What `make run` does on a machine that lacks something, played by programs of a few lines."""

import os
import shutil
import subprocess
import time

import pytest
from helpers import ROOT
from programs import needed

from benchmarks.claims import kept

# As much of Python as the Makefile asks for. `LACKS` names what this machine lacks.
PYTHON = """#!/bin/sh
echo "$*" >> "$ASKED"
case "$*" in
  *version_info*) [ "$LACKS" != version ];;
  "-m venv --clear .venv")
    rm -rf .venv && mkdir -p .venv/bin && cp "$0" .venv/bin/python
    cp "$0" .venv/bin/semsim-studio
    case "$LACKS" in venv|room) false;; *) touch .venv/pip;; esac;;
  *"pip --version") [ -e .venv/pip ];;
  *download*) [ "$LACKS" != network ] || { echo "No matching distribution found"; exit 1; };;
  *install*)
    echo "a bar"
    [ "$LACKS" != disk ] || { echo "[Errno 28] No space left on device" >&2; exit 1; }
    [ "$LACKS" != index ] || { echo "Connection broken" >&2; exit 1; };;
  serve*) echo started;;
esac
"""
# The disk has 80 GB left, also after pip found it full and cleaned up; or 1, too few for `venv`.
FREE = """#!/bin/sh
echo "Filesystem 1024-blocks Used Available Capacity Mounted"
[ "$LACKS" = room ] && echo "disk 9 9 1000000 9% /" || echo "disk 9 9 80000000 9% /"
"""


@pytest.fixture
def make(tmp_path):
    """Calls make run in a folder of its own; returns the lines it printed and the exit code."""
    program = needed("make")
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, text in (("python3", PYTHON), ("df", FREE)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    folder = tmp_path / "a checkout"
    folder.mkdir()
    shutil.copy(ROOT / "Makefile", folder)
    (folder / "requirements.txt").write_text("one==1.0\n")
    (folder / "pyproject.toml").touch()
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"

    def run(lacks="", where=folder):
        around = {**os.environ, "PATH": path, "LACKS": lacks, "ASKED": str(tmp_path / "asked")}
        for name in ("MAKEFLAGS", "MFLAGS", "ARGS", "PORT", "HOST"):
            around.pop(name, None)
        done = subprocess.run(
            [program, "--no-print-directory", "run"],
            cwd=where,
            env=around,
            capture_output=True,
            text=True,
        )
        return done.stdout.splitlines(), done.returncode

    return run


def size(name):
    """Return what README says that something takes."""
    return f"{kept('sizes')[name].value:.1f}"


def test_the_first_run_says_what_it_installs_and_later_ones_do_not(make):
    told, code = make()
    assert code == 0
    assert told[0] == (
        f"Installing requirements.txt into .venv: {size('studio')} GB once, "
        f"of it CUDA {size('cuda')} and PyTorch {size('torch')}."
    )
    assert told[-1] == "started"
    told, code = make()
    assert (len(told), code) == (2, 0)  # the command, and what it prints


def test_pip_shows_its_progress(make, tmp_path):
    told, _ = make()
    asked = (tmp_path / "asked").read_text()
    assert "-m pip install -r requirements.txt\n" in asked
    assert "a bar" in told


def test_what_was_installed_once_is_looked_over_without_a_network(make, tmp_path):
    make()
    later = time.time() + 10  # clocks of files are coarse
    os.utime(tmp_path / "a checkout/requirements.txt", (later, later))
    told, code = make(lacks="network")
    assert (told[-1], code) == ("started", 0)
    assert "-m pip install --quiet -r requirements.txt\n" in (tmp_path / "asked").read_text()


def test_an_environment_that_was_moved_is_made_anew_and_a_linked_one_is_not(make, tmp_path):
    made_at, linked, moved = (tmp_path / name for name in ("a checkout", "linked", "moved to"))
    make()
    linked.mkdir()
    for name in ("Makefile", "requirements.txt", "pyproject.toml"):
        shutil.copy2(made_at / name, linked)
    (linked / ".venv").symlink_to(made_at / ".venv")
    told, code = make(where=linked)
    assert (told[-1], code) == ("started", 0)
    assert anew(tmp_path) == 1
    made_at.rename(moved)
    for _ in range(2):
        told, code = make(where=moved)
        assert (told[-1], code) == ("started", 0)
        assert anew(tmp_path) == 2
    assert "pip install --quiet -r" not in (tmp_path / "asked").read_text()


def anew(folder):
    """Count the environments that were made."""
    return (folder / "asked").read_text().count("-m venv --clear .venv")


FULL = (
    f"The disk is full: the libraries take {size('studio')} GB here, "
    "and pip lays them into TMPDIR (/tmp) first."
)
LACKING = {
    "version": "python3 is not Python 3.11 or newer. Name one that is: make run PYTHON=python3.12",
    "venv": "No environment was made. On Debian and Ubuntu: sudo apt install python3-venv",
    "network": (
        "No package index answers. Connect this machine, or set PIP_INDEX_URL to one it reaches."
    ),
    "index": "Pip says above what is in the way; make run goes on where it ended.",
    "disk": FULL,
    "room": FULL,
}


@pytest.mark.parametrize("what", LACKING)
def test_what_is_lacking_is_told_in_a_sentence_and_later_mended(make, what):
    told, code = make(lacks=what)
    assert (told[-1], code) == (LACKING[what], 2)
    assert "No matching distribution found" not in told
    told, code = make()
    assert (told[-1], code) == ("started", 0)
