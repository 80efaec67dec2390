"""Python processes that begin as copies of one that has imported the large libraries.

They have done nothing, and nothing of the product is imported: a copy finds it by itself.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

LARGE = ("distributed.cli.dask_worker", "pandas", "torch._dynamo")  # the last by every optimiser


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
            _kill(self.pid)

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
) -> Copy:
    """Start what `python *words` starts; `words` are -m, -c or a file, and what follows.

    out: where it writes what it says, and its errors, unless there is `err`.
    """
    line = _original()
    ended, ends = os.pipe()
    with tempfile.TemporaryFile("w+") as asked:
        json.dump({"words": list(words), "cwd": str(cwd), "env": dict(env)}, asked)
        asked.flush()
        files = [asked.fileno(), out.fileno(), (err or out).fileno(), ends]
        socket.send_fds(line, [b"1"], files)
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
def _original() -> socket.socket:
    ours, its = socket.socketpair()
    fileno = its.fileno()
    around = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    original = subprocess.Popen(
        [sys.executable, __file__, str(fileno)], env=around, pass_fds=[fileno]
    )
    its.close()

    def end() -> None:
        ours.close()
        original.wait()

    atexit.register(end)
    return ours


def copied(line: socket.socket) -> dict[str, Any]:
    """Make copies for as long as somebody asks; returns in each copy, with what it is to do."""
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for asked_to_end in (signal.SIGTERM, signal.SIGINT):  # it ends, and all copies, with the tests
        signal.signal(asked_to_end, signal.SIG_IGN)
    signal.set_wakeup_fd(wakes)
    running: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([line, woken], [], [])
        if woken in ready:
            os.read(woken, 999)
            _tell_ended(running, os.WNOHANG)
        if line not in ready:
            continue
        word, passed, _, _ = socket.recv_fds(line, 1, 4)
        if not word:
            break
        *files, ends = passed
        pid = os.fork()
        if pid == 0:
            return _begun(*files, (line.detach(), woken, wakes, ends, *running.values()))
        for number in files:
            os.close(number)
        running[pid] = ends
        line.sendall(str(pid).encode())
    for pid in running:
        _kill(pid)
    while running:
        _tell_ended(running, 0)
    raise SystemExit


def _begun(asked: int, out: int, err: int, others: Sequence[int]) -> dict[str, Any]:
    """Cut a copy loose from the original, and return its order."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # Whoever started the tests in the background made them deaf to Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.setsid()
    os.dup2(out, 1)
    os.dup2(err, 2)
    for number in (out, err, *others):
        os.close(number)
    with open(asked) as file:
        file.seek(0)
        told: dict[str, Any] = json.load(file)
    return told


def _kill(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:  # it has just begun, and has no session yet
        os.kill(pid, signal.SIGKILL)


def _tell_ended(running: dict[int, int], how: int) -> None:
    while running:
        pid, status = os.waitpid(-1, how)
        if pid == 0:
            return
        ends = running.pop(pid)
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
        exec(rest[0], {"__name__": "__main__"})
    else:
        sys.argv = words
        runpy.run_path(option, run_name="__main__")


if __name__ == "__main__":
    for name in LARGE:
        importlib.import_module(name)
    gc.freeze()
    become(**copied(socket.socket(fileno=int(sys.argv[1]))))
