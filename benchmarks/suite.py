"""Time the tests as make runs them, alone or beside processes that keep the cores busy.

python -m benchmarks.suite [test|test-all] [--busy 4] [--results NAME]

A clean clone with the environment of a checkout gives what a newcomer waits for. Beside busy
processes tests wait four times as long for what has to happen, and no test is run again. A run
with failures is kept, too: the table has the three newest runs.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks import keeping
from benchmarks.claims import kept
from benchmarks.keeping import Finds
from benchmarks.measuring import ROOT, code
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


def run(target: str, beside: int) -> list[str]:
    """Run a target of the Makefile, and return and print its lines."""
    around = {**os.environ, **({"SEMSIM_TEST_PATIENCE": str(PATIENCE)} if beside else {})}
    lines = []
    with subprocess.Popen(
        [*MAKE, target],
        cwd=ROOT,
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


def main() -> None:
    """Run a target once, and keep its time, its CPU and its tests."""
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    options.add_argument("target", choices=MINUTES)
    options.add_argument("--busy", type=int, default=0, help="processes beside, that compute")
    keeping.add_option(options)
    given = options.parse_args()
    load = how_busy()
    with Finds(given.results) as finds, busy(given.busy):
        before = kept(finds.name, finds.folder).get("runs")
        used, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        passed, skipped, failed = summary(run(given.target, given.busy))
        minutes = (time.monotonic() - began) / 60
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
        finds.figure("minutes", round(minutes, 1))
        finds.figure("cpu", round(cpu), "CPU s")
        alone = not given.busy  # targets are of a quiet machine
        row = finds.table(
            "runs",
            *(f"`make {given.target}` at", "passed", "skipped", "failed"),
            *("min", "min wanted", "CPU s", "CPU s wanted", "before"),
        )
        row(
            *(f"`{code()[:8]}`", f"{passed:,}", f"{skipped:,}", failed),
            *(f"{minutes:.1f}", judged(minutes, MINUTES[given.target] if alone else None)),
            *(f"{cpu:,.0f}", judged(cpu, CPU.get(given.target) if alone else None), load),
        )
        older = before.value[2 : 1 + NEWEST] if before and isinstance(before.value, list) else ()
        for line in older:
            row(*(cell.strip() for cell in line.strip("|").split("|")))


if __name__ == "__main__":
    main()
