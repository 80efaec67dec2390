"""How long the product takes to say something: CPU seconds and memory of the whole process.

python -m benchmarks.startup [--runs 5 | --idle 3]

Each line is a program started afresh RUNS times, one after another, and the medians: user and
system time, and the most memory it held. `score` judges ten pairs of 32x32. The studio is served
on a fresh data folder; its figures are those of the moment when its first page has come (which the
built-in study is not waited for), and of when the built-in study is whole and nobody asks anything.

With --idle one studio is served, and what it takes in each of so many minutes in which nobody asks
anything.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import psutil
from PIL import Image

from benchmarks.keeping import Finds, add_option
from benchmarks.measuring import ROOT, begin, judge
from semsim.base.storage.ports import reserved_port

LOOK = 0.1  # seconds between two looks at a server
IDLE = 10  # looks in a row at which a server computed nothing: it is idle
MINUTE = 60.0  # seconds
MOST_IDLE = 0.005  # of a core, of a server that nobody looks at
PATIENCE = 300.0


class Used(NamedTuple):
    """CPU seconds, and memory in MB."""

    cpu: float
    memory: float


class Row(NamedTuple):
    """What was measured, its targets (None: there is none), what every run used."""

    what: str
    targets: tuple[float | None, float | None]
    runs: list[Used]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5, help="how often each is started")
    parser.add_argument("--idle", type=int, default=0, help="only how much it takes while idle")
    add_option(parser)
    asked = parser.parse_args()
    runs = range(asked.runs)
    begin()
    if asked.idle:
        nobody_looks(asked.idle, asked.results)
        return
    rows = [
        Row(f"`python -m {half} --help`", (0.5, 80), [command(half, "--help") for _ in runs])
        for half in ("semsim", "annotation")
    ]
    rows.append(Row("`score`, three metrics, ten pairs", (2.5, None), [score() for _ in runs]))
    served = [studio() for _ in runs]
    rows.append(Row("`app.py`, first page", (6.0, None), [first for first, _ in served]))
    rows.append(Row("`app.py`, idle", (None, 400), [idle for _, idle in served]))
    with Finds(asked.results) as finds:
        tell = finds.table("startup", "", "CPU s (least to most)", "target", "MB", "target")
        for row in rows:
            tell(*cells(row))


def cells(row: Row) -> list[str]:
    """Return what is said of a row."""
    cpu, memory = [one.cpu for one in row.runs], [one.memory for one in row.runs]
    times = f"{median(cpu):.2f} ({min(cpu):.2f} to {max(cpu):.2f})"
    judged = [judge(median(v), most=t) for v, t in zip((cpu, memory), row.targets, strict=True)]
    return [row.what, times, judged[0], f"{median(memory):.0f}", judged[1]]


def command(*arguments: str) -> Used:
    """What `python -m arguments` used."""
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"python -m {' '.join(arguments)} ended with {process.returncode}")
    return Used(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def score() -> Used:
    """What scoring ten pairs used."""
    noise = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name) / "originals", Path(name) / "reconstructions"]
        for folder in folders:
            folder.mkdir()
            for number in range(10):
                pixels = noise.integers(0, 256, (32, 32, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(folder / f"{number}.png")
        return command("semsim", "score", *map(str, folders), "--metrics", "mse,psnr,ssim")


def nobody_looks(n: int, results: str) -> None:
    """Print, and keep, which share of a core a server takes in each of `n` minutes."""
    from annotation.ui.mount import PRESENT  # gradio, which the other figures do without

    with Finds(results) as finds:
        shares = []
        with served() as (process, _):
            time.sleep(PRESENT + 1)  # its first page was looked at
            for _ in range(n):
                before = used_by(process).cpu
                time.sleep(MINUTE)
                shares.append((used_by(process).cpu - before) / MINUTE)
        named = {"share": median(shares), "least": min(shares), "most": max(shares)}
        for name, share in named.items():
            finds.figure(name, share, n=f"{n} minutes")
    told = judge(100 * median(shares), most=100 * MOST_IDLE, unit="%")
    print(f"nobody looks, in % of a core: {told}")


def studio() -> tuple[Used, Used]:
    """What serving used until the first page had come, and by the time nothing was left to do."""
    with served() as (process, first):
        return first, used_by(process)


@contextmanager
def served() -> Iterator[tuple[psutil.Popen, Used]]:
    """A studio with nothing left to do, and what it had used when its first page had come."""
    with reserved_port() as port, tempfile.TemporaryDirectory() as folder:
        options = ["--local", "--port", str(port), "--data-dir", folder, "--device", "cpu"]
        process = psutil.Popen([sys.executable, "app.py", *options], cwd=ROOT)
        try:
            until(lambda: answers(port))
            first = used_by(process)
            rested = [used_by(process).cpu]

            def rests() -> bool:
                rested.append(used_by(process).cpu)
                return len(rested) > IDLE and rested[-1] - rested[-IDLE] < LOOK * IDLE / 20

            until(rests)
            yield process, first
        finally:
            process.terminate()
            process.wait()


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/studio/") as page:
            return bool(page.read())
    except OSError:
        return False


def used_by(process: psutil.Popen) -> Used:
    times = process.cpu_times()
    return Used(times.user + times.system, process.memory_info().rss / 2**20)


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise SystemExit(f"still not so after {PATIENCE:g} s")
        time.sleep(LOOK)


if __name__ == "__main__":
    main()
