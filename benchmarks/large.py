"""Seconds that pages, answers and making take in a study of many items while a team labels it.

python -m benchmarks.large [--items 50000] [--annotators 10] [--results large]

A manifest of ITEMS reconstructions of 32 x 32 pixels of 14 models becomes a study on a fresh data
folder, through the command. Half of its slots are filled. Then `app.py` serves it; ANNOTATORS vote
through HTTP, each once a second. Meanwhile pages are asked for as a browser does, one kind beside
the others, LOOKS times each, and newcomers ask for their first twenty pictures.
"""

import argparse
import csv
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from annotation.store import Store
from annotation.study.labelling import list_studies
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
from benchmarks.measuring import ROOT, begin, judge, peak

SIDE = 32  # pixels
LOOKS = 12
AHEAD = 20  # pictures
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
        tell = finds.table("large", "", "median", "95%", "n", "target")
        folder = Path(name)
        data = folder / "data0"  # where `served` looks
        manifest = write_manifest(folder, asked.items)
        seconds, lines = create(manifest, data, asked.votes)
        target = judge(seconds, most=30, unit="s")
        tell("`study create --manifest`, s", f"{seconds:.1f}", "", 1, target)
        tell("lines of progress meanwhile", lines, "", 1, judge(lines, least=3))
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


def create(manifest: Path, data: Path, votes: int) -> tuple[float, int]:
    """Seconds that the command takes, and how many lines of progress it prints."""
    words = ["create", "many", "--manifest", str(manifest), "--data-dir", str(data)]
    words += ["--votes-per-item", str(votes)]
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "annotation", *words],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return time.monotonic() - began, done.stderr.count(" of ")


def while_they_vote(url: str, folder: Path, asked: argparse.Namespace, tell: Row) -> None:
    with Store(url) as store:
        (made,) = list_studies(store)
        team = [person(store, made, f"p{n}") for n in range(max(asked.annotators, asked.votes))]
        fill(store, made, team, 0, asked.items // 2)
    page = f"/studio/{{}}?study={made.id}"
    with served(url, folder, 1) as ((port,), pids):
        wait_for_rest(pids)
        spent: dict[str, list[float]] = {}

        def looking(what: str, look: Callable[[int], object], pause: float) -> None:
            for number in range(LOOKS):
                began = time.monotonic()
                look(number)
                spent.setdefault(what, []).append(time.monotonic() - began)
                time.sleep(pause)

        def ahead(number: int) -> None:
            browser = Browser(port, made.token, f"new {number}")
            began = time.monotonic()
            reply, _ = browser.ask("GET", f"/api/next?tab=t&n={AHEAD}")
            spent.setdefault("ahead", []).append(time.monotonic() - began)
            if len(reply["items"]) < AHEAD:
                raise RuntimeError(f"{len(reply['items'])} pictures came, not {AHEAD}.")

        looks: dict[str, Callable[[int], object]] = {
            "overview": lambda _: fetched(port, "GET", page.format("overview")),
            "results": lambda _: fetched(port, "GET", page.format("results")),
            "frame": lambda _: fetched(port, "GET", page.format("frame")),
            "joining": ahead,
        }
        pause = asked.seconds / LOOKS / 2
        threads = [
            threading.Thread(target=looking, args=(what, look, pause))
            for what, look in looks.items()
        ]
        for thread in threads:
            threading.Timer(5.0, thread.start).start()  # once they vote
        load = vote_together(made, [port], pids, asked)
        for thread in threads:
            thread.join()
        held = peak(pids[0])
    with Store(url) as store:
        check(store, made, load)
    if load.errors:
        raise RuntimeError(f"{len(load.errors)} errors: {load.errors[0]}")
    first, *others = spent["results"]
    for what, times, most in (
        ("Overview, s", spent["overview"], 0.3),
        ("Results for the first time, s", [first], 2.0),
        ("Results again, with new votes, s", others, 2.0),
        ("side bar, s", spent["frame"], 0.3),
        (f"first {AHEAD} pictures of a newcomer, s", spent["ahead"], 0.1),
        ("acknowledged vote, s", load.votes, 0.1),
    ):
        p50, p95 = np.quantile(times, (0.5, 0.95))
        target = judge(p95, most=most, unit="s")
        tell(what, f"{p50:.3f}", f"{p95:.3f}", len(times), target)
    tell("most memory of the server, MiB", f"{held:.0f}", "", 1, "")


if __name__ == "__main__":
    main()
