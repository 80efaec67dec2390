"""How busy a campaign keeps the workers of this machine, and what memory it takes.

python -m benchmarks.campaign [--images 48] [--steps 300] [--workers 2] [--rounds 3]

A campaign on the built-in symbols: two strategies and two seeds, so four targets to train, and
IMAGES to attack on each. Workers and this process have imported everything and have carried out
such a campaign before, a quarter as large; then comes each round on an empty data folder. Busy is
the CPU time of the workers, user and system, over WORKERS times the time on the clock, from the
call that carries out the plan to its return. In a line below it, the same tenth by tenth, which
shows where they wait. Peak memory only grows: by how much from the small campaign to the large one
says whether it is bounded: at most GROWS MiB.
"""

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

import numpy as np
import psutil
import torch

from benchmarks.measuring import begin, judge, peak
from semsim.campaign import work
from semsim.campaign.campaign_job import plan_of
from semsim.campaign.plan import DEMO_GRID, Plan
from semsim.campaign.runner import HowToRun, run_plan
from semsim.grid.machines import Client, connect
from semsim.targets.train_settings import TrainSettings

LOOK = 0.2  # seconds between two looks at the workers
BUSY = 90.0  # per cent of their time, at least
TENTHS = 10
SMALLER = 4  # times, is the campaign before
GROWS = 50  # MiB, at most
HERE = "this process"


@dataclass(frozen=True, kw_only=True)
class Course:
    """When the workers were looked at, on the clock, and the CPU seconds they had by then."""

    looks: list[tuple[float, float]] = field(default_factory=list)

    def busy(self, workers: int) -> float:
        """Per cent of their time."""
        (began, before), (ended, after) = self.looks[0], self.looks[-1]
        return 100 * (after - before) / (ended - began) / workers

    def tenths(self, workers: int) -> list[float]:
        """The same of each tenth of the time."""
        at, cpu = zip(*self.looks, strict=True)
        edges = np.linspace(at[0], at[-1], TENTHS + 1)
        used = np.diff(np.interp(edges, at, cpu))
        return (100 * used / np.diff(edges) / workers).tolist()

    @property
    def seconds(self) -> float:
        return self.looks[-1][0] - self.looks[0][0]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=48, help="of each of four targets")
    parser.add_argument("--steps", type=int, default=300, help="of each attack")
    parser.add_argument("--epochs", type=int, default=8, help="of each training")
    parser.add_argument("--together", type=int, default=8, help="images of a piece of work")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    begin()
    torch.set_num_threads(1)  # as a worker
    large, small = (symbols(asked, asked.images // share) for share in (1, SMALLER))
    with (
        tempfile.TemporaryDirectory() as folder,
        connect(workers=asked.workers, needs=work.__name__) as client,
    ):
        carried_out(small, Path(folder) / "small", client)
        before = memory(client)
        courses = [
            carried_out(large, Path(folder) / str(turn), client) for turn in range(asked.rounds)
        ]
        after = memory(client)
    cells = sum(len(planned.cells) for planned in large.sets)
    print(
        f"{cells} images on {len(large.targets)} targets, {asked.steps} steps, {asked.workers} "
        f"workers, {asked.rounds} rounds"
    )
    tell_busy(courses, asked.workers)
    tell_memory(before, after)


def symbols(asked: argparse.Namespace, images: int) -> Plan:
    """The campaign that is carried out, of so many images on each target."""
    campaign = replace(
        DEMO_GRID,
        name=f"busy-{images}",
        datasets=("symbols:train_per_class=20",),
        architectures=("cnn4:activation=silu",),
        strategies=("none", "noise"),
        attacks=(f"invgrad:fast,steps={asked.steps}",),
        seeds=(0, 1),
        images=images,
        together=asked.together,
        train=TrainSettings(epochs=asked.epochs, batch_size=32, lr=0.01),
    )
    return plan_of(campaign)


def carried_out(plan: Plan, data: Path, client: Client) -> Course:
    """Carry it out and look at the workers meanwhile. Ends where anything failed."""
    course, done = Course(), threading.Event()
    workers = [psutil.Process(pid) for pid in client.run(os.getpid).values()]

    def look() -> None:
        used = (one.cpu_times() for one in workers)
        course.looks.append((time.monotonic(), sum(one.user + one.system for one in used)))

    def watch() -> None:
        with suppress(psutil.NoSuchProcess):
            while not done.wait(LOOK):
                look()

    thread = threading.Thread(target=watch)
    look()
    thread.start()
    try:
        found = run_plan(plan, data, client, HowToRun(device="cpu"))
    finally:
        done.set()
        thread.join()
    look()
    if found["n_failed"] or found["undone"]:
        raise SystemExit(f"Not all was attacked: {found}")
    return course


def memory(client: Client) -> dict[str, float]:
    """Peak memory of this process and of the workers' largest, in MiB."""
    workers = [peak(pid) for pid in client.run(os.getpid).values()]
    return {HERE: peak(), "the largest worker": max(workers)}


def tell_busy(courses: Sequence[Course], workers: int) -> None:
    each = [course.busy(workers) for course in courses]
    middle = median(each)
    runs = ", ".join(f"{one:.0f}" for one in each)
    print(f"busy {middle:.1f}%, {judge(middle, least=BUSY, unit='%')} (rounds: {runs})")
    tenths = zip(*(course.tenths(workers) for course in courses), strict=True)
    print("  tenth by tenth: " + " ".join(f"{median(one):.0f}" for one in tenths))
    print(f"  {median(course.seconds for course in courses):.1f} s on the clock")


def tell_memory(before: Mapping[str, float], after: Mapping[str, float]) -> None:
    for who, now in after.items():
        grown = now - before[who]
        than = f"than with {1 / SMALLER:g} of it, {judge(grown, most=GROWS, unit='MiB')}"
        print(f"{who}: at most {now:.0f} MiB, {grown:.0f} more {than}")


if __name__ == "__main__":
    main()
