"""Real servers in processes of their own and a real browser, for end-to-end tests."""

import os
import signal
import subprocess
import sysconfig
import urllib.request
import venv
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import copies
import jobs_here
from helpers import ROOT, limit, until
from playwright.sync_api import Browser, BrowserType, Page, expect, sync_playwright
from programs import needed
from starlette.routing import BaseRoute, Mount, Route

import app
from annotation.store import Store
from annotation.web.guard import Guard
from semsim.base.storage.ports import reserved_port

CHROMIUM_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-site-isolation-trials",  # one process a page, and no time to make its scripts fast
    "--js-flags=--no-opt",
)
LONG = 1000 * limit(120)  # milliseconds for whatever a page has to show or do
expect.set_options(timeout=LONG)
START_SECONDS = limit(180)  # torch and gradio take long to import on a busy machine


@contextmanager
def browser() -> Iterator[Browser]:
    """Open a headless Chromium; a process has one at a time."""
    needed("Chromium")
    with sync_playwright() as playwright, launched(playwright.chromium) as opened:
        yield opened


def _patient(opens: Callable[..., Any]) -> Callable[..., Any]:
    def opened(**settings: Any) -> Any:
        made = opens(reduced_motion="reduce", **settings)
        made.set_default_timeout(LONG)
        return made

    return opened


@contextmanager
def launched(kind: BrowserType, *more: str) -> Iterator[Browser]:
    """Launch a Chromium, with `more` flags, whose pages do not move.

    What moves takes a core from the rest.
    """
    path = needed("Chromium")  # none is downloaded
    chromium = kind.launch(executable_path=path, args=[*CHROMIUM_FLAGS, *more])
    for name in ("new_context", "new_page"):
        setattr(chromium, name, _patient(getattr(chromium, name)))
    yield chromium
    chromium.close()


def fill_training(page: Page, name: str) -> None:
    """Fill the form of Train so that it takes seconds; the usual network takes minutes."""
    page.locator("#learn-name input, #learn-name textarea").fill(name)
    page.get_by_text("Settings", exact=True).click()
    page.locator("#learn-backbone input").click()
    page.get_by_role("option", name="lenet").first.click()
    page.locator("#learn-epochs input").fill("2")


def answers(url: str) -> bool:
    """Whether the product does, there."""
    try:
        urllib.request.urlopen(f"{url}/signed-out", timeout=limit(2)).close()
    except OSError:
        return False
    return True


SCRIPTS = {"semsim-studio": "semsim.cli.studio", "dask": "dask.__main__"}

# As pip writes it: a process that is spawned imports it once more, and must not begin anew.
SCRIPT = """#!{python}
from {module} import main
if __name__ == "__main__":
    main()
"""


def environment(checkout: Path) -> Path:
    """The programs of an environment in a checkout, as `make run` leaves it."""
    place = checkout / ".venv"
    venv.create(place, symlinks=True)
    (site,) = place.glob("lib/python*/site-packages")
    (site / "here.pth").write_text(f"{sysconfig.get_path('purelib')}\n{checkout}\n")
    for name, module in SCRIPTS.items():
        script = place / "bin" / name
        script.write_text(SCRIPT.format(python=place / "bin/python", module=module))
        script.chmod(0o755)
    return place / "bin"


@contextmanager
def typing(
    folder: Path, bare: Mapping[str, str] | None = None, **more: str
) -> Iterator[Callable[[str, Path], subprocess.Popen[bytes]]]:
    """What types a line in a shell of its own, in a checkout with an environment; what it says is
    put into a file.

    more: what the environment of the shells has besides. bare: all that it has instead. Whatever
    still runs ends with the block.
    """
    around = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | more
    around["PATH"] = f"{folder / '.venv/bin'}{os.pathsep}{around['PATH']}"
    around = around if bare is None else dict(bare)
    running: list[subprocess.Popen[bytes]] = []

    def begin(line: str, log: Path) -> subprocess.Popen[bytes]:
        with log.open("wb") as told:
            shell = subprocess.Popen(
                ["sh", "-c", line],
                cwd=folder,
                env=around,
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=told,
                start_new_session=True,
            )
        running.append(shell)
        return shell

    try:
        yield begin
    finally:
        for one in running:
            with suppress(ProcessLookupError):  # it has ended already
                os.killpg(one.pid, signal.SIGKILL)
            one.wait()


def begin(
    command: Sequence[str], environment: Mapping[str, str], log: Path, has_jobs: bool = False
) -> copies.Copy:
    """Start a process that does what `python <command>` does; its output is appended to `log`.

    has_jobs: its threads carry out the jobs that it starts.
    """
    words = [jobs_here.__file__, *command] if has_jobs else command
    with log.open("ab") as told:
        return copies.begin(words, cwd=ROOT, env=environment, out=told, of=copies.STUDIO)


def around(**more: str) -> dict[str, str]:
    """Return the environment of a process that imports the tests, with more in it."""
    return {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", **more}


class Server:
    """A server process that can be killed and started again on the same port.

    command: a script and its arguments, as they follow `python`; "{port}" becomes the port.
    has_jobs: its threads carry out the jobs that it starts, and end with it.
    """

    def __init__(self, data: Path, command: Sequence[str], has_jobs: bool = False) -> None:
        self._held = ExitStack()  # as long as there is this object, also while it is restarted
        self.port = self._held.enter_context(reserved_port())
        self.data = data
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [part.replace("{port}", str(self.port)) for part in command]
        self._has_jobs = has_jobs
        self._process: copies.Copy | None = None

    def start(self) -> None:
        """Start and wait until it answers."""
        self.data.mkdir(parents=True, exist_ok=True)
        told, gradio = self.data / "server.log", str(self.data / "gradio")
        environment = around(GRADIO_ANALYTICS_ENABLED="False", GRADIO_TEMP_DIR=gradio)
        self._process = begin(self._command, environment, told, self._has_jobs)
        until(self._answers, START_SECONDS)

    def kill(self) -> None:
        """SIGKILL: no goodbye, no clean-up."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def interrupt(self) -> int:
        """Ctrl-C, until it ends; its exit code."""
        process, self._process = self._process, None
        assert process is not None
        while (code := process.poll()) is None:
            with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.kill(process.pid, signal.SIGINT)
                process.wait(limit(20))
        return code

    def _answers(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            raise AssertionError((self.data / "server.log").read_text())
        return answers(self.url)


class Studio(Server):
    """The whole product, as `python app.py` serves it."""

    def __init__(self, data: Path, checkpoints: Path, *more: str, has_jobs: bool = False) -> None:
        self.checkpoints = checkpoints
        options = ["--local", "--port", "{port}", "--data-dir", str(data), "--device", "cpu"]
        command = [str(ROOT / "app.py"), *options, "--checkpoints", str(checkpoints), *more]
        super().__init__(data, command, has_jobs)


def compose(store: Store, data: Path, host: str = "127.0.0.1", local: bool = True) -> Guard:
    """The product on `store` and what lies in `data`, without its built-in studies."""
    where = {"data_dir": data, "images": data / "images", "checkpoints": data / "checkpoints"}
    options = Namespace(**where, device="cpu", host=host, local=local)
    return app.create_app(store, options)


def addresses(routes: Sequence[BaseRoute], before: str = "") -> Iterator[tuple[str, str]]:
    """(method, path) of every route, those of mounted applications too."""
    for route in routes:
        if isinstance(route, Mount) and route.routes:
            yield from addresses(route.routes, before + route.path)
        elif isinstance(route, Mount):
            yield "GET", before + route.path
        elif isinstance(route, Route):
            for method in sorted((route.methods or set()) - {"HEAD"}):
                yield method, before + route.path
        elif hasattr(route, "original_router"):
            yield from addresses(route.original_router.routes, before)
        else:
            raise TypeError(f"{route!r} is a kind of route this test does not know.")
