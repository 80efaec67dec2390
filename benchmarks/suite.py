"""Time the tests as make runs them, alone or beside processes that keep the cores busy.

python -m benchmarks.suite [test|test-all] [--busy 4] [--clones 3] [--results NAME]

A clean clone with the environment of a checkout gives what a newcomer waits for. Several clones
run at once, so that each is beside the others, too. Beside busy processes tests wait four times as
long for what has to happen, and no test is run again. A run with failures is kept, too: the table
has the three newest runs.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks import keeping
from benchmarks.claims import kept
from benchmarks.keeping import Finds
from benchmarks.measuring import ROOT, code
from semsim.base.words import counted
from semsim.device import how_busy

MAKE = ("make",)
MINUTES = {"test": 6, "test-all": 15}  # at most, on two quiet cores
CPU = {"test": 400}  # seconds at most, of what make waits for
PATIENCE = 4  # times as long that tests wait beside busy processes
NEWEST = 3
_SUMMARY = re.compile(r"(?:(\d+) failed, )?(\d+) passed(?:, (\d+) skipped)?.* in [\d.]+s")
_BUSY = "while True: pass"


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Run `count` processes that compute all the time."""
    running = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


def summary(lines: list[str]) -> tuple[int, int, int]:
    """Return how many tests passed, were skipped and failed, of what pytest printed.

    Raises `ValueError` where it printed no summary.
    """
    found = [match for line in lines if (match := _SUMMARY.search(line))]
    if not found:
        raise ValueError("make printed no summary of tests.")
    failed, passed, skipped = (int(one or 0) for one in found[-1].groups())
    return passed, skipped, failed


@contextmanager
def checkouts(clones: int) -> Iterator[list[Path]]:
    """Give this checkout, or so many clean clones of its commit with its environment."""
    if not clones:
        yield [ROOT]
        return
    with tempfile.TemporaryDirectory() as place:
        made = [Path(place, str(number)) for number in range(clones)]
        for one in made:
            subprocess.run(["git", "clone", "--quiet", ROOT, one], check=True)
            (one / ".venv").symlink_to(ROOT / ".venv")
        for stamp in (ROOT / ".venv").glob("*.stamp"):
            stamp.touch()  # younger than the lists of the clones: nothing is installed
        yield made


def run(target: str, beside: int, checkout: Path) -> list[str]:
    """Run a target of the Makefile there, and return and print its lines."""
    around = {**os.environ, **({"SEMSIM_TEST_PATIENCE": str(PATIENCE)} if beside else {})}
    lines = []
    with subprocess.Popen(
        [*MAKE, target],
        cwd=checkout,
        env=around,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as making:
        assert making.stdout is not None
        for line in making.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    return lines


def judged(value: float, most: float | None) -> str:
    """Return how a value stands to its target."""
    return "" if most is None else f"≤ {most}: {'met' if value <= most else '**missed**'}"


def timed(target: str, beside: int, checkout: Path) -> tuple[tuple[int, int, int], float]:
    """Run a target there, and return its `summary` and minutes."""
    began = time.monotonic()
    found = summary(run(target, beside, checkout))
    return found, (time.monotonic() - began) / 60


def main() -> None:
    """Run a target, and keep its time, its CPU and its tests."""
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    options.add_argument("target", choices=MINUTES)
    options.add_argument("--busy", type=int, default=0, help="processes beside, that compute")
    options.add_argument("--clones", type=int, default=0, help="clean clones that run it at once")
    keeping.add_option(options)
    given = options.parse_args()
    alone = not given.busy and given.clones < 2  # targets are of a quiet machine
    load = how_busy()
    with Finds(given.results) as finds, busy(given.busy), checkouts(given.clones) as places:
        before = kept(finds.name, finds.folder).get("runs")
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        with ThreadPoolExecutor(len(places)) as pool:
            done = list(pool.map(partial(timed, given.target, given.busy), places))
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
        runs = counted(len(done), "run")
        finds.figure("minutes", round(max(minutes for _, minutes in done), 1), n=runs)
        finds.figure("cpu", round(cpu / len(done)), "CPU s", runs)
        row = finds.table(
            "runs",
            *(f"`make {given.target}` at", "passed", "skipped", "failed"),
            *("min", "min wanted", "CPU s", "CPU s wanted", "before"),
        )
        beside = [f"{given.busy} busy processes"] if given.busy else []
        beside += [f"{len(done) - 1} other runs"] if len(done) > 1 else []
        around = "; beside ".join([load, *([" and ".join(beside)] if beside else [])])
        for (passed, skipped, failed), minutes in done:
            row(
                *(f"`{code()[:8]}`", f"{passed:,}", f"{skipped:,}", failed),
                *(f"{minutes:.1f}", judged(minutes, MINUTES[given.target] if alone else None)),
                *(f"{cpu / len(done):,.0f}", judged(cpu, CPU.get(given.target) if alone else None)),
                around,
            )
        older = before.value[2:] if before and isinstance(before.value, list) else []
        for line in older[: max(0, NEWEST - len(done))]:
            row(*(cell.strip() for cell in line.strip("|").split("|")))


if __name__ == "__main__":
    main()
