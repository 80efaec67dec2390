"""`semsim-studio doctor`: whether the studio would start here, and what to do about it."""

import argparse
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import annotation
from annotation.accounts.access import LOOPBACK, NAME, NO_ACCOUNT, PASSWORD, require_loopback
from annotation.cli.console import address, pictures
from annotation.cli.serving import why_not
from semsim.base.cli.console import show, text_table
from semsim.base.errors import SemsimError
from semsim.base.storage.places import checkout

OK, NOTE, STOPS = "ok", "note", "stops"
NOTHING = "nothing to do"
PACKAGES = ("gradio", "fastapi", "uvicorn", "SQLAlchemy", "torch", "torchvision")
LITTLE, NONE = 2_000_000_000, 100_000_000  # bytes that are free


class Finding(NamedTuple):
    """Finding of a check: what, its state (ok, note or stops), what was found, and what to do."""

    what: str
    state: str
    found: str
    advice: str


def diagnose(options: argparse.Namespace, others: Iterable[tuple[str, str, str, str]]) -> int:
    """Print what was found, as a table or with --json; 1 where something keeps it from starting.

    Args:
        others: Findings of the science about the machine and its weights.
    """
    rows = [*checks(options), *(Finding(*one) for one in others)]
    findings = [row._asdict() for row in rows]
    show({"findings": findings}, text_table(rows[0], rows[1:]), options.json)
    return int(any(row.state == STOPS for row in rows))


def checks(options: argparse.Namespace) -> Iterator[Finding]:
    """All that the studio needs besides its science; nothing is made or changed."""
    yield from _versions()
    yield _folder(options.data_dir)
    yield from _database(address(options.database, options.data_dir.resolve()), options)
    yield _pictures(options)
    yield _port(options.host, options.port)
    yield from _proxies(options)


def _versions() -> Iterator[Finding]:
    yield Finding("SemSim Studio", OK, annotation.__version__, NOTHING)
    python = ".".join(map(str, sys.version_info[:3]))
    fits = sys.version_info >= (3, 11)
    yield Finding(
        "Python", OK if fits else STOPS, python, NOTHING if fits else "install 3.11 or newer"
    )
    for name in PACKAGES:
        try:
            yield Finding(name, OK, version(name), NOTHING)
        except PackageNotFoundError:
            yield Finding(name, STOPS, "not installed", _how_to_install())


def _how_to_install() -> str:
    there = checkout()
    what = '"semsim-studio[studio]"' if there is None else f"-r {there / 'requirements.txt'}"
    return f"pip install {what}"


def _folder(folder: Path) -> Finding:
    there = next(one for one in (folder.resolve(), *folder.resolve().parents) if one.exists())
    free = shutil.disk_usage(there).free
    found = f"{folder}: {free / 1e9:.1f} GB free"
    if not os.access(there, os.W_OK) or not there.is_dir():
        return Finding("disk", STOPS, f"{there} cannot be written", "choose another --data-dir")
    if free < NONE:
        return Finding("disk", STOPS, found, "make room, or choose another --data-dir")
    if free < LITTLE:
        return Finding("disk", NOTE, found, "make room: studies and trainings need some GB")
    return Finding("disk", OK, found, NOTHING)


def _pictures(options: argparse.Namespace) -> Finding:
    from annotation.images import answers

    try:
        images = pictures(options.images, options.data_dir)
        there = answers(images)
    except SemsimError as error:
        return Finding(
            "pictures", STOPS, str(error), "mend what it says, or give another --image-store"
        )
    found = f"{images}" if there else f"none yet at {images}"
    return Finding("pictures", OK, found, NOTHING if there else "nothing to do: a start makes them")


def _database(url: str, options: argparse.Namespace) -> Iterator[Finding]:
    from annotation.store.migrate import standing

    try:
        found = standing(url)
    except (SemsimError, OSError) as error:
        yield Finding("database", STOPS, str(error), "mend what it says, or give --database")
        return
    if not found.there:
        yield Finding(
            "database", OK, f"none yet at {found.address}", "nothing to do: a start makes it"
        )
    elif found.version != found.newest:
        told = f"version {found.version} is not known here, ours is {found.newest}"
        yield Finding("database", STOPS, told, "update the program, or give another --database")
    else:
        yield Finding("database", OK, f"{found.address}, version {found.version}", NOTHING)
    yield _access(url, options, there=found.there and found.version == found.newest)


def _access(url: str, options: argparse.Namespace, *, there: bool) -> Finding:
    from annotation.accounts import register
    from annotation.store import Store

    if options.local:
        try:
            require_loopback(options.host)
        except SemsimError as error:
            return Finding("access", STOPS, "--local", str(error))
        return Finding("access", OK, "everybody on this machine (--local)", NOTHING)
    if there:
        with Store(url, make=False) as store:
            if register.has_accounts(store):
                return Finding("access", OK, "by accounts", NOTHING)
    if PASSWORD not in os.environ and not sys.stdin.isatty():
        return Finding("access", STOPS, "no account yet", NO_ACCOUNT)
    try:
        if PASSWORD in os.environ:
            register.tidy(os.environ.get(NAME, "admin"))
            register.protect(os.environ[PASSWORD])
    except SemsimError as error:
        return Finding(
            "access", STOPS, f"no account, and none from {NAME} and {PASSWORD}", str(error)
        )
    return Finding("access", OK, "no account yet", "nothing to do: a start makes the first")


def _port(host: str, port: int) -> Finding:
    if trouble := why_not(host, port):
        advice = "choose another --host or --port; nothing, if it is the studio that runs there"
        return Finding("port", STOPS, trouble, advice)
    return Finding("port", OK, f"{host}:{port} is free", NOTHING)


def _proxies(options: argparse.Namespace) -> Iterator[Finding]:
    trusted, below = ", ".join(options.trusted_proxy), getattr(options, "root_path", "")
    if trusted:
        advice = "nothing to do, if these are the web servers in front and nobody else"
        yield Finding("trusted proxy", OK, trusted, advice)
    else:
        seen = options.host in LOOPBACK
        advice = "nothing to do, if no web server is in front; else name it with --trusted-proxy"
        yield Finding("trusted proxy", OK if seen else NOTE, "none", advice)
    yield Finding("root path", OK, below or "/", "nothing to do, if pages are to be found there")
