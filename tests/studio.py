"""A real SemSim Studio in a process of its own, for end-to-end tests."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from helpers import skip_or_fail

ROOT = Path(__file__).resolve().parents[1]
CHROMIUM_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
START_SECONDS = 180  # torch and gradio take long to import on a busy machine


def find_chromium() -> str:
    """The installed Chromium; none is downloaded."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        skip_or_fail("no Chromium is installed")
    return str(path)


class Studio:
    """Starts, kills and restarts `app.py` on one data folder and one port."""

    def __init__(self, data: Path, checkpoints: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.data, self.checkpoints = data, checkpoints
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        """Start the server and wait until it answers."""
        command = [sys.executable, "app.py", "--port", str(self.port), "--data-dir", str(self.data)]
        command += ["--checkpoints", str(self.checkpoints), "--device", "cpu"]
        self.data.mkdir(parents=True, exist_ok=True)
        with open(self.data / "server.log", "ab") as log:
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdout=log,
                stderr=log,
                env={**os.environ, "GRADIO_TEMP_DIR": str(self.data / "gradio")},
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self.data / "server.log").read_text())
            time.sleep(0.2)

    def kill(self) -> None:
        """SIGKILL: no goodbye, no clean-up."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/signed-out", timeout=5) as reply:
                return bool(reply.status == 200)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False
