"""Backing up and restoring from the command line."""

import os
import shutil
import sqlite3
import tempfile
from contextlib import ExitStack, closing, contextmanager, nullcontext
from pathlib import Path

import pytest
from typer.testing import CliRunner

from annotation.cli.main import app
from annotation.store.backup import backups

NOBODY = 65534  # a user who owns nothing


@pytest.fixture
def labelled(run, folder, tmp_path):
    """A data folder with a study of four items and four votes."""
    assert run("create", "demo", "--set", folder, "--simulated").exit_code == 0
    assert run("simulate", "demo", "--annotators", "1").exit_code == 0
    return tmp_path


def n_votes(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT count(*) FROM vote").fetchone()[0]


def test_a_backup_and_the_way_back(run, labelled):
    made = run("backup")
    (backup,) = backups(labelled / "backups")
    assert (made.exit_code, f"{backup} holds all" in made.output) == (0, True)
    assert run("simulate", "demo", "--annotators", "2").exit_code == 0
    restored = run("restore", backup)
    assert restored.exit_code == 0
    (kept,) = labelled.glob("studies-replaced-*.db")
    assert f"What it replaced is {kept}" in restored.output
    assert (n_votes(labelled / "studies.db"), n_votes(kept)) == (4, 8)
    assert "demo: 4 of 20 votes\n" in run("progress", "demo").output


def test_a_backup_to_a_file_overwrites_nothing(run, labelled):
    assert run("backup", "--out", labelled / "usb" / "mine.db").exit_code == 0
    assert n_votes(labelled / "usb" / "mine.db") == 4
    again = run("backup", "--out", labelled / "usb" / "mine.db")
    assert (again.exit_code, "exists already" in again.output) == (2, True)
    assert not (labelled / "backups").exists()


def test_mistakes_are_explained_and_fail(run, tmp_path):
    for arguments, message in (
        (("backup",), "There is no database"),
        (("restore", tmp_path / "none.db"), "There is no database"),
        (("backup", "--database", "nonsense"), "no database address"),
        (("backup", "--database", "postgresql+psycopg://host/db"), "pg_dump"),
        (("restore", "any.db", "--database", "postgresql+psycopg://host/db"), "pg_restore"),
    ):
        done = run(*arguments)
        assert (done.exit_code, message in done.output) == (2, True), done.output
    assert list(tmp_path.iterdir()) == []


@contextmanager
def read_only(folder):
    """Nobody in this process can write in the folder, whoever runs the tests."""
    folder.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)


@pytest.mark.skipif(os.name != "posix", reason="rights are those of a POSIX system")
@pytest.mark.parametrize("in_use", [False, True])
def test_a_folder_that_cannot_be_written_is_read_and_backed_up(labelled, in_use):
    """As archived data are, also where a server has left what it wrote last beside the file."""
    with tempfile.TemporaryDirectory() as given, ExitStack() as server:
        Path(given).chmod(0o755)  # tmp_path lies below a folder of its owner's alone
        there, out = Path(given, "data"), Path(given, "out")
        out.mkdir(mode=0o777)
        out.chmod(0o777)
        shutil.copytree(labelled, there)
        if in_use:
            writing = server.enter_context(closing(sqlite3.connect(there / "studies.db")))
            writing.execute("UPDATE study SET name = 'later'")
            writing.commit()
        where = ["--data-dir", str(there)]
        for name in ("early", "mine"):  # nobody may be unable to import: all is there before
            with read_only(there) if name == "mine" else nullcontext():
                listed = CliRunner().invoke(app, ["list", *where])
                made = CliRunner().invoke(app, ["backup", "--out", str(out / f"{name}.db"), *where])
        assert listed.exit_code == 0, listed.output
        assert ("later" if in_use else "demo") in listed.output
        assert made.exit_code == 0, made.output
        assert n_votes(out / "mine.db") == 4
