"""What `semsim-studio doctor` finds, and that it makes nothing."""

import itertools
import json
import socket
import sqlite3
from types import SimpleNamespace

import pytest
from made_remote import PLACE

from annotation.accounts.access import NAME, PASSWORD
from annotation.cli import doctor
from annotation.cli.console import IMAGES
from annotation.cli.serving import ServerParser
from annotation.store import Store
from annotation.web import proxies


@pytest.mark.parametrize("installed", [True, False])
def test_what_is_missing_is_installed_as_the_rest_was(monkeypatch, tmp_path, installed):
    monkeypatch.setattr(doctor, "PACKAGES", ("no-such-distribution",))
    monkeypatch.setattr(doctor, "checkout", lambda: None if installed else tmp_path)
    options = ServerParser("doctor", "").parse_args([])
    *_, row = itertools.islice(doctor.checks(options), 3)
    told = '"semsim-studio[studio]"' if installed else f"-r {tmp_path / 'requirements.txt'}"
    assert (row.state, row.advice) == ("stops", f"pip install {told}")


@pytest.fixture
def found(tmp_path, port, capsys, monkeypatch):
    """Row by name of what is found with options, and the exit code."""
    monkeypatch.delenv(PASSWORD, raising=False)

    def diagnose(*options, others=()):
        parser = ServerParser("doctor", "")
        proxies.add_options(parser)
        place = ["--data-dir", str(tmp_path / "data"), "--port", str(port)]
        code = doctor.diagnose(parser.parse_args(["--json", *place, *options]), others)
        rows = json.loads(capsys.readouterr().out)["findings"]
        return {row["what"]: row for row in rows}, code

    return diagnose


def test_where_nothing_is_yet_all_is_well_and_nothing_is_made(found, tmp_path):
    rows, code = found("--local")
    assert code == 0
    assert {row["state"] for row in rows.values()} == {"ok"}
    assert all(row["found"] and row["advice"] for row in rows.values())
    assert list(tmp_path.iterdir()) == []
    assert {"Python", "gradio", "database", "disk", "port", "trusted proxy", "root path"} <= {*rows}


def test_a_taken_port_stops_it(found, port):
    with socket.create_server(("127.0.0.1", port)):
        rows, code = found("--local")
    assert (rows["port"]["state"], code) == ("stops", 1)
    assert "--port" in rows["port"]["advice"]


def test_a_database_that_does_not_answer_stops_it_and_its_password_is_not_said(found):
    address = "postgresql+psycopg://nobody:hidden-word@127.0.0.1:1/none"
    rows, code = found("--local", "--database", address)
    assert (rows["database"]["state"], code) == ("stops", 1)
    assert "hidden-word" not in json.dumps(rows)


@pytest.mark.parametrize(("version", "state"), [(None, "ok"), ("9999", "stops")], ids=str)
def test_the_version_of_a_database(found, tmp_path, version, state):
    file = tmp_path / "data/studies.db"
    with Store(f"sqlite:///{file}"):
        pass
    if version is not None:
        with sqlite3.connect(file) as database:
            database.execute("UPDATE alembic_version SET version_num = ?", (version,))
        database.close()
    rows, code = found("--local")
    assert rows["database"]["state"] == state
    assert code == (state == "stops")


def test_who_may_enter(found, monkeypatch):
    rows, code = found("--local", "--host", "0.0.0.0")
    assert (rows["access"]["state"], code) == ("stops", 1)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: False))
    rows, code = found()
    assert (rows["access"]["state"], code) == ("stops", 1)
    assert PASSWORD in rows["access"]["advice"]


@pytest.mark.parametrize(
    ("name", "password", "state"),
    [
        ("Eva", "short", "stops"),
        (" ", "four words in a row", "stops"),
        ("Eva", "four words in", "ok"),
    ],
)
def test_a_first_account_that_a_start_would_refuse(found, monkeypatch, name, password, state):
    monkeypatch.setenv(NAME, name)
    monkeypatch.setenv(PASSWORD, password)
    rows, code = found()
    assert (rows["access"]["state"], code) == (state, state == "stops")
    assert password not in json.dumps(rows)


def test_a_full_disk_and_one_that_is_filling(found, monkeypatch):
    for free, state in ((10**6, "stops"), (10**9, "note"), (10**10, "ok")):
        space = SimpleNamespace(free=free)
        monkeypatch.setattr("shutil.disk_usage", lambda _, space=space: space)
        assert found("--local")[0]["disk"]["state"] == state


def test_what_is_behind_a_proxy_is_said(found):
    rows, _ = found("--local", "--trusted-proxy", "10.0.0.0/8")
    assert rows["trusted proxy"]["found"] == "10.0.0.0/8"


def test_pictures_that_cannot_be_had_stop_it(found, unsteady, monkeypatch):
    rows, code = found("--local", "--image-store", PLACE)
    assert (rows["pictures"]["state"], code) == ("ok", 0)
    assert rows["pictures"]["found"] == f"none yet at {PLACE}"
    unsteady.gone = "no such host"
    monkeypatch.setenv(IMAGES, PLACE)
    rows, code = found("--local")
    assert (rows["pictures"]["state"], code) == ("stops", 1)
    assert "no such host" in rows["pictures"]["found"]
