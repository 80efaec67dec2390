"""What every benchmark says beside its figures: what it began with, and whether a target is met."""

import atexit
import multiprocessing
import re
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from semsim.base.storage.pieces import key_of
from semsim.base.storage.versions import software_versions
from semsim.device import cores, how_busy

ROOT = Path(__file__).resolve().parents[1]
MOST_ERRORS = 0.06  # wanted of a type I error at p ≤ 0.05
# What `judge` says, found again in what was printed.
JUDGED = re.compile(r"[≤≥] [^|:]*: (met|\*\*missed\*\*)")


def begin() -> None:
    """Print what this run begins with, and, when the process ends, what it ends with."""
    made_of = ", ".join(f"{name} {said}" for name, said in software_versions().items())
    print(f"Began {datetime.now(UTC):%Y-%m-%d %H:%M} UTC with {how_busy()} on {cores()} cores.")
    print(f"Code {code()}; {made_of}.\n", flush=True)
    atexit.register(_end, time.monotonic())


def judge(
    value: float, *, most: float | None = None, least: float | None = None, unit: str = ""
) -> str:
    """The target and whether the value meets it, "≤ 2.5 s: met"; nothing where there is none.

    most, least: the target, one of them; what is no number misses it.
    """
    if most is not None:
        sign, target, met = "≤", most, value <= most
    elif least is not None:
        sign, target, met = "≥", least, value >= least
    else:
        return ""
    space = "" if unit in ("", "%") else " "
    return f"{sign} {target:,g}{space}{unit}: {'met' if met else '**missed**'}"


def judge_errors(low: float) -> str:
    """Return whether a type I error meets `MOST_ERRORS`; it is too high if its interval is above.

    Args:
        low: The lower end of its 95 % interval; of several errors the highest.
    """
    return f"interval from {low:.3f}, {judge(low, most=MOST_ERRORS)}"


def apart(work: Callable[..., Any], *given: Any) -> Any:
    """What `work(*given)` returns in a fresh process, whose peak memory is its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *given).result()


def peak(pid: int | str = "self") -> float:
    """The most memory that this or another process has held, libraries included, in MiB.

    As the kernel counts it since the program began: what `getrusage` says of a process that was
    started by a larger one is the larger one's.
    """
    return _memory(pid, "VmHWM")


def held(pid: int) -> float:
    """The memory that a process holds now, in MiB, counted as in `peak`."""
    return _memory(pid, "VmRSS")


def _memory(pid: int | str, what: str) -> float:
    said = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return float(said.split(f"{what}:")[1].split()[0]) / 1024


def cpu_of_all(process: psutil.Process) -> float:
    """User and system seconds of a process and of all it started so far."""
    total = 0.0
    for one in (process, *process.children(recursive=True)):
        try:
            spent = one.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += spent.user + spent.system
    mine = process.cpu_times()
    return total + mine.children_user + mine.children_system


def code() -> str:
    """The newest commit of `main` in what runs, and where files differ from it a hash of how.

    Commits of a branch get other names when it lands; those of `main` stay.
    """
    try:
        commit = _landed()
        changes = _git("diff", commit)
    except (OSError, subprocess.CalledProcessError):
        return "of no commit"
    return commit[:12] + (f"+{key_of(changes, 8)}" if changes else "")


def _landed() -> str:
    try:
        return _git("merge-base", "HEAD", "main").strip()
    except subprocess.CalledProcessError:  # no branch is called so
        return _git("rev-parse", "HEAD").strip()


def _end(began: float) -> None:
    minutes = (time.monotonic() - began) / 60
    print(f"\nEnded after {minutes:.1f} minutes with {how_busy()}.", flush=True)


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout
