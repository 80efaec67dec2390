"""Python processes that begin as copies of one that has imported much and done nothing."""

import atexit
import gc
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[1]
SHARED = "SEMSIM_TEST_COPIES"  # the environment variable with the folder of `start`
# What an original imports before it is copied. LARGE has what tests import most, and nothing of the
# product: a copy finds it by itself. LARGE lacks what reads the environment as it is imported
# (Gradio, the Hub), and what pytest rewrites (anyio, which FastAPI brings). STUDIO has the product
# of this checkout, and torch, so that a page starts no process for what needs it;
# `tests/test_light.py` has a server without.
LARGE, STUDIO = "large", "studio"
IMPORTS = {
    LARGE: (
        *("distributed.cli.dask_worker", "pandas", "torch._dynamo", "sqlalchemy.orm", "psycopg"),
        *("scipy.stats", "sklearn.metrics", "skimage.metrics", "matplotlib.backends.backend_agg"),
        *("torchmetrics.image", "torch_fidelity", "pytorch_metric_learning.losses"),
        *("playwright.sync_api", "pydantic", "pyarrow.parquet"),
    ),
    STUDIO: ("studio", "annotation.ui.mount", "semsim.ui.pages", "torch"),
}


class Copy:
    """A process with a session of its own, as `subprocess.Popen` has it."""

    def __init__(self, pid: int, ended: int) -> None:
        self.pid, self.returncode, self._ended = pid, None, ended

    def poll(self) -> int | None:
        """Return how it ended, None while it runs."""
        return self._within(0)

    def wait(self, timeout: float | None = None) -> int:
        """Return how it ended once it has."""
        found = self._within(timeout)
        if found is None:
            raise subprocess.TimeoutExpired(f"copy {self.pid}", timeout or 0)
        return found

    def kill(self) -> None:
        """End it and all that it started in its session."""
        if self.poll() is None:
            end_session(self.pid)

    def _within(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self._ended], [], [], seconds)[0]:
            self.returncode = int(os.read(self._ended, 99))
            os.close(self._ended)
        return self.returncode


def begin(
    words: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    out: IO[Any],
    err: IO[Any] | None = None,
    read: IO[Any] | None = None,
    of: str = LARGE,
) -> Copy:
    """Start what `python *words` starts; `words` are -m, -c or a file, and what follows.

    out: takes its output, and its errors unless there is `err`. read: its input; else it has none.
    of: its original.
    """
    line = _line(of)
    ended, ends = os.pipe()
    with tempfile.TemporaryFile("w+") as asked, open(os.devnull) as nothing:
        json.dump({"words": list(words), "cwd": str(cwd), "env": dict(env)}, asked)
        asked.flush()
        files = [one.fileno() for one in (asked, read or nothing, out, err or out)]
        socket.send_fds(line, [b"1"], [*files, ends])
    os.close(ends)
    return Copy(int(line.recv(99)), ended)


def run(
    words: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Do what `python *words` does; returns once it is over, with what it said."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        one = begin(words, cwd=cwd, env=env, out=out, err=err)
        try:
            status = one.wait(timeout)
        finally:
            one.kill()
        said = [(file.seek(0), file.read())[1] for file in (out, err)]
    return subprocess.CompletedProcess(list(words), status, *said)


@cache
def _line(of: str) -> socket.socket:
    """Return a connection to an original: that of all workers, else one of this process."""
    line = socket.socket(socket.AF_UNIX)
    line.connect(f"{os.environ.get(SHARED) or start()}/{of}")
    return line


@cache
def start() -> str:
    """Start the originals, which end with this process; returns the folder of their sockets."""
    folder = tempfile.mkdtemp()
    originals = [_original(folder, name) for name in IMPORTS]

    def end() -> None:
        for one in originals:
            one.stdin.close()
        originals[0].wait()  # servers, of the other, are not in the CPU seconds of CONTRIBUTING.md
        shutil.rmtree(folder)

    atexit.register(end)
    return folder


def _original(folder: str, name: str) -> subprocess.Popen[bytes]:
    around = {**os.environ, "PYTHONPATH": str(ROOT)}
    if name == LARGE:
        del around["PYTHONPATH"]
    with socket.socket(socket.AF_UNIX) as doors:
        doors.bind(f"{folder}/{name}")
        doors.listen()
        number = doors.fileno()
        command = [sys.executable, __file__, str(number), *IMPORTS[name]]
        return subprocess.Popen(command, env=around, pass_fds=[number], stdin=subprocess.PIPE)


def end_session(pid: int) -> None:
    """End a copy and all that it started in its session."""
    for kill in (os.killpg, os.kill):  # it has no session yet where it has just begun
        with suppress(ProcessLookupError):  # or it has ended meanwhile
            kill(pid, signal.SIGKILL)
            return


class Original:
    """The process that is copied; it imports nothing before somebody asks for a copy.

    doors: where who asks connects; the copies of a connection end with it.
    """

    def __init__(self, doors: socket.socket, imports: Sequence[str]) -> None:
        self._doors, self._imports = doors, imports
        self._lines: list[socket.socket] = []
        self._running: dict[int, tuple[int, socket.socket]] = {}
        self._woken, self._wakes = os.pipe()
        os.set_blocking(self._wakes, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for asked in (signal.SIGTERM, signal.SIGINT):  # it ends, and all copies, with the tests
            signal.signal(asked, signal.SIG_IGN)
        signal.set_wakeup_fd(self._wakes)

    def copied(self) -> dict[str, Any]:
        """Make copies until standard input ends; returns in each copy, with what it is to do."""
        while 0 not in (ready := self._ready()):
            if self._woken in ready:
                os.read(self._woken, 999)
                self._tell_ended(os.WNOHANG)
            if self._doors in ready:
                self._lines.append(self._doors.accept()[0])
            for line in [one for one in self._lines if one in ready]:
                if order := self._answered(line):
                    return order
        self._end(list(self._running))
        while self._running:
            self._tell_ended(0)
        raise SystemExit

    def _ready(self) -> list[Any]:
        return select.select([0, self._doors, self._woken, *self._lines], [], [])[0]

    def _answered(self, line: socket.socket) -> dict[str, Any] | None:
        """Make the copy that a connection asks for; returns its order in the copy alone."""
        word, passed, _, _ = socket.recv_fds(line, 1, 5)
        if not word:
            self._lines.remove(line)
            self._end([pid for pid, (_, asks) in self._running.items() if asks is line])
            return None
        for name in self._imports:
            importlib.import_module(name)
        gc.freeze()
        *files, ends = passed
        pid = os.fork()
        if pid == 0:
            return self._begun(*files, ends)
        for number in files:
            os.close(number)
        self._running[pid] = ends, line
        line.sendall(str(pid).encode())
        return None

    def _begun(self, asked: int, read: int, out: int, err: int, ends: int) -> dict[str, Any]:
        """Cut a copy loose from the original, and return its order."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # Whoever started the tests in the background made them deaf to Ctrl-C.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setsid()
        for place, number in enumerate((read, out, err)):
            os.dup2(number, place)
        for one in (self._doors, *self._lines):
            one.close()
        pipes = (number for number, _ in self._running.values())
        for number in (read, out, err, ends, self._woken, self._wakes, *pipes):
            os.close(number)
        with open(asked) as file:
            file.seek(0)
            told: dict[str, Any] = json.load(file)
        return told

    def _end(self, pids: Sequence[int]) -> None:
        for pid in pids:
            end_session(pid)

    def _tell_ended(self, how: int) -> None:
        while self._running:
            pid, status = os.waitpid(-1, how)
            if pid == 0:
                return
            ends, _ = self._running.pop(pid)
            with suppress(BrokenPipeError):  # nobody waits for it
                os.write(ends, str(os.waitstatus_to_exitcode(status)).encode())
            os.close(ends)


def become(words: list[str], cwd: str, env: dict[str, str]) -> None:
    """Do what `python *words` does."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.dont_write_bytecode = bool(env.get("PYTHONDONTWRITEBYTECODE"))
    found = [one for one in env.get("PYTHONPATH", "").split(os.pathsep) if one]
    option, *rest = words
    first = {"-m": cwd, "-c": ""}.get(option, str(Path(option).resolve().parent))
    sys.path[:1] = [first, *found]
    importlib.invalidate_caches()
    if option == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif option == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.modules["__main__"] = main = ModuleType("__main__")
        exec(rest[0], vars(main))
    else:
        sys.argv = words
        runpy.run_path(option, run_name="__main__")


if __name__ == "__main__":
    became = Original(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:]).copied()
    become(**became)
