"""The tables of benchmarks/README.md made again, and every target, met or missed: make bench.

python -m benchmarks.bench [--list] [--only NAME,NAME] [--minutes 120]
python -m benchmarks.bench --database postgresql+psycopg://postgres@127.0.0.1/test

The second makes the tables of PostgreSQL too, which are 50 minutes more: each benchmark in a schema
of its own, which goes with it. What takes longest, `NAMED`, runs where
--only names it.

One benchmark after another, each in a process of its own. What it prints is kept in
data/benchmarks/<code>/<name>-<key>.txt, by the commit and by its command, and what is kept is not
run again: after an end of any kind the same command goes on. A run that keeps writes the file of
results that its name says. A benchmark that fails, or takes three times as long as it should, is
named and stops no other; what it printed stays beside, as .failed.
At the end come the targets, read from what was printed. Dask over two hosts needs a root who may
make network namespaces, and says so where there is none.
"""

import argparse
import contextlib
import fcntl
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psutil

from benchmarks.measuring import JUDGED, ROOT, code
from semsim.base.storage.pieces import key_of

sys.path[:0] = [str(ROOT / "tests")]

from study_factory import schema_on  # noqa: E402

KEPT = ROOT / "data" / "benchmarks"
MINUTES = 120.0
PATIENCE = 3  # times the minutes it should take, after which a benchmark is ended


@dataclass(frozen=True, kw_only=True)
class Run:
    """Words after `python -m`, and about the minutes that they take on two quiet cores.

    keeps: keys that it writes to the file of results that its name in the plan says.
    """

    command: str
    minutes: float
    keeps: tuple[str, ...] = ()


PLAN = {
    "startup": Run(command="benchmarks.startup", minutes=1.5, keeps=("startup",)),
    "pages": Run(command="benchmarks.pages --runs 3", minutes=9),
    "metrics": Run(command="benchmarks.metrics", minutes=1, keeps=("pixels", "study")),
    "metrics-networks": Run(
        command="benchmarks.metrics --only lpips,light --pictures 2048",
        minutes=1.5,
        keeps=("networks",),
    ),
    "fid-many": Run(
        command="benchmarks.metrics --only light --pictures 100000 --rounds 1",
        minutes=6.5,
        keeps=("networks",),
    ),
    "fid": Run(
        command="benchmarks.metrics --only fid --pictures 64", minutes=5, keeps=("networks",)
    ),
    "votes": Run(command="benchmarks.statistics --only time", minutes=1, keeps=("time",)),
    "few-models": Run(
        command="benchmarks.statistics --only models,difference,ceiling,images",
        minutes=2,
        keeps=(
            "models",
            "least-coverage",
            "most-type-i",
            "bootstrap.a",
            "bootstrap.b",
            "over-originals.24.least",
            "over-originals.24.most",
            "over-originals.100.least",
            "over-originals.100.most",
        ),
    ),
    "coverage": Run(command="benchmarks.coverage", minutes=6.5),
    "attacks": Run(command="benchmarks.attacks --quick --only speed", minutes=3, keeps=("speed",)),
    "attacks-many": Run(
        command="benchmarks.attacks --quick --only many", minutes=6, keeps=("many",)
    ),
    "attacks-at-once": Run(
        command="benchmarks.attacks --quick --only at-once", minutes=11, keeps=("at-once",)
    ),
    "attacks-passes": Run(
        command="benchmarks.attacks --quick --only passes", minutes=2.5, keeps=("passes",)
    ),
    "attacks-tv": Run(command="benchmarks.attacks --only tv", minutes=2.5, keeps=("tv",)),
    "attacks-trained": Run(
        command="benchmarks.attacks --only trained --epochs 4 --lr 0.05",
        minutes=1,
        keeps=("right", "trained"),
    ),
    "attacks-curves": Run(
        command="benchmarks.attacks --only curves --epochs 4 --lr 0.05",
        minutes=9.5,
        keeps=("curves",),
    ),
    "linear": Run(
        command="benchmarks.linear --variants 1 2 4", minutes=2, keeps=("speed", "sight")
    ),
    "linear-dense": Run(
        command="benchmarks.linear --variants 3 --rounds 1", minutes=4, keeps=("speed", "sight")
    ),
    "learning": Run(command="benchmarks.learning --quick --rounds 3 --threads 1", minutes=3),
    "learning-large": Run(
        command="benchmarks.learning --large --rounds 1 --threads 1 --judged 0", minutes=4
    ),
    "scoring": Run(
        command="benchmarks.learning --scoring 512 --quick --rounds 5 --threads 1", minutes=1
    ),
    "scoring-large": Run(
        command="benchmarks.learning --scoring 128 --large --rounds 3 --threads 1", minutes=4
    ),
    "faults": Run(command="benchmarks.faults", minutes=3),
    "study": Run(command="benchmarks.annotation --seconds 30", minutes=2),
    "study-small": Run(command="benchmarks.annotation --items 400 --seconds 30", minutes=1),
    "arrivals": Run(
        command="benchmarks.arrivals --slots 200000 --servers 1 --people 100 --over 100",
        minutes=2.5,
    ),
    "memory": Run(command="benchmarks.annotation --items 200 --seconds 480", minutes=8.5),
    "joint": Run(command="benchmarks.annotation --joint 3 --items 4000 --seconds 10", minutes=1.5),
    "campaign": Run(
        command="benchmarks.campaign --images 24 --steps 200 --together 4 --rounds 2", minutes=2.5
    ),
    "hosts-faults": Run(command="benchmarks.dask_hosts --only faults", minutes=4.5),
    "hosts": Run(
        command="benchmarks.dask_hosts --only overhead --together 16 --rounds 2", minutes=5
    ),
    "peer": Run(command="benchmarks.annotation_peer", minutes=1),
    "crowd": Run(command="benchmarks.crowd", minutes=1),
}
# Where a PostgreSQL is given: the same load on more servers, and what SQLite does not bear.
WITH_DATABASE = {
    "study-postgresql": Run(
        command="benchmarks.annotation --items 6000 --annotators 100 --rate 100 --servers 2",
        minutes=2.5,
    ),
    "joint-postgresql": Run(
        command="benchmarks.annotation --joint 3 --items 4000 --seconds 10 --servers 2", minutes=1.5
    ),
    "joint-million": Run(
        command="benchmarks.annotation --joint 3 --items 200000 --seconds 10 --servers 2", minutes=5
    ),
    "faults-postgresql": Run(command="benchmarks.faults", minutes=4),
    "arrivals-2": Run(
        command="benchmarks.arrivals --servers 2 --people 120 --over 120", minutes=4.5
    ),
    "arrivals-4": Run(
        command="benchmarks.arrivals --servers 4 --people 120 --over 120", minutes=4.5
    ),
    "arrivals-600": Run(
        command="benchmarks.arrivals --servers 2 --people 600 --over 120", minutes=5.5
    ),
    "arrivals-10000": Run(command="benchmarks.arrivals --servers 2", minutes=11),
    "arrivals-10000-4": Run(command="benchmarks.arrivals --servers 4", minutes=11),
}
# Where --only names them: reproductions of the papers, whose results go into the papers' files. The
# pictures of CIFAR-10 that two of them need lie there in train/<class> and test/<class>.
_CIFAR10 = "--images data/cifar10"
PAPERS = {
    name: Run(command=f"benchmarks.papers {name} {folder} --make", minutes=minutes)
    for name, folder, minutes in (
        ("copa", f"data/reproduce/copa {_CIFAR10}", 10),
        ("deployed", "data/reproduce/deployed", 90),
        ("pbpfl", "data/reproduce/pbpfl", 60),
        ("pbpfl-smoke", "data/reproduce/pbpfl", 1),
        ("semsim", "data/reproduce/semsim", 150),
        ("ensembler-table-1", "data", 40),
        ("ensembler-table-2", "data", 60),
        ("ensembler-table-3", "data", 120),
        ("ensembler-table-4", "data", 30),
        ("ensembler-figure-2", "data", 15),
        ("ensembler-figure-3", "data", 10),
        ("ensembler-vgg16", "data", 210),
        ("ensembler-trainings", "data", 60),
        ("ensembler-photographs", f"data {_CIFAR10}", 180),
    )
}
# All that runs only where --only names it.
_OF_A_SUITE = ("minutes", "cpu", "runs")
NAMED = PAPERS | {
    "tests": Run(command="benchmarks.suite test", minutes=5, keeps=_OF_A_SUITE),
    "tests-all": Run(command="benchmarks.suite test-all", minutes=18, keeps=_OF_A_SUITE),
    "tests-busy": Run(
        command="benchmarks.suite test-all --busy 4 --clones 3", minutes=70, keeps=_OF_A_SUITE
    ),
    "large": Run(command="benchmarks.large --seconds 40", minutes=6, keeps=("large",)),
    "sizes": Run(
        command="benchmarks.sizes",
        minutes=0.1,
        keeps=("package", "torch", "cuda", "without-cuda", "studio"),
    ),
    "attacks-layouts": Run(
        command="benchmarks.attacks --quick --only layouts", minutes=10, keeps=("layouts",)
    ),
    "attacks-quality": Run(
        command="benchmarks.attacks --only quality --images data/cifar100/test",
        minutes=30,
        keeps=(
            *("quality", "quality.grey", "one-image.lenet-sigmoid", "one-image.cnn4-sigmoid"),
            *("one-image.cnn4-relu", "one-image.cnn4-tanh"),
        ),
    ),
}
# What of the README this does not make again, and why.
LEFT_OUT = {
    "campaign --images 48": "five minutes, of which the plan has a smaller campaign",
    "learning --layouts": "minutes, most of them compiling",
    "attacks --images": "needs those pictures",
    "attacks, learning and metrics --device cuda, attacks --only mixed": "needs a GPU",
    "question": "hours: 44 trainings that choose and 40 that test",
    "metrics --only lpips --pictures 100000": "four minutes, of which the plan has 2,048 pictures",
    "gain": "half an hour: a grid of each attack on four networks",
    "faults --only clock,folder": "needs libfaketime, and a root who may make files immutable",
    "crowd --items 10000": "seven minutes, of which the plan has 500 pictures",
    "annotation_peer --potato": "needs Potato, in an environment of its own",
    "semsim-studio reproduce everything": "an hour of one core",
    "semsim-studio reproduce threats": "hours of one core",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="what runs, its minutes, what does not")
    parser.add_argument("--only", help="names of --list, with commas")
    parser.add_argument("--minutes", type=float, help=f"for all of it; usually {MINUTES:g}")
    parser.add_argument("--database", help="SQLAlchemy URL of a PostgreSQL, for what needs one")
    asked = parser.parse_args()
    more = WITH_DATABASE if asked.database else {}
    known = PLAN | more | NAMED
    names = [*PLAN, *more] if asked.only is None else asked.only.split(",")
    if unknown := [name for name in names if name not in known]:
        parser.error(f"no benchmark is called {unknown[0]!r}; there are: {', '.join(known)}.")
    plan = {name: known[name] for name in names}
    if asked.list:
        told(plan)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Ended: make bench goes on from here."))
    long = [run.minutes for name, run in plan.items() if name in NAMED]
    usual = MINUTES + sum(run.minutes for run in more.values()) + PATIENCE * sum(long)
    sys.exit(bench(plan, KEPT / code(), asked.minutes or usual, asked.database))


def told(plan: Mapping[str, Run]) -> None:
    """Print what runs and for how long, and what does not and why."""
    for name, run in plan.items():
        print(f"{name:16}{run.minutes:4g} min  python -m {run.command}")
    print(f"{'in all':16}{sum(run.minutes for run in plan.values()):4g} min")
    _left_out(plan)


def bench(
    plan: Mapping[str, Run], folder: Path, minutes: float, database: str | None = None
) -> int:
    """Run what `folder` does not have yet, then tell all; 0 where nothing failed or is missing.

    database: where those of `WITH_DATABASE` get a schema each.
    """
    end = time.monotonic() + 60 * minutes
    peer = "breaching" if find_spec("breaching") else ""  # whose columns come with it
    paths = {
        name: folder / f"{name}-{key_of(run.command + peer, 8)}.txt" for name, run in plan.items()
    }
    wrong = {}
    with alone(folder) as lock:
        for name, run in plan.items():
            left = (end - time.monotonic()) / 60
            if paths[name].exists():
                print(f"{name}: kept in {paths[name]}", flush=True)
            elif left < run.minutes:
                wrong[name] = f"not begun: {left:.0f} minutes left, and it takes {run.minutes:g}"
            else:
                print(f"{name}: about {run.minutes:g} minutes; python -m {run.command}", flush=True)
                limit = min(left, PATIENCE * run.minutes)
                needs = database and name in WITH_DATABASE
                with schema_on(database, "bench_") if needs else nullcontext("") as url:
                    words = [*shlex.split(run.command), *(["--results", name] if run.keeps else [])]
                    why = performed(words, paths[name], limit, lock, url)
                wrong |= {} if why is None else {name: why}
    found = {name: path.read_text("utf-8") for name, path in paths.items() if path.exists()}
    _targets(found)
    _left_out(plan)
    for name, why in wrong.items():
        print(f"{name} {why}")
    return 1 if wrong else 0


@contextmanager
def alone(folder: Path) -> Iterator[int]:
    """The file that says that benchmarks run here; one of another begun before is not disturbed.

    What is started with it holds it, too, also where whoever started it has been killed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "running").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit("A benchmark is running, or was left behind by a make bench that was killed.")
        yield lock.fileno()


def performed(
    words: Sequence[str], path: Path, minutes: float, lock: int, url: str = ""
) -> str | None:
    """Keep at `path` what `python -m` with `words` prints, or return why there is nothing."""
    part, failed = path.with_suffix(".part"), path.with_suffix(".failed")
    with part.open("w", encoding="utf-8") as out:
        process = psutil.Popen(
            [
                sys.executable,
                "-u",
                "-m",
                *words,
                *(["--database", url] if url else []),
            ],
            cwd=ROOT,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONIOENCODING": "utf-8"},
            pass_fds=(lock,),
        )
        try:
            ended = process.wait(60 * minutes)
        except psutil.TimeoutExpired:
            ended = None
        finally:
            end_all(process)
    if ended == 0:
        part.replace(path)
        failed.unlink(missing_ok=True)
        return None
    part.replace(failed)
    why = f"ended with {ended}" if ended is not None else f"was ended after {minutes:.0f} minutes"
    return f"{why}: {last_line(failed)} ({failed})"


def end_all(process: psutil.Popen) -> None:
    """End it and what it started."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for one in (*process.children(recursive=True), process):
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        process.wait()


def last_line(path: Path) -> str:
    lines = path.read_text("utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it printed nothing")


def targets(text: str) -> list[tuple[str, bool]]:
    """The lines of a benchmark's output that judge something, and whether all in them is met."""
    lines = ((line.strip(), JUDGED.findall(line)) for line in text.splitlines())
    return [(line, set(said) == {"met"}) for line, said in lines if said]


def _targets(found: Mapping[str, str]) -> None:
    judged = [(name, *one) for name, text in found.items() for one in targets(text)]
    print(f"\n{len(judged)} lines with targets, {sum(met for *_, met in judged)} met:")
    for name, line, met in judged:
        print(f"  {'met' if met else '**missed**':12}{name}: {line}")


def _left_out(plan: Mapping[str, Run]) -> None:
    print("\nNot made again:")
    if left := [name for name in WITH_DATABASE if name not in plan]:
        print(f"  {', '.join(left)}: made where --database is given")
    if left := [name for name in NAMED if name not in plan]:
        print(f"  {', '.join(left)}: made where --only names them")
    for name, why in LEFT_OUT.items():
        print(f"  {name}: {why}")


if __name__ == "__main__":
    main()
