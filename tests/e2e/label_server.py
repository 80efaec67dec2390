"""The human study alone, served for browser tests: `python label_server.py DATA_DIR PORT`."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright
from studio import CHROMIUM_FLAGS, find_chromium

ROOT = Path(__file__).resolve().parents[2]
START_WITHIN = 120.0  # seconds; importing gradio on a busy machine


@contextmanager
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    path = find_chromium()
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=list(CHROMIUM_FLAGS))
        yield chromium
        chromium.close()


def until(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until `holds()`; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"still not so after {seconds} s: {holds}")
        time.sleep(0.02)


class LabelServer:
    """A server process that can be killed and started again on the same port."""

    def __init__(self, data: Path) -> None:
        self.data = data
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start and wait until it answers."""
        environment = {
            **os.environ,
            "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}",
            "GRADIO_ANALYTICS_ENABLED": "False",
            "GRADIO_TEMP_DIR": str(self.data / "gradio"),
        }
        with (self.data / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(self.data), str(self.port)],
                env=environment,
                stdout=log,
                stderr=log,
            )
        until(self._answers, START_WITHIN)

    def kill(self) -> None:
        """SIGKILL: no goodbye, no clean-up."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            raise AssertionError((self.data / "server.log").read_text())
        try:
            urllib.request.urlopen(f"{self.url}/signed-out", timeout=2).close()
        except OSError:
            return False
        return True


def main(data: Path, port: int) -> None:
    """Serve the studies in `data`; reconstruction sets are the folders below `data/sets`."""
    import uvicorn

    from annotation.guard import Guard
    from annotation.store import Store
    from annotation.ui import StudyContext, label, studies
    from annotation.ui.mount import Page, mount, web_app

    def sets() -> list[tuple[str, Path]]:
        return [(path.parent.name, path.parent) for path in sorted(data.glob("sets/*/run.json"))]

    store, images = Store(f"sqlite:///{data / 'studies.db'}"), data / "images"
    context = StudyContext(store=store, images=images, find_sets=sets)
    app = web_app(store, images)
    mount(app, "/label", [Page("Label", "label", label, context)])
    mount(app, "/studio", [Page("Studies", "studies", studies, context)])
    uvicorn.run(Guard(app, None), host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
