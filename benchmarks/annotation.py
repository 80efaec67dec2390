"""What the human study costs at the size of the published one, and under the load of a whole team.

python -m benchmarks.annotation --help

It fills a study of ITEMS × VOTES slots in steps and times claiming, reports, export and backup;
then it serves another one with `app.py` and lets ANNOTATORS vote through HTTP at RATE votes a
second. With --reload they vote a second time while a researcher reloads the page Results of the
study, half of which is filled beforehand, without a pause. With --joint it does nothing but let all
of them join and press start in the same second, RUNS times, each time on a study of their own, and
tells their waits second by second. Give a PostgreSQL --database (an empty
one or a schema of its own) to measure that.
"""

import argparse
import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import psutil
from sqlalchemy import bindparam, insert, select, text, update

from annotation import formats
from annotation.design.study_plan import Original, Reconstruction, plan_study
from annotation.domain import Annotator, Study
from annotation.spec import StudySpec, Task
from annotation.store import Store, people, reports, studies
from annotation.store.backup import back_up, restore
from annotation.store.engine import open_engine, sqlite_file
from annotation.store.tables import EventRow, SlotRow, VoteRow
from annotation.study import exports
from annotation.study import labelling as study
from annotation.tasks.kind import NONE
from benchmarks.measuring import ROOT, begin, judge
from semsim.base.storage.ports import reserved_port

MODELS = 14
CLASSES = [f"class {number:02}" for number in range(20)]
FILLED = (0.0, 0.5, 0.9)  # shares of the slots at which claiming is timed
CLAIMS = 40
# What a page asks for, in `feed.js`.
AT_HAND, HELD, STEP, REFILL_BELOW, REST = 20, 200, 20, 12, 5.0
SAMPLE = 5.0  # seconds between two looks at a server's memory
LONGEST = 600.0  # seconds that a page is waited for, on a machine that does other work
START_SECONDS = 180.0  # the server imports torch and gradio
REST_SECONDS = 300.0  # within which the servers have begun and made what they come with
JOINT = 150.0  # ms that 95% may wait at most in the worst second of a joint start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=Raw)
    parser.add_argument("--items", type=int, default=22_400, help="reconstructions of the study")
    parser.add_argument("--votes", type=int, default=5, help="votes per item")
    parser.add_argument("--annotators", type=int, default=50, help="people who vote at once")
    parser.add_argument("--rate", type=float, default=25.0, help="votes a second of all of them")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long they vote")
    parser.add_argument("--servers", type=int, default=1, help="processes that serve them")
    parser.add_argument("--database", help="SQLAlchemy URL; default: an SQLite file made for it")
    parser.add_argument("--reload", action="store_true", help="vote beside a page of results too")
    parser.add_argument("--joint", type=int, default=0, metavar="RUNS", help="of a joint start")
    options = parser.parse_args()
    begin()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        url = options.database or f"sqlite:///{folder / 'studies.db'}"
        if options.joint:
            joint_starts(url, folder, options)
            return
        with Store(url) as store:
            print(f"{options.items:,} items × {options.votes} votes, {url.split(':')[0]}")
            time_tables(store, folder, options)
        time_voting(url, folder, options)


class Raw(argparse.RawDescriptionHelpFormatter, argparse.ArgumentDefaultsHelpFormatter):
    """Help with the text as it stands above and the defaults of the options."""


# ------------------------------------------------------------------ a large study


def made_study(store: Store, items: int, votes: int) -> Study:
    """A study of `MODELS` models without image files, which no figure depends on."""
    originals = [
        Original(image_id=f"{i:05}", class_name=CLASSES[i % len(CLASSES)], sha256="0" * 64)
        for i in range(-(-items // MODELS))
    ]
    reconstructions = [
        Reconstruction(
            image_id=originals[i // MODELS].image_id,
            class_name=originals[i // MODELS].class_name,
            model=f"model {i % MODELS:02}",
            attack="invgrad",
            sha256="1" * 64,
            error=0.5,
        )
        for i in range(items)
    ]
    plan = plan_study(
        StudySpec(name=uuid.uuid4().hex, task=Task("recognition"), votes_per_item=votes),
        dataset="made",
        classes=CLASSES,
        originals=originals,
        reconstructions=reconstructions,
        n_failed=0,
    )
    made = store.write(lambda tx: studies.add_study(tx, plan, datetime.now(UTC)))
    store.settle()
    return made


def person(store: Store, made: Study, name: str) -> Annotator:
    now = datetime.now(UTC)
    return store.write(lambda tx: people.annotator_named(tx, made.id, name, now))


def fill(store: Store, made: Study, team: list[Annotator], first: int, last: int) -> None:
    """Votes in the slots of the items from the `first` to before the `last`, made in bulk."""

    def work(tx: Any) -> None:
        rows = tx.execute(
            select(SlotRow.id, SlotRow.stimulus_id, SlotRow.k)
            .where(SlotRow.study_id == made.id)
            .order_by(SlotRow.stimulus_id, SlotRow.k)
            .offset(first * made.spec.votes_per_item)
            .limit((last - first) * made.spec.votes_per_item)
        ).all()
        filled = [
            made_vote(made, team[(first + i) % len(team)], *row) for i, row in enumerate(rows)
        ]
        if filled:
            done = update(SlotRow).where(SlotRow.id == bindparam("slot"))
            tx.connection().execute(
                done.values(state="done", annotator_id=bindparam("holder")),
                [{"slot": vote["slot_id"], "holder": vote["annotator_id"]} for vote in filled],
            )
            tx.execute(insert(VoteRow), filled)
            tx.execute(insert(EventRow), [event_of(vote) for vote in filled])

    store.write(work)
    if sqlite_file(store.url) is None:
        tidy(store.url)


def tidy(url: str) -> None:
    """What PostgreSQL does by itself after a while, unless somebody has switched that off."""
    with open_engine(url).connect() as connection:
        connection = connection.execution_options(isolation_level="AUTOCOMMIT")
        connection.execute(text("VACUUM ANALYZE slot, vote, event"))


def made_vote(made: Study, voter: Annotator, slot: int, item: str, k: int) -> dict[str, Any]:
    now = datetime.now(UTC)
    return {
        "id": str(uuid.uuid4()),
        "study_id": made.id,
        "stimulus_id": item,
        "slot_id": slot,
        "annotator_id": voter.id,
        "answer": NONE if k == 0 else CLASSES[k],
        "reason": None,
        "recognised": False,
        "rt_ms": 900.0 + slot % 700,
        "client_ts": now,
        "server_ts": now,
        "display": {"scale": 8, "width": 1366, "height": 768, "ratio": 1},
        "views": [],
        "tab": "tab",
        "status": "counted",
        "protocol": 1,
    }


def event_of(vote: dict[str, Any]) -> dict[str, Any]:
    return {
        "study_id": vote["study_id"],
        "kind": "vote",
        "annotator_id": vote["annotator_id"],
        "stimulus_id": vote["stimulus_id"],
        "vote_id": vote["id"],
        "at": vote["server_ts"],
        "data": {"answer": vote["answer"], "reason": None, "status": "counted"},
    }


# ------------------------------------------------------------------ one use at a time


def time_tables(store: Store, folder: Path, options: argparse.Namespace) -> None:
    made = timed("making the study", lambda: made_study(store, options.items, options.votes))
    team = [person(store, made, f"p{n}") for n in range(max(options.annotators, options.votes))]
    before = 0
    for share in (*FILLED, 1.0):
        now = round(share * options.items)
        fill(store, made, team, before, now)
        before = now
        if share < 1:
            time_claims(store, made, team, share)
    timed("progress of the study", lambda: study.progress(store, made.id))
    timed("progress of one annotator", lambda: study.progress_of(store, team[0]))
    votes = timed("reading all votes", lambda: exports.export_votes(store, made.id))
    for ending in ("csv", "parquet"):
        path = folder / f"votes.{ending}"
        timed(f"export to {ending}", partial(export, store, made, path), 10)
        print(f"  {'':34}{path.stat().st_size / 1e6:10.1f} MB")
    again = pd.read_parquet(folder / "votes.parquet")
    print(f"  {'read back from parquet':34}{'equal' if again.equals(votes) else 'DIFFERENT':>10}")
    timed("labels", lambda: exports.export_labels(store, made.id, folder))
    database = sqlite_file(store.url)
    if database is not None:
        copy = folder / "copy.db"
        timed("backup", lambda: back_up(database, copy))
        timed("restore", lambda: restore(copy, folder / "restored.db", datetime.now(UTC)))
        print(f"  {'size of the database':34}{copy.stat().st_size / 1e6:10.1f} MB")


def export(store: Store, made: Study, path: Path) -> None:
    formats.export(exports.read_study(store, made.id, path.parent), path)


def timed(what: str, work: Callable[[], Any], most: float | None = None) -> Any:
    """most: seconds it may take at most."""
    start = time.perf_counter()
    result = work()
    took = time.perf_counter() - start
    print(f"  {what:34}{took:10.3f} s  {judge(took, most=most, unit='s')}", flush=True)
    return result


def time_claims(store: Store, made: Study, team: list[Annotator], share: float) -> None:
    """Claims by people of the team and by newcomers; they are all given back."""
    newcomers = [person(store, made, f"new at {share} {n}") for n in range(CLAIMS // 2)]
    spent = []
    for number in range(CLAIMS):
        who = newcomers[number // 2] if number % 2 else team[number % len(team)]
        start = time.perf_counter()
        study.next_items(store, who, str(number), 4, datetime.now(UTC))
        spent.append(time.perf_counter() - start)
    free = {"state": "free", "annotator_id": None, "lease_until": None, "begun": 0}
    store.write(
        lambda tx: tx.execute(update(SlotRow).where(SlotRow.state == "leased").values(free))
    )
    print_quantiles(f"claiming 4 items at {share:.0%}", spent, 20)


def print_quantiles(what: str, spent: list[float], most: float | None = None) -> None:
    """most: milliseconds that 95% may take at most."""
    p50, p95, p99 = 1000 * np.quantile(spent, (0.5, 0.95, 0.99))
    target = judge(p95, most=most, unit="ms")
    print(f"  {what:34}p50 {p50:6.1f}  p95 {p95:6.1f}  p99 {p99:6.1f} ms  {target}", flush=True)


# ------------------------------------------------------------------ a team at work


@dataclass
class Load:
    """What the annotators saw: seconds each request took, receipts, and what went wrong.

    waits: kind of request, when it was made, seconds after the start, and the seconds it took.
    """

    votes: list[float] = field(default_factory=list)
    claims: list[float] = field(default_factory=list)
    receipts: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    waits: list[tuple[str, float, float]] = field(default_factory=list)
    cpu: float = 0.0  # seconds that the servers computed, signing in included


def time_voting(url: str, folder: Path, options: argparse.Namespace) -> None:
    needed = int(2 * options.rate * options.seconds / options.votes) + options.annotators
    items = max(options.items, 4 * needed if options.reload else needed)
    looks: list[float] = []
    with Store(url) as store:
        made = made_study(store, items, options.votes)
        if options.reload:
            team = [person(store, made, f"p{n}") for n in range(options.annotators)]
            fill(store, made, team, 0, items // 2)
    with served(url, folder, options.servers) as (ports, pids):
        with memory_watched(pids) as memory:
            loads = {"": vote_together(made, ports, pids, options)}
        if options.reload:
            with reloading(ports[0], made, looks):
                loads["beside Results"] = vote_together(made, ports, pids, options)
    with Store(url) as store:
        for load in loads.values():
            check(store, made, load)
    for beside, load in loads.items():
        took = f"{len(load.votes) / options.seconds:.1f} votes/s of {options.rate:g} asked"
        print(f"{options.annotators} annotators, {len(ports)} servers, {took} {beside}")
        print_quantiles("acknowledged vote", load.votes, 100)
        print_quantiles("GET /api/next", load.claims)
        cpu = 1000 * load.cpu / max(1, len(load.votes))
        told = judge(cpu, most=None if beside else 6, unit="ms")
        print(f"  {'server CPU per vote':34}{cpu:10.2f} ms  {told}")
        print(f"  {'errors':34}{len(load.errors):10}  {load.errors[:1]}")
    print_memory(memory)
    if options.reload:
        print_quantiles(f"reloading Results, {len(looks)} times", looks)


def joint_starts(url: str, folder: Path, options: argparse.Namespace) -> None:
    """Everybody joins and starts within the same second; waits by the second they began in."""
    rng, n = random.Random(0), options.annotators
    needed = int(2 * options.rate * options.seconds / options.votes) + n
    items = max(options.items, needed)
    with Store(url) as store:
        studies_made = [made_study(store, items, options.votes) for _ in range(options.joint)]
    loads = []
    with served(url, folder, options.servers) as (ports, pids):
        for made in studies_made:
            wait_for_rest(pids)
            moments = [rng.random() for _ in range(n)]
            loads.append(vote_together(made, ports, pids, options, moments))
    with Store(url) as store:
        for made, load in zip(studies_made, loads, strict=True):
            check(store, made, load)
    print(f"{n} people in one second, {options.rate:g} votes/s, {len(ports)} servers; runs:")
    print_seconds([load.waits for load in loads])
    print(f"  errors: {sum(len(load.errors) for load in loads)}")


def print_seconds(runs: list[list[tuple[str, float, float]]]) -> None:
    """Waits in ms, second by second, and what the worst second of a run is; medians of runs."""
    tables = [by_second(waits) for waits in runs]
    print(f"  {'second':>6}{'waits':>8}{'p95 ms':>9}{'worst ms':>10}")
    for second in sorted(set().union(*tables)):
        seen = [table[second] for table in tables if second in table]
        waits, p95, worst = (float(np.median(column)) for column in zip(*seen, strict=True))
        print(f"  {second:6}{waits:8.0f}{p95:9.1f}{worst:10.1f}")
    for kind in ("join", "claim", "vote", "all"):
        worsts = [
            max(by_second([w for w in waits if kind in (w[0], "all")]).values(), key=lambda s: s[1])
            for waits in runs
        ]
        each = ", ".join(f"{p95:.0f}" for _, p95, _ in worsts)
        middle = float(np.median([p95 for _, p95, _ in worsts]))
        longest = max(worst for *_, worst in worsts)
        told = f"p95 {middle:6.1f} ms, {judge(middle, most=JOINT, unit='ms')}"
        print(f"  worst second, {kind:6}{told} (runs: {each}; longest there {longest:.0f} ms)")


def by_second(waits: list[tuple[str, float, float]]) -> dict[int, tuple[int, float, float]]:
    """How many there were in each second, their p95 and the longest, in ms."""
    seconds: dict[int, list[float]] = {}
    for _, at, spent in waits:
        seconds.setdefault(int(at // 1), []).append(1000 * spent)
    return {
        second: (len(spent), float(np.quantile(spent, 0.95)), max(spent))
        for second, spent in seconds.items()
    }


@contextmanager
def memory_watched(pids: list[int]) -> Iterator[list[tuple[float, float]]]:
    """(seconds since now, MB of the servers), each SAMPLE seconds."""
    memory: list[tuple[float, float]] = []
    done, began = threading.Event(), time.monotonic()
    processes = [psutil.Process(pid) for pid in pids]

    def watch() -> None:
        while not done.wait(SAMPLE):
            used = sum(process.memory_info().rss for process in processes)
            memory.append((time.monotonic() - began, used / 1e6))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield memory
    finally:
        done.set()
        thread.join()


def print_memory(memory: list[tuple[float, float]]) -> None:
    """Resident memory a minute, as the median of its samples, and by how much it grew."""
    minutes: dict[int, list[float]] = {}
    for second, used in memory:
        minutes.setdefault(int(second // 60), []).append(used)
    middle = [float(np.median(used)) for _, used in sorted(minutes.items())]
    print(f"  {'memory, MB, minute by minute':34}{'  '.join(f'{used:.0f}' for used in middle)}")
    if len(middle) > 2:
        growth = max(middle[2:]) - middle[1]
        target = judge(growth, most=50, unit="MB")
        print(f"  {'growth after the first minute':34}{growth:10.1f} MB  {target}")


@contextmanager
def reloading(port: int, made: Study, looks: list[float]) -> Iterator[None]:
    """A researcher reloads the page Results; the seconds each time took are put into `looks`."""
    done = threading.Event()

    def reload() -> None:
        while not done.is_set():
            start = time.perf_counter()
            reload_results(port, made)
            looks.append(time.perf_counter() - start)

    thread = threading.Thread(target=reload)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def reload_results(port: int, made: Study) -> None:
    """What a browser asks for: the page, which comes with what it shows."""
    page = fetched(port, "GET", f"/studio/results?study={made.id}")
    if made.spec.name.encode() not in page:
        raise RuntimeError(f"Results shows something else: {page[:200]!r}")


def fetched(port: int, method: str, path: str, body: str | None = None) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST)
    connection.request(method, path, body, {"Content-Type": "application/json"})
    reply = connection.getresponse()
    content = reply.read()
    connection.close()
    if reply.status != http.client.OK:
        raise RuntimeError(f"{method} {path}: {reply.status} {content[:200]!r}")
    return content


def check(store: Store, made: Study, load: Load) -> None:
    """Raise if a vote that was acknowledged is missing or an item has too many."""
    rows = store.read(lambda tx: reports.vote_rows(tx, made))
    missing = set(load.receipts) - {row["vote_id"] for row in rows}
    if missing:
        raise RuntimeError(f"{len(missing)} acknowledged votes are not in the database.")
    counted = pd.Series([row["item"] for row in rows if row["status"] == "counted"])
    if (counted.value_counts() > made.spec.votes_per_item).any():
        raise RuntimeError("An item has more votes than it needs.")


@contextmanager
def served(
    url: str, folder: Path, servers: int, environment: Mapping[str, str] | None = None
) -> Iterator[tuple[list[int], list[int]]]:
    """The ports of running servers on `url`, and their process ids.

    environment: variables they get besides those of this process.
    """
    running, ports, held = [], [], ExitStack()
    try:
        for number in range(servers):
            ports.append(held.enter_context(reserved_port()))
            options = ["--port", str(ports[-1]), "--data-dir", str(folder / f"data{number}")]
            options += ["--local", "--database", url, "--device", "cpu"]
            command = [sys.executable, "app.py", *options]
            given = {**os.environ, **(environment or {})}
            running.append(
                subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, env=given)
            )
        for port in ports:
            wait_for(port)
        yield ports, [server.pid for server in running]
    finally:
        for server in running:
            server.kill()
            server.wait()
        held.close()


def wait_for(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/signed-out")
            connection.getresponse().read()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def cpu_of(pids: list[int]) -> float:
    """Seconds that processes have computed so far."""
    spent = [psutil.Process(pid).cpu_times() for pid in pids]
    return sum(one.user + one.system for one in spent)


def wait_for_rest(pids: list[int]) -> None:
    """Until the servers have made the studies they come with and compute nothing any more."""
    deadline = time.monotonic() + REST_SECONDS
    while time.monotonic() < deadline:
        before = cpu_of(pids)
        time.sleep(3.0)
        if cpu_of(pids) - before < 0.3:  # a tenth of a core
            return
    print("  the servers did not come to rest before")


def vote_together(
    made: Study,
    ports: list[int],
    pids: list[int],
    options: argparse.Namespace,
    moments: list[float] | None = None,
) -> Load:
    """moments: when each of them joins and starts, in seconds; else they have joined before."""
    load, before = Load(), cpu_of(pids)
    # Nobody is as fast as the next, or all would fetch items in the same second.
    paces = np.linspace(0.8, 1.2, options.annotators) * options.rate / options.annotators
    begin = time.monotonic() + 5.0  # until then everybody signs in, or waits for the start
    starts = [number / options.rate for number in range(len(paces))]
    signs_in = [0.0] * len(paces)
    if moments is not None:
        starts, signs_in = moments, [begin + moment for moment in moments]
    threads = [
        threading.Thread(
            target=vote_steadily,
            args=(
                ports[number % len(ports)],
                made,
                f"person {number}",
                begin + starts[number],
                begin + options.seconds,
                1 / pace,
                load,
                signs_in[number],
            ),
        )
        for number, pace in enumerate(paces)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    load.cpu = cpu_of(pids) - before
    load.waits = [(kind, at - begin, spent) for kind, at, spent in load.waits]
    return load


class Feed:
    """The items that a page holds, and when it asks for how many (`feed.js`)."""

    def __init__(self) -> None:
        self.held: list[str] = []
        self._answered: set[str] = set()
        self._below, self._rested = REFILL_BELOW, 0.0

    def wanted(self, now: float) -> int:
        """How many items to ask for at the moment `now`, 0 for none yet; seconds."""
        if len(self.held) >= (self._below if now > self._rested else REFILL_BELOW):
            return 0
        return min(HELD, len(self.held) + 2 * STEP) if self.held else AT_HAND

    def came(self, reply: Mapping[str, Any], n: int, now: float) -> None:
        """Take what was answered to the wish for `n`."""
        items = [item["item"] for item in reply.get("items", [])]
        self.held = [item for item in items if item not in self._answered]
        more = n < HELD and len(self.held) >= n
        self._below = max(REFILL_BELOW, (HELD if more else len(self.held)) - STEP)
        self._rested = now + REST * random.uniform(0.5, 1.5)

    def answered(self) -> dict[str, Any]:
        """The vote on the next item, which is not held any more."""
        item = self.held.pop(0)
        self._answered.add(item)  # what is asked for at this moment may bring it again
        return {"id": str(uuid.uuid4()), "item": item, "answer": NONE, "tab": "t", "version": 1}


def vote_steadily(
    port: int,
    made: Study,
    name: str,
    begin: float,
    end: float,
    pause: float,
    load: Load,
    signs_in: float = 0.0,
) -> None:
    """One annotator: a vote each `pause` seconds, items fetched as the page does."""
    time.sleep(max(0.0, signs_in - time.monotonic()))
    at = time.monotonic()
    browser, feed = Browser(port, made.token, name), Feed()
    load.waits.append(("join", at, time.monotonic() - at))
    while begin < end:
        time.sleep(max(0.0, begin - time.monotonic()))
        at = time.monotonic()
        n = feed.wanted(at)
        if n:
            reply, spent = browser.ask("GET", f"/api/next?tab=t&n={n}")
            load.claims.append(spent)
            load.waits.append(("claim", at, spent))
            feed.came(reply, n, time.monotonic())
        if feed.held:
            at = time.monotonic()
            reply, spent = browser.ask("POST", "/api/vote", feed.answered())
            load.votes.append(spent)
            load.waits.append(("vote", at, spent))
            if "id" in reply:
                load.receipts.append(reply["id"])
            else:
                load.errors.append(json.dumps(reply))
        else:
            load.errors.append("no items")
        begin += pause


class Browser:
    """One signed-in connection that stays open."""

    def __init__(self, port: int, token: str, name: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        self._connection.request("POST", f"/join/{token}", urlencode({"name": name}), form)
        reply = self._connection.getresponse()
        reply.read()
        self._headers = {
            "Cookie": (reply.getheader("set-cookie") or "").split(";")[0],
            "Content-Type": "application/json",
        }

    def ask(self, method: str, path: str, body: object = None) -> tuple[dict[str, Any], float]:
        """The reply and how long it took, in seconds."""
        start = time.perf_counter()
        content = None if body is None else json.dumps(body)
        try:
            reply = self._send(method, path, content)
        except ConnectionError:  # idle for too long; browsers ask again as well
            self._connection.close()
            reply = self._send(method, path, content)
        return json.loads(reply), time.perf_counter() - start

    def _send(self, method: str, path: str, content: str | None) -> bytes:
        self._connection.request(method, path, content, self._headers)
        return self._connection.getresponse().read()


if __name__ == "__main__":
    main()
