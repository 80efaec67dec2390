"""Programs that some tests need; `python tests/programs.py` prints the packages to install.

Only the standard library: it runs before anything is installed.
"""

import os
import shutil
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn
from urllib.parse import urlsplit

POSTGRES = os.environ.get(
    "SEMSIM_TEST_POSTGRES", "postgresql+psycopg://postgres@127.0.0.1:5432/test"
)
MISSING = "missing: "


def on_path(*names: str) -> Callable[[], str]:
    """Return a function that finds the first of `names` on PATH or in /usr/sbin, or returns ""."""
    paths = (None, "/usr/sbin")
    return lambda: next(
        (found for name in names for path in paths if (found := shutil.which(name, path=path))), ""
    )


def answering() -> str:
    """Return the address of the PostgreSQL server if one answers, else ""."""
    server = urlsplit(POSTGRES)
    try:
        socket.create_connection((str(server.hostname), server.port or 5432), timeout=5).close()
    except OSError:
        return ""
    return POSTGRES


@dataclass(frozen=True)
class Needed:
    """A program: how to find it, its Debian package, else the command that installs it.

    A test that finds it by itself calls `skip_without`. Where it `may_lack`, as it is large or
    no package of Debian, its tests are skipped by name on every machine without it.
    """

    find: Callable[[], str] = str
    package: str = ""
    command: str = ""
    may_lack: bool = False

    @property
    def install(self) -> str:
        return self.command or f"apt-get install {self.package}"


NEEDED: Mapping[str, Needed] = {
    "make": Needed(on_path("make"), "make"),
    "git": Needed(on_path("git"), "git"),
    # The shell draws no windows of its own: a new context takes a third of the time.
    "Chromium": Needed(
        on_path("chromium-headless-shell", "chromium", "chromium-browser"),
        "chromium-headless-shell",
    ),
    "Node": Needed(on_path("node"), "nodejs"),
    "nginx": Needed(on_path("nginx"), "nginx-light"),
    "Caddy": Needed(on_path("caddy"), "caddy"),
    "systemd-analyze": Needed(on_path("systemd-analyze"), "systemd"),
    "ip": Needed(on_path("ip"), "iproute2"),
    "docker-compose": Needed(
        on_path("docker-compose"),
        command="apt-get install docker-compose, which brings Docker",
        may_lack=True,
    ),
    "hadolint": Needed(
        on_path("hadolint"),
        command="a program of https://github.com/hadolint/hadolint, on PATH",
        may_lack=True,
    ),
    "createdb": Needed(on_path("createdb"), "postgresql-client"),
    "a PostgreSQL server": Needed(
        answering, command="apt-get install postgresql, or name one in SEMSIM_TEST_POSTGRES"
    ),
    "Flower": Needed(command="make flower"),
    "readers of the exports": Needed(command="make formats"),
}


def needed(name: str) -> str:
    """Return where `name` of `NEEDED` is; skip the test without it, or fail where none may skip."""
    return NEEDED[name].find() or skip_without(name)


def skip_without(name: str) -> NoReturn:
    """Skip the test for want of `name`, for the summary at the end of the run."""
    import pytest
    from helpers import skip_or_fail

    (pytest.skip if NEEDED[name].may_lack else skip_or_fail)(f"{MISSING}{name}")


def summary(reasons: list[str]) -> list[str]:
    """Return a line for each program that the reasons of skipped tests name, with its count."""
    counts = {name: sum(f"{MISSING}{name}" in one for one in reasons) for name in NEEDED}
    return [f"{name} ({n} tests): {NEEDED[name].install}" for name, n in counts.items() if n]


if __name__ == "__main__":
    packages = (one.package for one in NEEDED.values() if one.package and not one.find())
    sys.stdout.write(" ".join(packages))
