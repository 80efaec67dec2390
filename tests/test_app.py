"""Starting the product."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import ROOT
from studio import START_SECONDS, begin

from app import asked
from semsim.base.places import CHECKPOINTS


def start(log: Path, *options: str) -> tuple[int | None, str]:
    """The exit code of `python app.py <options>` and what it said."""
    process = begin([str(ROOT / "app.py"), *options], os.environ, log)
    process.join(START_SECONDS)
    code = process.exitcode
    process.kill()
    return code, log.read_text()


@pytest.mark.parametrize("port", ["99999", "0", "-1", "http"])
def test_what_is_no_port_is_refused(tmp_path, port):
    code, said = start(tmp_path / "log", f"--port={port}", "--data-dir", str(tmp_path / "data"))
    assert code == 2
    assert f"a port is a number from 1 to 65535; got {port!r}" in said
    assert not (tmp_path / "data").exists()


def test_a_taken_port_is_said_to_be_so_before_anything_is_made(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        code, said = start(tmp_path / "log", "--port", port, "--data-dir", str(tmp_path / "data"))
    assert code == 2
    assert f"Port {port} is taken" in said
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--host", "no.such.host.invalid", "--port", "8765"], "no.such.host.invalid:8765 cannot"),
        (["--data-dir", "{file}"], "{file} can be no folder of studies (File exists). Name"),
        (["--log-file", "{file}/x.log"], "{file}/x.log cannot be written (Not a directory). Name"),
    ],
    ids=["host", "data", "log"],
)
def test_what_cannot_be_used_is_named_before_an_address_is(tmp_path, port, options, told):
    file = tmp_path / "afile"
    file.touch()
    options = [one.format(file=file) for one in options]
    plain = ["--port", str(port), "--data-dir", str(tmp_path / "data")]
    code, said = start(tmp_path / "log", *plain, *options)
    assert code == 2
    assert f"Error: {told.format(file=file)}" in said
    assert "http://" not in said


def test_talk_of_the_start_is_no_result_and_can_be_silenced(tmp_path, port):
    address = "postgresql+psycopg://nobody@127.0.0.1:1/none"
    asked = [sys.executable, "app.py", "--port", str(port), "--data-dir", tmp_path]
    asked += ["--database", address]
    kept = ["--log-file", tmp_path / "kept.log"]
    plain, quiet = (
        subprocess.run([*asked, *more], cwd=ROOT, capture_output=True, text=True, check=False)
        for more in (kept, [*kept, "-q"])
    )
    assert plain.stdout == quiet.stdout == ""
    first, _, error = plain.stderr.partition("\n")
    assert first.startswith("SemSim Studio: starting")
    assert error.startswith("Error: ")
    assert quiet.stderr == error


def test_a_database_that_does_not_answer_is_named(tmp_path, port):
    address = "postgresql+psycopg://nobody@127.0.0.1:1/none"
    options = ["--port", str(port), "--data-dir", str(tmp_path), "--database", address]
    code, said = start(tmp_path / "log", *options)
    assert code == 2
    assert said.startswith("SemSim Studio: starting")
    assert "cannot be used" in said
    assert "A password is taken from PGPASSWORD" in said
    assert "Traceback" not in said


def test_a_folder_of_data_leaves_checkpoints_where_they_are(tmp_path):
    options = asked("serve", ["--data-dir", str(tmp_path)])
    assert (options.data_dir, options.checkpoints) == (tmp_path, CHECKPOINTS)
