"""Seconds that pages, answers and making take in a study of many items while a team labels it.

python -m benchmarks.large [--items 50000] [--annotators 10] [--results large]

A manifest of ITEMS reconstructions of 32 x 32 pixels of 14 models becomes a study on a fresh data
folder, through the command. Half of its slots are filled. Then `app.py` serves it; ANNOTATORS vote
through HTTP, each once a second. Meanwhile pages are asked for as a browser does, one kind beside
the others, LOOKS times each, and newcomers ask for their first twenty pictures. At last each page
is asked for ALONE times with a new vote before each, and nobody else there: CPU seconds are those
of the server and of the processes it starts, until nothing more is computed.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import psutil
from PIL import Image

from annotation.domain import Answer, Study
from annotation.store import Store
from annotation.study.labelling import join, list_studies, next_items, vote
from benchmarks.annotation import (
    CLASSES,
    MODELS,
    Browser,
    check,
    fetched,
    fill,
    person,
    served,
    vote_together,
    wait_for_rest,
)
from benchmarks.keeping import Finds, Row, add_option
from benchmarks.measuring import ROOT, begin, cpu_of_all, held, judge, peak

SIDE = 32  # pixels
LOOKS = 12
AHEAD = 20  # pictures
ALONE = 3
REST = 5.0  # seconds in which the server computed next to nothing: it rests
STILL = 0.05  # CPU seconds of them that count as nothing
MOST_HELD = 450  # MB in the server
COLUMNS = ("model", "dataset", "attack", "image_id", "class_name", "original", "reconstruction")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=50_000, help="reconstructions of the study")
    parser.add_argument("--votes", type=int, default=5, help="votes per item")
    parser.add_argument("--annotators", type=int, default=10, help="people who vote at once")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long they vote")
    add_option(parser)
    asked = parser.parse_args()
    asked.rate = float(asked.annotators)
    begin()
    with tempfile.TemporaryDirectory() as name, Finds(asked.results) as finds:
        tell = finds.table("large", "", "median", "95%", "CPU s", "n", "target")
        folder = Path(name)
        data = folder / "data0"  # where `served` looks
        manifest = write_manifest(folder, asked.items)
        seconds, spent, lines = create(manifest, data, asked.votes)
        target = judge(seconds, most=30, unit="s")
        tell("`study create --manifest`, s", f"{seconds:.1f}", "", f"{spent:.1f}", 1, target)
        tell("lines of progress meanwhile", lines, "", "", 1, judge(lines, least=3))
        while_they_vote(f"sqlite:///{data / 'studies.db'}", folder, asked, tell)


def write_manifest(folder: Path, n: int) -> Path:
    """The manifest of `n` reconstructions, noised copies of originals that are noise."""
    rng = np.random.default_rng(0)
    for name in ("originals", "shown"):
        (folder / name).mkdir()
    path = folder / "many.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        for number in range(-(-n // MODELS)):
            pixels = rng.integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
            original = f"originals/{number}.png"
            Image.fromarray(pixels).save(folder / original)
            for model in range(min(MODELS, n - number * MODELS)):
                shown = f"shown/{number}-{model}.png"
                Image.fromarray(np.roll(pixels, model + 1, axis=0)).save(folder / shown)
                class_name = CLASSES[number % len(CLASSES)]
                told = (f"model {model:02}", "made", "invgrad", f"{number:05}", class_name)
                rows.writerow((*told, original, shown))
    return path


def create(manifest: Path, data: Path, votes: int) -> tuple[float, float, int]:
    """Seconds and CPU seconds that the command takes, and how many lines of progress it prints."""
    words = ["create", "many", "--manifest", str(manifest), "--data-dir", str(data)]
    words += ["--votes-per-item", str(votes)]
    began, before = time.monotonic(), os.times()
    done = subprocess.run(
        [sys.executable, "-m", "annotation", *words],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    after = os.times()
    spent = after.children_user + after.children_system
    spent -= before.children_user + before.children_system
    return time.monotonic() - began, spent, done.stderr.count(" of ")


def while_they_vote(url: str, folder: Path, asked: argparse.Namespace, tell: Row) -> None:
    with Store(url) as store:
        (made,) = list_studies(store)
        team = [person(store, made, f"p{n}") for n in range(max(asked.annotators, asked.votes))]
        fill(store, made, team, 0, asked.items // 2)
    with served(url, folder, 1) as ((port,), pids):
        wait_for_rest(pids)
        spent: dict[str, list[float]] = {}

        def timed(what: str, look: Callable[[], object]) -> None:
            began = time.monotonic()
            look()
            spent.setdefault(what, []).append(time.monotonic() - began)

        def looking(what: str, look: Callable[[], object], pause: float) -> None:
            for _ in range(LOOKS):
                timed(what, look)
                time.sleep(pause)

        looks = looks_at(port, made)
        pause = asked.seconds / LOOKS / 2
        threads = [threading.Thread(target=looking, args=(*one, pause)) for one in looks.items()]
        for thread in threads:
            threading.Timer(5.0, thread.start).start()  # once they vote
        load = vote_together(made, [port], pids, asked)
        for thread in threads:
            thread.join()
        with Store(url) as store:
            cpu = {what: alone(store, made, pids[0], look) for what, look in looks.items()}
        now, most = held(pids[0]), peak(pids[0])
    with Store(url) as store:
        check(store, made, load)
    if load.errors:
        raise RuntimeError(f"{len(load.errors)} errors: {load.errors[0]}")
    first, *others = spent["results"]
    for what, times, computed, wanted in (
        ("Overview, s", spent["overview"], cpu["overview"], 0.3),
        ("Results for the first time, s", [first], None, 2.0),
        ("Results again, with new votes, s", others, cpu["results"], 2.0),
        ("side bar, s", spent["frame"], cpu["frame"], 0.3),
        (f"first {AHEAD} pictures of a newcomer, s", spent["ahead"], cpu["ahead"], 0.1),
        ("acknowledged vote, s", load.votes, None, 0.1),
    ):
        p50, p95 = np.quantile(times, (0.5, 0.95))
        target = judge(p95, most=wanted, unit="s")
        used = "" if computed is None else f"{computed:.2f}"
        tell(what, f"{p50:.3f}", f"{p95:.3f}", used, len(times), target)
    target = judge(now * 2**20 / 1e6, most=MOST_HELD, unit="MB")
    tell("memory of the server afterwards, MiB", f"{now:.0f}", "", "", 1, target)
    tell("at most, MiB", f"{most:.0f}", "", "", 1, "")


def looks_at(port: int, made: Study) -> dict[str, Callable[[], object]]:
    """Requests by what they are for, each like one of a browser."""

    newcomers = [Browser(port, made.token, f"new {number}") for number in range(LOOKS + ALONE)]

    def ahead() -> None:
        reply, _ = newcomers.pop().ask("GET", f"/api/next?tab=t&n={AHEAD}")
        if len(reply["items"]) < AHEAD:
            raise RuntimeError(f"{len(reply['items'])} pictures came, not {AHEAD}.")

    def page(name: str) -> Callable[[], object]:
        return lambda: fetched(port, "GET", f"/studio/{name}?study={made.id}")

    return {"ahead": ahead, **{name: page(name) for name in ("overview", "results", "frame")}}


def alone(store: Store, made: Study, pid: int, look: Callable[[], object]) -> float:
    """CPU seconds of the server and its processes for a look after a new vote, as a median."""
    who = join(store, made.token, f"alone {time.monotonic_ns()}").annotator
    server, costs = psutil.Process(pid), []
    for item in next_items(store, who, "t", ALONE, datetime.now(UTC)):
        name = str(uuid.uuid4())
        answer = Answer(id=name, item=item.item, answer=item.candidates[0], tab="t", rt_ms=900.0)
        vote(store, who, answer, datetime.now(UTC))
        before = so_far = cpu_of_all(server)
        look()
        time.sleep(REST)
        while (now := cpu_of_all(server)) - so_far > STILL:
            so_far = now
            time.sleep(REST)
        costs.append(now - before)
    return float(np.median(costs))


if __name__ == "__main__":
    main()
