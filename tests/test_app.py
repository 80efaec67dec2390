"""Starting the product."""

import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def start(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "app.py"), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_taken_port_is_said_to_be_so_before_anything_is_made(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        done = start("--port", port, "--data-dir", str(tmp_path / "data"))
    assert done.returncode == 1
    assert f"Port {port} is taken" in done.stderr
    assert not (tmp_path / "data").exists()


def test_a_database_that_does_not_answer_is_named(tmp_path):
    address = "postgresql+psycopg://nobody@127.0.0.1:1/none"
    done = start("--port", "1", "--data-dir", str(tmp_path), "--database", address)
    assert done.returncode == 1
    assert "cannot be used" in done.stderr
    assert "Traceback" not in done.stderr
