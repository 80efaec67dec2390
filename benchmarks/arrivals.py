"""Where a study of a million slots bends: ten thousand people who come one after the other.

python -m benchmarks.arrivals --database postgresql+psycopg://postgres@127.0.0.1/NAME --servers 2

The database has to be empty: one of its own, which is filled here. PEOPLE come at even distances
within OVER seconds. Each joins through HTTP, asks for items as the page does and votes about every
PAUSE seconds until they have given EACH votes, so the load grows from second to second. They share
connections that stay open, as those of a web server in front do. Clients, servers and the database
are on one machine: a line for every EVERY seconds says how many cores each of them used. At the end
come the first interval that missed a target, and whether every acknowledged vote is there and every
finished item has exactly its votes.
"""

import argparse
import asyncio
import json
import os
import random
import resource
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import psutil
from sqlalchemy import func, select

from annotation.design.workload import SECONDS_PER_VOTE
from annotation.domain import Study
from annotation.store import Store
from annotation.store.engine import sqlite_file
from annotation.store.tables import SlotRow, VoteRow
from annotation.study import labelling
from benchmarks.annotation import (
    Feed,
    Raw,
    cpu_of,
    made_study,
    memory_watched,
    print_memory,
    print_quantiles,
    served,
    tidy,
    timed,
    wait_for_rest,
)
from benchmarks.measuring import begin, judge

TARGETS = {"vote": 100.0, "claim": 150.0, "join": None}  # p95, ms
PATIENCE = 30.0  # seconds for a reply


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=Raw)
    parser.add_argument("--database", help="SQLAlchemy URL; default: an SQLite file made for it")
    parser.add_argument("--slots", type=int, default=1_000_000, help="of the study")
    parser.add_argument("--votes", type=int, default=5, help="votes per item")
    parser.add_argument("--servers", type=int, default=2, help="processes that serve")
    parser.add_argument("--people", type=int, default=10_000, help="who come")
    parser.add_argument("--over", type=float, default=360.0, help="seconds in which they come")
    parser.add_argument("--each", type=int, default=100, help="votes somebody gives")
    parser.add_argument(
        "--pause", type=float, default=SECONDS_PER_VOTE, help="seconds between their votes"
    )
    parser.add_argument("--every", type=float, default=10.0, help="seconds of a line")
    options = parser.parse_args()
    begin()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # the servers have the same
    with tempfile.TemporaryDirectory() as name:
        url = options.database or f"sqlite:///{Path(name) / 'studies.db'}"
        with Store(url) as store:
            if labelling.list_studies(store):
                raise SystemExit("This database holds studies; give an empty one of its own.")
            print(f"{options.slots:,} slots, {url.split(':')[0]}")
            items = options.slots // options.votes
            made = timed("making the study", lambda: made_study(store, items, options.votes))
        if sqlite_file(url) is None:
            tidy(url)
        with served(url, Path(name), options.servers) as (ports, pids):
            wait_for_rest(pids)
            with memory_watched(pids) as memory:
                crowd = Crowd(made=made, ports=ports, pids=pids, options=options)
                asyncio.run(crowd.come())
        crowd.tell()
        print_memory(memory)
        with Store(url) as store:
            tell_exact(store, made, crowd.receipts)


# ------------------------------------------------------------------ the people


@dataclass(kw_only=True)
class Interval:
    """What was seen in some seconds: milliseconds by kind of request, and who used how many cores.

    asked: votes that were due.
    """

    spent: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    cores: dict[str, float] = field(default_factory=dict)
    asked: int = 0
    here: int = 0
    megabytes: float = 0.0

    def p95(self, kind: str) -> float:
        """Of the requests of a kind; NaN without any."""
        return float(np.quantile(self.spent[kind], 0.95)) if self.spent[kind] else float("nan")

    @property
    def missed(self) -> bool:
        """Whether a target is."""
        return any(most and self.p95(kind) > most for kind, most in TARGETS.items())


@dataclass(kw_only=True)
class Crowd:
    """All who come, and what they saw."""

    made: Study
    ports: list[int]
    pids: list[int]
    options: argparse.Namespace
    intervals: list[Interval] = field(default_factory=lambda: [Interval()])
    receipts: list[str] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    here: int = 0

    async def come(self) -> None:
        """People come until `over` seconds have passed; whoever is still at work then goes."""
        self._lines = [Lines(port) for port in self.ports]
        watch = asyncio.create_task(self._watch())
        gap, people = self.options.over / self.options.people, []
        begun = time.monotonic()
        for number in range(self.options.people):
            await asyncio.sleep(max(0.0, begun + number * gap - time.monotonic()))
            people.append(asyncio.create_task(self._person(number)))
        await asyncio.sleep(max(0.0, begun + self.options.over - time.monotonic()))
        watch.cancel()
        for one in people:
            one.cancel()
        await asyncio.gather(watch, *people, return_exceptions=True)

    async def _person(self, number: int) -> None:
        self.here += 1
        try:
            await self._work(number)
        except (OSError, asyncio.IncompleteReadError, TimeoutError, ValueError) as error:
            self.errors[repr(error)] += 1
        finally:
            self.here -= 1

    async def _work(self, number: int) -> None:
        lines, feed, rng = self._lines[number % len(self._lines)], Feed(), random.Random(number)
        form = urlencode({"name": f"person {number}"})
        reply = await self._ask(lines, "join", "POST", f"/join/{self.made.token}", "", form)
        cookie = reply.headers.get("set-cookie", "").split(";")[0]
        due, given, asking = time.monotonic(), 0, None
        while given < self.options.each:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            due += self.options.pause * rng.uniform(0.5, 1.5)
            if asking is None or asking.done():
                if asking is not None:
                    await asking  # raises what it raised
                asking = asyncio.create_task(self._fill(feed, lines, cookie))
            if not feed.held:  # else answering goes on meanwhile, as in the page
                await asking
            self.intervals[-1].asked += 1
            if not feed.held:
                self.errors["no items"] += 1
                continue
            body = json.dumps(feed.answered())
            reply = await self._ask(lines, "vote", "POST", "/api/vote", cookie, body)
            given += 1
            if "id" in reply.said():
                self.receipts.append(reply.said()["id"])
        if asking is not None:
            asking.cancel()

    async def _fill(self, feed: Feed, lines: "Lines", cookie: str) -> None:
        n = feed.wanted(time.monotonic())
        if n:
            reply = await self._ask(lines, "claim", "GET", f"/api/next?tab=t&n={n}", cookie)
            feed.came(reply.said(), n, time.monotonic())

    async def _ask(
        self, lines: "Lines", kind: str, method: str, path: str, cookie: str, body: str = ""
    ) -> "Reply":
        start = time.monotonic()
        try:
            async with asyncio.timeout(PATIENCE):  # wait_for may swallow that somebody is to go
                reply = await lines.ask(method, path, cookie, body)
        except TimeoutError:
            raise TimeoutError(f"{kind}: no reply within {PATIENCE:g} s") from None
        self.intervals[-1].spent[kind].append(1000 * (time.monotonic() - start))
        if reply.status >= 400:
            self.errors[f"{kind}: {reply.status} {reply.content[:80]!r}"] += 1
        return reply

    async def _watch(self) -> None:
        """Ends an interval every so many seconds and prints it."""
        print(
            f"  {'second':>6}{'here':>7}{'due/s':>8}{'votes/s':>8}{'vote p50':>10}{'p95':>7}"
            f"{'claim p50':>11}{'p95':>7}{'join p95':>10}{'MB':>7}  cores: servers, client, others"
        )
        begun, before = time.monotonic(), self._cpu()
        while True:
            since = time.monotonic()
            await asyncio.sleep(self.options.every)
            took, now = time.monotonic() - since, self._cpu()
            done = self.intervals[-1]
            done.cores = {who: (now[who] - before[who]) / took for who in now}
            done.here, before = self.here, now
            done.megabytes = sum(psutil.Process(pid).memory_info().rss for pid in self.pids) / 1e6
            self.intervals.append(Interval())
            print(f"  {time.monotonic() - begun:6.0f}{_line(done, took)}", flush=True)

    def _cpu(self) -> dict[str, float]:
        """Seconds computed so far by the servers, by this process, and by all others."""
        busy = psutil.cpu_times()
        servers, client = cpu_of(self.pids), sum(os.times()[:2])
        all_of_it = sum(busy) - busy.idle - getattr(busy, "iowait", 0.0)
        return {"servers": servers, "client": client, "others": all_of_it - servers - client}

    def tell(self) -> None:
        """All of it together, and where it bent."""
        for kind, most in TARGETS.items():
            spent = [one for interval in self.intervals for one in interval.spent[kind]]
            if spent:
                print_quantiles(f"{kind}, {len(spent):,} times", [ms / 1000 for ms in spent], most)
        for told, n in self.errors.most_common(5):
            print(f"  error, {n} times: {told}")
        print(f"  errors: {sum(self.errors.values())}, {judge(sum(self.errors.values()), most=0)}")
        every = self.options.every
        bent = next((n for n, one in enumerate(self.intervals) if one.missed), None)
        if bent is None:
            print(f"  no interval of {every:g} s missed a target")
            return
        print(
            f"  bends at second {bent * every:g}, which needed:{_line(self.intervals[bent], every)}"
        )


def _line(seen: Interval, took: float) -> str:
    p50 = {kind: float(np.median(spent)) for kind, spent in seen.spent.items() if spent}
    cores = ", ".join(f"{used:.2f}" for used in seen.cores.values())
    return (
        f"{seen.here:7}{seen.asked / took:8.1f}{len(seen.spent['vote']) / took:8.1f}"
        f"{p50.get('vote', float('nan')):10.1f}{seen.p95('vote'):7.0f}"
        f"{p50.get('claim', float('nan')):11.1f}{seen.p95('claim'):7.0f}"
        f"{seen.p95('join'):10.0f}{seen.megabytes:7.0f}  {cores}"
    )


# ------------------------------------------------------------------ HTTP


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What came back; the names of `headers` are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    def said(self) -> dict[str, Any]:
        """The content as JSON."""
        return dict(json.loads(self.content)) if self.content else {}


class Lines:
    """Connections to one server that stay open; as many as there are requests at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def ask(self, method: str, path: str, cookie: str, body: str) -> Reply:
        """The reply; once more on a new connection where an old one has ended meanwhile."""
        request = _request(method, path, cookie, body)
        while self._idle:
            line = self._idle.pop()
            try:
                return await self._send(line, request)
            except (ConnectionError, asyncio.IncompleteReadError):
                continue  # the server ends those that rest for too long
        return await self._send(await asyncio.open_connection("127.0.0.1", self._port), request)

    async def _send(
        self, line: tuple[asyncio.StreamReader, asyncio.StreamWriter], request: bytes
    ) -> Reply:
        reader, writer = line
        try:
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            pairs = (row.partition(":") for row in head[1:] if row)
            headers = {name.lower(): value.strip() for name, _, value in pairs}
            content = await reader.readexactly(int(headers["content-length"]))
        except BaseException:
            writer.close()
            raise
        self._idle.append(line)
        return Reply(status=int(head[0].split()[1]), headers=headers, content=content)


def _request(method: str, path: str, cookie: str, body: str) -> bytes:
    kind = "application/json" if body.startswith("{") else "application/x-www-form-urlencoded"
    rows = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body.encode())}"]
    rows += [f"Content-Type: {kind}"] if body else []
    rows += [f"Cookie: {cookie}"] if cookie else []
    return ("\r\n".join(rows) + "\r\n\r\n" + body).encode()


# ------------------------------------------------------------------ whether it is exact


def tell_exact(store: Store, made: Study, receipts: list[str]) -> None:
    """Print whether every acknowledged vote is there and no item has a vote too many or too few."""
    votes = select(VoteRow.id, VoteRow.stimulus_id, VoteRow.annotator_id, VoteRow.status)
    finished = select(SlotRow.stimulus_id).where(SlotRow.study_id == made.id)
    finished = finished.where(SlotRow.state == "done").group_by(SlotRow.stimulus_id)
    finished = finished.having(func.count() >= made.spec.votes_per_item)
    rows = store.read(lambda tx: tx.execute(votes.where(VoteRow.study_id == made.id)).all())
    full = store.read(lambda tx: set(tx.scalars(finished)))
    counted = [(item, who) for _, item, who, status in rows if status == "counted"]
    of_item = Counter(item for item, _ in counted)
    k = made.spec.votes_per_item
    lost = len(set(receipts) - {row[0] for row in rows})
    twice = len(counted) - len(set(counted))
    over = sum(n > k for n in of_item.values())
    under = sum(of_item[item] != k for item in full)
    print(f"  {len(receipts):,} votes acknowledged, not there: {lost}, {judge(lost, most=0)}")
    print(f"  {len(full):,} items finished, without exactly {k}: {under}, {judge(under, most=0)}")
    print(f"  items with more than {k} votes: {over}, {judge(over, most=0)}")
    print(f"  two votes of one person on an item: {twice}, {judge(twice, most=0)}")


if __name__ == "__main__":
    main()
