"""Starting the product."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import ROOT
from studio import START_SECONDS, begin

import annotation
from annotation.cli.serving import asked
from semsim.base.storage.places import CHECKPOINTS


def start(log: Path, *options: str) -> tuple[int, str]:
    """The exit code of `python app.py <options>` and what it said."""
    process = begin([str(ROOT / "app.py"), *options], os.environ, log)
    try:
        return process.wait(START_SECONDS), log.read_text()
    finally:
        process.kill()


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
    """Also that a database which does not answer is named."""
    address = "postgresql+psycopg://nobody@127.0.0.1:1/none"
    options = ["--port", str(port), "--data-dir", str(tmp_path), "--database", address]
    options += ["--log-file", str(tmp_path / "kept.log")]
    command = [sys.executable, "app.py", *options]
    plain = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (plain.returncode, plain.stdout) == (2, "")
    first, _, error = plain.stderr.partition("\n")
    assert first.startswith("SemSim Studio: starting")
    assert error.startswith("Error: ")
    assert "cannot be used" in error
    assert "A password is taken from PGPASSWORD" in error
    assert "Traceback" not in error
    assert start(tmp_path / "quiet", *options, "-q") == (2, error)


def test_the_whole_table_of_the_doctor(tmp_path, port):
    place = ["--data-dir", str(tmp_path / "data"), "--checkpoints", str(tmp_path / "none")]
    log = tmp_path / "log"
    code, said = start(log, "doctor", "--local", "--port", str(port), *place)
    assert code == 0, said
    lines = said.splitlines()
    assert lines[0].split("  ")[0] == "SemSim Studio"
    assert annotation.__version__ in lines[0]
    assert lines[1].startswith("Python ")
    assert any(line.startswith("GPU ") for line in lines)
    assert any(line.startswith("weights ") and " note " in line for line in lines)
    assert all(re.search(r"  (ok|note) +\S", line) for line in lines)  # nothing else is said
    assert list(tmp_path.iterdir()) == [log]


def test_a_folder_of_data_leaves_checkpoints_where_they_are(tmp_path):
    options = asked("serve", "", ["--data-dir", str(tmp_path)])
    assert (options.data_dir, options.checkpoints) == (tmp_path, CHECKPOINTS)
