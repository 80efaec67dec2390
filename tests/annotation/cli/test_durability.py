"""Backing up and restoring from the command line."""

import sqlite3
from contextlib import closing

import pytest

from annotation.store.backup import backups


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
    assert "4 of 4 items have 1 vote\n" in run("progress", "demo").output


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
