"""The release gates for faults at full size: exact votes under a race, and kill after kill.

python -m benchmarks.faults [--seeds 20] [--kills 100] [--items 100] [--database URL]
python -m benchmarks.faults --only clock,folder [--items 100]

R1: 20 people in two processes label ITEMS items of five votes each, every fifth answer sent twice;
no item may end with more or fewer than five. R2: a process with four people is killed KILLS times
while they vote; every vote they hold a receipt of must be there, and the database sound. Both use
what the tests use, in which the same runs are smaller.

Two more serve with `app.py`, and 20 people vote through HTTP until nothing is left. Clock: the
clock of a server is set an hour forth, back, an hour back and forth again (libfaketime), and
somebody leaves while it is ahead; before, as the control, the same with a clock that is left alone.
Folder: database and log refuse every write for a while (chattr,
which needs root and ext4), as on a disk that was remounted read-only; people send again what was
refused.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests")]

from contracts.labelling_process import labelling  # noqa: E402
from contracts.store_invariants import check, make_study  # noqa: E402
from contracts.test_store import PEOPLE, RECEIPT  # noqa: E402
from sqlalchemy import text  # noqa: E402

from annotation.domain import Study  # noqa: E402
from annotation.spec import Task  # noqa: E402
from annotation.store import Store  # noqa: E402
from annotation.store.engine import sqlite_file  # noqa: E402
from annotation.study.labelling import progress  # noqa: E402
from benchmarks.annotation import Browser, served  # noqa: E402
from benchmarks.measuring import begin, judge  # noqa: E402

K = 5
SHUT_SECONDS = 8.0  # for which the data folder cannot be written
AGAIN_SECONDS = 0.5  # until people send again what was refused


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20, help="runs of R1")
    parser.add_argument("--kills", type=int, default=100, help="kills of R2")
    parser.add_argument("--items", type=int, default=100, help="items of R1")
    parser.add_argument("--database", help="SQLAlchemy URL; default: an SQLite file made for it")
    parser.add_argument("--only", default="races", help="races, clock, folder; with commas")
    options = parser.parse_args()
    begin()
    wanted = set(options.only.split(","))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        url = options.database or f"sqlite:///{folder / 'studies.db'}"
        with Store(url) as store:
            if "clock" in wanted:
                set_about(store, folder / "still", options.items, moved=False)
                set_about(store, folder / "clock", options.items, moved=True)
            if "folder" in wanted:
                read_only_folder(store, folder, options.items)
            if "races" not in wanted:
                return
            started = time.monotonic()
            wrong = sum(race(store, seed, options.items) for seed in range(options.seeds))
            print(
                f"R1: {options.seeds} races of 20 people for {options.items} items: {wrong} items "
                f"without exactly {K} votes, {judge(wrong, most=0)}; "
                f"{time.monotonic() - started:.0f} s"
            )
            started = time.monotonic()
            kept = killed(store, options.kills)
            print(
                f"R2: {options.kills} kills, {kept} acknowledged votes, all there; "
                f"{time.monotonic() - started:.0f} s"
            )
            if store.url.startswith("sqlite"):
                found = store.read(lambda tx: tx.execute(text("PRAGMA integrity_check")).scalar())
                print(f"Integrity check: {found}")


def set_about(store: Store, folder: Path, n_items: int, moved: bool) -> None:
    """People vote while the server's clock jumps or stands; prints what they were told."""
    study = served_study(store, folder, n_items)
    library = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)
    if library is None:
        raise SystemExit("Install libfaketime (Debian: apt-get install libfaketime).")
    clock = folder / "clock"
    clock.write_text("+0")
    environment = {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    with served(store.url, folder, 1, environment) as ([port], _):
        votes = Votes(n_items * K)
        leaver: list[str] = []
        ahead, level, behind = (
            partial(set_clock, clock, by) if moved else (lambda: None)
            for by in ("+1h", "+0", "-1h")
        )
        steps = [
            (0.15, ahead),
            (0.25, lambda: leaver.extend(reserved(port, study))),
            (0.35, level),
            (0.55, behind),
            (0.75, level),
        ]
        everybody_votes(port, study, votes, steps)
        name = "Clock set about" if moved else "Clock left alone"
        print(f"{name}: {votes.told()}; {len(leaver)} items reserved by somebody who left")
        print(f"  {n_items - done(store, study)} items wait for their end")
        set_clock(clock, "+3h")
        everybody_votes(port, study, votes, [])
    check(store, study, set(votes.receipts))
    print(
        f"  three hours on: {votes.told()}; {n_items - done(store, study)} items without {K} votes"
    )


def read_only_folder(store: Store, folder: Path, n_items: int) -> None:
    """People vote while the database cannot be written for a while; prints what they were told."""
    database = sqlite_file(store.url)
    if database is None:
        raise SystemExit("The scenario of the data folder is for SQLite.")
    study = served_study(store, folder, n_items)
    files = [str(database), f"{database}-wal"]
    with served(store.url, folder, 1) as ([port], _):
        votes = Votes(n_items * K)
        shut = threading.Timer(SHUT_SECONDS, immutable, ["-i", files])

        def shut_for_a_while() -> None:
            immutable("+i", files)
            shut.start()

        try:
            everybody_votes(port, study, votes, [(0.4, shut_for_a_while)])
        finally:
            shut.join()
    check(store, study, set(votes.receipts))
    print(f"Folder read-only for {SHUT_SECONDS:g} s: {votes.told()}")
    print(f"  {n_items - done(store, study)} items without {K} votes")


def immutable(sign: str, files: list[str]) -> None:
    subprocess.run(["chattr", sign, *files], check=True)


def set_clock(file: Path, offset: str) -> None:
    """Says what the clock is moved by, whole: a server that reads meanwhile sees old or new."""
    beside = file.with_suffix(".new")
    beside.write_text(offset)
    beside.replace(file)


def served_study(store: Store, folder: Path, n_items: int) -> Study:
    folder.mkdir(exist_ok=True)
    return make_study(store, n_items, Task("recognition"), votes_per_item=K)


def done(store: Store, study: Study) -> int:
    return progress(store, study.id).coverage[K]


class Votes:
    """What was acknowledged and what was refused, by its status and words; safe between threads."""

    def __init__(self, wanted: int) -> None:
        self.receipts: list[str] = []
        self.refused: Counter[str] = Counter()
        self.wanted = wanted
        self.slowest = 0.0

    def told(self) -> str:
        refused = "; ".join(f"{n} × {what}" for what, n in self.refused.items()) or "none"
        return (
            f"{len(self.receipts)} votes acknowledged, {len(set(self.receipts))} different, "
            f"refused and sent again: {refused}; the slowest took {self.slowest:.1f} s"
        )


def reserved(port: int, study: Study) -> list[str]:
    """The items somebody asks for and never answers."""
    reply, _ = Browser(port, study.token, "Leaver").ask("GET", "/api/next?tab=t&n=20")
    return [item["item"] for item in reply["items"]]


def everybody_votes(
    port: int, study: Study, votes: Votes, steps: list[tuple[float, Callable[[], None]]]
) -> None:
    """People vote until nobody gets an item; each step is taken at its share of the votes."""
    browsers = [Browser(port, study.token, f"p{n}") for n in range(20)]
    people = [threading.Thread(target=votes_until_the_end, args=(one, votes)) for one in browsers]
    for person in people:
        person.start()
    for share, step in steps:
        while len(votes.receipts) < share * votes.wanted and any(p.is_alive() for p in people):
            time.sleep(0.01)
        step()
    for person in people:
        person.join()


def votes_until_the_end(browser: Browser, votes: Votes) -> None:
    while items := asked(browser, "GET", "/api/next?tab=t&n=4", None, votes)["items"]:
        for item in items:
            body = {"id": str(uuid.uuid4()), "item": item["item"], "answer": "none", "tab": "t"}
            body["version"] = 1
            votes.receipts.append(asked(browser, "POST", "/api/vote", body, votes)["id"])


def asked(browser: Browser, method: str, path: str, body: Any, votes: Votes) -> dict[str, Any]:
    """The reply; what the server could not do at that moment is sent again, as the page does."""
    while True:
        reply, seconds = browser.ask(method, path, body)
        votes.slowest = max(votes.slowest, seconds)
        if "error" not in reply:
            return reply
        votes.refused[reply["error"]] += 1
        if not reply["error"].startswith("The database"):
            raise SystemExit(f"{method} {path}: {reply}")
        time.sleep(AGAIN_SECONDS)


def race(store: Store, seed: int, n_items: int) -> int:
    """How many items of a study have other than K votes when 20 people have raced for them."""
    study = make_study(store, n_items, Task("recognition"), votes_per_item=K, seed=seed)
    teams = [[f"{team}{n}" for n in range(10)] for team in "ab"]
    with ExitStack() as stack:
        running = [
            stack.enter_context(labelling(store.url, study.token, seed, team)) for team in teams
        ]
        receipts = votes_in([line for _, told in running for line in told])
    check(store, study, receipts)
    return n_items - progress(store, study.id).coverage[K]


def killed(store: Store, kills: int) -> int:
    """How many votes were acknowledged between `kills` kills; raises where one is missing."""
    study = make_study(store, 40 * kills, Task("recognition"), votes_per_item=2)
    acknowledged: set[str] = set()
    for kill in range(kills):
        with labelling(store.url, study.token, kill, PEOPLE) as (process, told):
            lines = [told.readline() for _ in range(20)]
            process.kill()
            lines += told.readlines()
        acknowledged |= votes_in(lines)
    check(store, study, acknowledged)
    return len(acknowledged)


def votes_in(lines: list[str]) -> set[str]:
    """The ids in receipts; ends the run with whatever else people were told."""
    wrong = [line for line in lines if not RECEIPT.fullmatch(line)]
    if wrong:
        raise SystemExit("".join(wrong))
    return {line.split()[0] for line in lines}


if __name__ == "__main__":
    main()
