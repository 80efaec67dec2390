"""Five votes an item from twenty people at once: the human study here, and in Potato.

python -m benchmarks.annotation_peer --help

It serves a study of ITEMS × VOTES with `app.py`, lets ANNOTATORS answer it through HTTP as a page
would, kills the server and counts what is stored. With --potato it does the same with Potato
(https://github.com/davidjurgens/potato), installed in an environment of its own, once for every
assignment setting.
"""

import argparse
import http.client
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlencode

import numpy as np
import pandas as pd
from PIL import Image

import annotation
from annotation.spec import StudySpec, Task
from annotation.store import Store, reports
from annotation.study.create import create_study
from annotation.tasks.kind import NONE
from benchmarks.measuring import begin
from semsim.base.sets.set_format import COLUMNS
from semsim.base.storage.ports import reserved_port

ROOT = Path(annotation.__file__).parents[1]
CLASSES = [f"class {number:02}" for number in range(20)]
THINK = (0.1, 0.3)  # seconds between seeing an item and answering it
TWICE = 0.2  # share of answers that are sent twice at once, like a double click
PATIENCE = 10  # times somebody without an item asks again before leaving
ASK_AGAIN = 2.0  # seconds between them
# Items our page asks for, and below how many it asks again: as it is, and so that all get some.
HELD, REFILL_BELOW = (20, 4), 12
START_SECONDS = 180.0  # our server imports torch and gradio


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=40)
    parser.add_argument("--votes", type=int, default=5, help="votes each item should get")
    parser.add_argument("--annotators", type=int, default=20)
    parser.add_argument("--runs", type=int, default=1, help="runs of every tool, seeds 0, 1, …")
    parser.add_argument("--potato", type=Path, help="virtual environment Potato is installed in")
    options = parser.parse_args()
    begin()
    tools: dict[str, Callable[[Path], Tool]] = {
        f"SemSim Studio, {held} items held": partial(Ours, options=options, held=held)
        for held in HELD
    }
    if options.potato is not None:
        print(f"potato-annotation {potato_version(options.potato)}")
        for name in potato_settings(options):
            tools[f"Potato, {name}"] = partial(Potato, options=options, settings=name)
    print(HEADER, flush=True)
    for seed in range(options.runs):
        for name, tool in tools.items():
            with tempfile.TemporaryDirectory() as folder:
                run = work_together(tool(Path(folder)), options.annotators, seed)
            print(row(f"{name}; run {seed + 1}", run, options), flush=True)
            for error, times in Counter(run.errors).most_common(3):
                print(f"  {times} × {error}")


# ------------------------------------------------------------------ a team at work


class Person(Protocol):
    """Somebody at the page of a tool."""

    def next(self) -> str | None:
        """The item now on the screen, with its picture; None if there is none at present."""
        ...

    def sender(self, item: str, answer: str) -> Callable[[], str]:
        """What sends this answer: each call sends the same, and returns "" or what went wrong."""
        ...


class Tool(Protocol):
    """A tool with a study of its own."""

    @contextmanager
    def served(self) -> Iterator[Callable[[str], Person]]:
        """Signs people in, by name, while it lasts."""
        ...

    def stored(self) -> "Stored":
        """What it has on disk."""
        ...


@dataclass(frozen=True)
class Stored:
    """Pairs of a person and an item, one for every answer stored: that count, and that do not."""

    counted: list[tuple[str, str]]
    surplus: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class Run:
    """What the people saw, and afterwards what is stored."""

    acknowledged: set[tuple[str, str]] = field(default_factory=set)
    spent: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    begin: float = 0.0
    end: float = 0.0  # when the last answer was acknowledged
    stored: Stored = field(default_factory=lambda: Stored([]))


def work_together(tool: Tool, annotators: int, seed: int) -> Run:
    run, names = Run(), [f"person{number:02}" for number in range(annotators)]
    with tool.served() as sign_in:
        people = {name: sign_in(name) for name in names}
        threads = [
            threading.Thread(
                target=work, args=(name, people[name], np.random.default_rng([seed, i]), run)
            )
            for i, name in enumerate(names)
        ]
        run.begin = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    run.stored = tool.stored()
    return run


def work(name: str, person: Person, rng: np.random.Generator, run: Run) -> None:
    """Answer until there is nothing more."""
    try:
        while (item := patiently(person)) is not None:
            time.sleep(rng.uniform(*THINK))
            send = person.sender(item, [*CLASSES, NONE][rng.integers(len(CLASSES) + 1)])
            if submit(send, rng.random() < TWICE, run):
                run.acknowledged.add((name, item))
    except Exception as error:  # noqa: BLE001  # in a thread: it would go unseen
        run.errors.append(f"{name} stopped: {error!r}")


def patiently(person: Person) -> str | None:
    for _ in range(PATIENCE):
        item = person.next()
        if item is not None:
            return item
        time.sleep(ASK_AGAIN)
    return None


def submit(send: Callable[[], str], twice: bool, run: Run) -> bool:
    """Send an answer, maybe from two connections at once; whether the server took it."""
    problems: list[str] = []
    again = threading.Thread(target=lambda: problems.append(send()))
    if twice:
        again.start()
    start = time.perf_counter()
    problems.append(send())
    run.end = time.perf_counter()
    run.spent.append(run.end - start)
    if twice:
        again.join()
    run.errors += [problem for problem in problems if problem]
    return "" in problems


HEADER = (
    "| tool | votes stored | items over | items under | votes an item | lost | duplicated "
    "| people who voted | errors | seconds | p50 ms | p95 ms |\n" + "|---" * 12 + "|"
)


def row(name: str, run: Run, options: argparse.Namespace) -> str:
    counted = run.stored.counted
    votes = Counter(item for _, item in counted)
    each = [*votes.values(), *[0] * (options.items - len(votes))]
    both = Counter([*counted, *run.stored.surplus])
    cells = [
        name,
        f"{len(counted)}" + f" + {len(run.stored.surplus)} surplus" * bool(run.stored.surplus),
        sum(n > options.votes for n in each),
        sum(n < options.votes for n in each),
        f"{min(each)}–{max(each)}",
        len(run.acknowledged - set(both)),
        sum(n - 1 for n in both.values()),
        len({person for person, _ in counted}),
        len(run.errors),
        f"{run.end - run.begin:.0f}",
        *[f"{1000 * q:.0f}" for q in np.quantile(run.spent or [np.nan], (0.5, 0.95))],
    ]
    return "| " + " | ".join(map(str, cells)) + " |"


@contextmanager
def running(command: list[str], folder: Path) -> Iterator[int]:
    """The port at which `command --port PORT`, started in `folder`, answers; killed afterwards."""
    with reserved_port() as port, (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            [*command, "--port", str(port)], cwd=folder, stdout=log, stderr=log
        )
        try:
            wait_for(server, port)
            yield port
        finally:
            server.kill()
            server.wait()


def wait_for(server: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            Page(port).ask("GET", "/signed-out")
            return
        except OSError:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("The server does not start.") from None
            time.sleep(0.2)


class Page:
    """One browser: cookies, and a connection for every thread that asks."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._cookies: dict[str, str] = {}
        self._own = threading.local()

    def ask(
        self, method: str, path: str, body: bytes | str | None = None, **headers: str
    ) -> tuple[int, str, bytes]:
        """The status, where a redirect leads, and the content."""
        if not hasattr(self._own, "connection"):
            self._own.connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        self._own.connection.request(method, path, body, sent)
        reply = self._own.connection.getresponse()
        for line in reply.headers.get_all("Set-Cookie") or []:
            self._cookies.update({name: one.value for name, one in SimpleCookie(line).items()})
        return reply.status, reply.getheader("Location") or "", reply.read()

    def send(self, path: str, content: dict[str, Any], **headers: str) -> tuple[int, bytes]:
        text = json.dumps(content)
        status, _, reply = self.ask("POST", path, text, Content_Type="application/json", **headers)
        return status, reply

    def fill_in(self, path: str, **form: str) -> None:
        kind = "application/x-www-form-urlencoded"
        status, _, reply = self.ask("POST", path, urlencode(form), Content_Type=kind)
        if status not in (302, 303):
            raise RuntimeError(f"{path} answered {status}: {reply[:200]!r}")


# ------------------------------------------------------------------ ours


class Ours:
    """A study of its own, served by `app.py` over SQLite with its usual settings."""

    def __init__(self, folder: Path, options: argparse.Namespace, held: int) -> None:
        self._folder, self._held = folder, held
        self._url = f"sqlite:///{folder / 'studies.db'}"
        write_set(folder / "set", options.items)
        spec = StudySpec(
            name="peer", task=Task("recognition"), votes_per_item=options.votes, min_rt_ms=0
        )
        with Store(self._url) as store:
            self._study = create_study(store, spec, [folder / "set"], folder / "images")

    @contextmanager
    def served(self) -> Iterator[Callable[[str], Person]]:
        options = ["--data-dir", str(self._folder), "--database", self._url, "--device", "cpu"]
        command = [sys.executable, str(ROOT / "app.py"), "--local", *options]
        with running(command, self._folder) as port:
            yield lambda name: OurPerson(Page(port), self._study.token, name, self._held)

    def stored(self) -> Stored:
        with Store(self._url) as store:
            rows = store.read(lambda tx: reports.vote_rows(tx, self._study))
        pairs: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
        for one in rows:
            pairs[one["status"] == "counted"].append((one["annotator"], one["item"]))
        return Stored(pairs[True], pairs[False])


class OurPerson:
    """Keeps some items at hand and asks for more when they run low."""

    def __init__(self, page: Page, token: str, name: str, held: int) -> None:
        self._page, self._most = page, held
        self._page.fill_in(f"/join/{token}", name=name)
        self._held: list[str] = []
        self._seen: set[str] = set()

    def next(self) -> str | None:
        if len(self._held) < min(REFILL_BELOW, self._most):
            _, _, reply = self._page.ask("GET", f"/api/next?tab=t&n={self._most}")
            items = json.loads(reply)["items"]
            self._held = [one["item"] for one in items]
            for address in {url for one in items for url in one["images"]} - self._seen:
                self._page.ask("GET", address)
                self._seen.add(address)
        return self._held.pop(0) if self._held else None

    def sender(self, item: str, answer: str) -> Callable[[], str]:
        vote = {"id": str(uuid.uuid4()), "item": item, "answer": answer, "tab": "t", "version": 1}

        def send() -> str:
            status, reply = self._page.send("/api/vote", vote)
            return "" if status == 200 else f"{status} {reply[:200]!r}"

        return send


def write_set(folder: Path, items: int) -> None:
    """A reconstruction set of noise; its twenty classes make every list of candidates."""
    rows = []
    for number in range(items):
        name = f"image-{number:03}.png"
        for kind in ("originals", "reconstructions"):
            write_noise(folder / kind / name, [number, len(kind)])
        rows.append(
            {
                "image_id": f"image-{number:03}",
                "class_id": number % len(CLASSES),
                "class_name": CLASSES[number % len(CLASSES)],
                "original": f"originals/{name}",
                "reconstruction": f"reconstructions/{name}",
                "status": "ok",
                "error": "",
                "objective": 0.1,
                "shift_x": 0,
                "shift_y": 0,
                "flipped": False,
            }
        )
    table = pd.DataFrame(rows).reindex(columns=COLUMNS)
    table.to_parquet(folder / "manifest.parquet", index=False)
    run = {
        "format": "semsim-reconstruction-set/1",
        "name": "noise",
        "model": "none",
        "dataset": {"name": "noise", "classes": CLASSES, "size": [32, 32]},
        "attack": {"name": "noise"},
        "status": "ok",
    }
    (folder / "run.json").write_text(json.dumps(run))


def write_noise(path: Path, seed: list[int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)


# ------------------------------------------------------------------ Potato


def potato_settings(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """The documented ways to ask for a number of annotators an item.

    The last two need to know beforehand how many people come: a share of the votes for each, and
    fixed groups of items with as many people as an item needs votes.
    """
    share = -(-options.items * options.votes // options.annotators)
    groups = [
        {"name": f"group{first}", "instances": potato_items(options)[first : first + share]}
        for first in range(0, options.items, share)
    ]
    return {
        "random": {"assignment_strategy": "random"},
        "least_annotated": {"assignment_strategy": "least_annotated"},
        f"random, {share} a person": {
            "assignment_strategy": "random",
            "max_annotations_per_user": share,
        },
        "batch": {
            "assignment_strategy": "batch",
            "batch_assignment": {"auto_assign_annotators": True, "groups": groups},
        },
    }


def potato_items(options: argparse.Namespace) -> list[str]:
    return [f"item-{number:03}" for number in range(options.items)]


def potato_version(environment: Path) -> str:
    question = "from importlib.metadata import version; print(version('potato-annotation'))"
    command = [str(environment / "bin/python"), "-c", question]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


class Potato:
    """A Potato project of its own, served by `potato start`."""

    def __init__(self, folder: Path, options: argparse.Namespace, settings: str) -> None:
        self._folder = folder
        self._command = str((options.potato / "bin/potato").absolute())
        items = potato_items(options)
        for number, item in enumerate(items):
            write_noise(folder / f"media/{item}.png", [number])
        (folder / "items.json").write_text(
            json.dumps([{"id": item, "image_url": f"/media/{item}.png"} for item in items])
        )
        config = {
            "annotation_task_name": "Five votes",
            "task_dir": ".",
            "output_annotation_dir": "annotation_output",
            "data_files": ["items.json"],
            "item_properties": {"id_key": "id", "text_key": "image_url"},
            "instance_display": {"fields": [{"key": "image_url", "type": "image"}]},
            "annotation_schemes": [
                {
                    "annotation_type": "radio",
                    "name": "category",
                    "description": "What do you see in the picture?",
                    "labels": [*CLASSES, NONE],
                    "label_requirement": {"required": True},
                }
            ],
            "user_config": {"allow_all_users": True},
            "require_password": False,
            "num_annotators_per_item": options.votes,
            **potato_settings(options)[settings],
        }
        (folder / "config.yaml").write_text(json.dumps(config))  # JSON is YAML

    @contextmanager
    def served(self) -> Iterator[Callable[[str], Person]]:
        command = [self._command, "start", "config.yaml", "--host", "127.0.0.1"]
        with running(command, self._folder) as port:
            yield lambda name: PotatoPerson(Page(port), name)

    def stored(self) -> Stored:
        """One pair for every label: a second one of a person on an item is a duplicate."""
        return Stored(
            [
                (state["user_id"], item)
                for path in sorted(self._folder.glob("annotation_output/*/user_state.json"))
                for state in [json.loads(path.read_text())]
                for item, labels in state["instance_id_to_label_to_value"].items()
                for _ in labels
            ]
        )


class PotatoPerson:
    """Presses a radio button, then Next: the page saves, asks to move on, and loads again."""

    def __init__(self, page: Page, name: str) -> None:
        self._page = page
        self._page.fill_in("/auth", **{"email": name, "pass": ""})
        self._answered: set[str] = set()
        self._last = ""

    def next(self) -> str | None:
        if self._last:
            move = {"action": "next_instance", "instance_id": self._last}
            self._page.send("/annotate", move, X_Potato_Navigation="1")
        content = self._load()
        shown = re.search(r'id="instance_id"[^>]*value="([^"]+)"', content)
        if shown is None or shown[1] in self._answered:
            return None
        self._page.ask("GET", f"/media/{shown[1]}.png")
        return shown[1]

    def _load(self) -> str:
        path = "/annotate"
        for _ in range(5):
            status, where, content = self._page.ask("GET", path)
            if status not in (302, 303):
                return content.decode()
            path = where
        raise RuntimeError(f"Redirected in a circle, last to {path}.")

    def sender(self, item: str, answer: str) -> Callable[[], str]:
        self._answered.add(item)
        self._last = item
        content = {
            "instance_id": item,
            "annotations": {f"category:{answer}": answer},
            "cleared_schemas": [],
            "span_annotations": [],
        }

        def send() -> str:
            status, reply = self._page.send("/updateinstance", content)
            taken = status == 200 and json.loads(reply).get("status") == "success"
            return "" if taken else f"{status} {reply[:200]!r}"

        return send


if __name__ == "__main__":
    main()
