"""Process that runs a job, told apart from any other that gets its number later."""

import contextlib
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

SAME = 2.0  # seconds by which two readings of one process's start may differ


def owner_now(pid: int) -> dict[str, float]:
    """Return pid, started and booted of a process that runs, in seconds since the epoch.

    Raises `psutil.NoSuchProcess` where there is none of that number.
    """
    started = psutil.Process(pid).create_time()
    return {"pid": pid, "started": started, "booted": psutil.boot_time()}


def owner_from(content: Mapping[str, Any]) -> dict[str, float] | None:
    """Return what `owner_now` returned, as read from a file; None where that does not say it."""
    try:
        return {name: float(content[name]) for name in ("pid", "started", "booted")}
    except (KeyError, TypeError, ValueError):
        return None


def is_alive(owner: Mapping[str, float] | None) -> bool:
    """Return whether the very process runs: same number, same start, and not a zombie."""
    if owner is None:
        return False
    try:
        process = psutil.Process(int(owner["pid"]))
        started = process.create_time()
        # Where the system reckons a start from the boot, setting the clock moves both alike.
        since_boot = (owner["started"] - owner["booted"]) - (started - psutil.boot_time())
        same = min(abs(started - owner["started"]), abs(since_boot)) < SAME
        return same and process.status() not in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
    except (psutil.Error, ValueError, OverflowError):  # none, or somebody else's with the number
        return False


def sweep_sockets(folder: Path, age: float = 3600.0) -> None:
    """Remove what killed processes that had workers left in `folder`, that of temporary files.

    Python makes them a folder `pymp-…` with a socket, which nothing listens at any more. age:
    seconds since the last change, below which it may just have been made.
    """
    try:
        open_now = {one.laddr for one in psutil.net_connections("unix")}
    except (psutil.Error, ValueError):  # the system has none, or does not let us look
        return
    for found in folder.glob("pymp-*/"):
        with contextlib.suppress(OSError):  # somebody else's, or gone
            left, seen = list(found.iterdir()), found.stat()
            dead = left and all(one.is_socket() and str(one) not in open_now for one in left)
            if dead and seen.st_uid == os.getuid() and time.time() - seen.st_mtime > age:
                shutil.rmtree(found)
