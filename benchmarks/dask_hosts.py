"""A campaign over two hosts, one of whose workers is killed and whose cable is pulled for a minute.

python -m benchmarks.dask_hosts [--cells 500] [--steps 100] [--cut 60] [--rounds 3]
python -m benchmarks.dask_hosts --only faults
python -m benchmarks.dask_hosts --only overhead

Two network namespaces joined by a veth pair, which needs root and `ip` (Debian: iproute2). On the
near one are the scheduler, a worker and the process that keeps what comes in; on the far one is a
worker. Workers are started again where they end. Namespaces share the disk, so the far worker has
an empty folder in the place of the data: what it finds travels over the wire, as between machines.
All processes but the first begin as copies of it, which has imported everything and begun nothing.

Faults: a tenth in, the far end of the cable is set down for CUT seconds and up again; after that,
half in, the near worker is killed (SIGKILL). Every picture, table and weight is then compared with
that of a run in one process, and every computation is counted by the workers' own ledger: a piece
may be computed again only where it was lost, which is where its worker was killed or cut off before
its answer had been kept. Overhead: the same campaign without faults, one image a piece, beside the
engine in one process, and beside two that know nothing of each other, each with half of the
campaign: two that work at once slow each other, which is no doing of Dask's. User and system time
of all processes, once they have imported everything, as the kernel counts it.
"""

import argparse
import contextlib
import ctypes
import functools
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import dask
import psutil
import torch
import torch._dynamo  # by every optimiser
from distributed import Client, Worker, WorkerPlugin
from distributed.cli.dask_scheduler import main as dask_scheduler_command
from distributed.cli.dask_worker import main as dask_worker_command
from distributed.comm import get_address_host

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests")]

from made_campaign import results_in, toy_campaign  # noqa: E402

from benchmarks.measuring import begin, judge  # noqa: E402
from semsim.base.progress import Progress  # noqa: E402
from semsim.campaign.campaign_job import plan_of  # noqa: E402
from semsim.campaign.plan import Plan  # noqa: E402
from semsim.campaign.runner import HowToRun, run_plan  # noqa: E402
from semsim.campaign.store import PieceStore  # noqa: E402
from semsim.grid.machines import connect  # noqa: E402

NEAR, FAR = "10.77.0.1", "10.77.0.2"
COPIES = multiprocessing.get_context("fork")
CPU = HowToRun(device="cpu")
STRATEGIES = ("none", "crop-flip")
TARGETS = 10  # trained for every campaign: two strategies, five seeds
LEDGER = "SEMSIM_LEDGER"  # the file in which workers write what they begin and end
PATIENCE = 600.0  # seconds until a worker must be there, also on a busy machine
OVERHEAD = 5.0  # per cent at most
_NETWORK, _MOUNTS = 0x40000000, 0x00020000  # CLONE_NEWNET, CLONE_NEWNS


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=int, default=500, help=f"images, a multiple of {TARGETS}")
    parser.add_argument("--steps", type=int, default=100, help="of each attack")
    parser.add_argument("--cut", type=float, default=60, help="seconds without a network")
    parser.add_argument("--rounds", type=int, default=3, help="of the overhead")
    parser.add_argument("--together", type=int, default=1, help="images a piece of the overhead")
    parser.add_argument("--only", default="faults,overhead", help="one of them")
    options = parser.parse_args()
    if why := unable():
        raise SystemExit(f"Not run: {why}")
    begin()
    with namespaces() as (near, far), tempfile.TemporaryDirectory() as name:
        for what in (faults, overhead):
            if what.__name__ in options.only.split(","):
                asked = near, what, Path(name) / what.__name__, options, far
                one = COPIES.Process(target=on_host, args=asked)
                one.start()
                one.join()
                if one.exitcode:
                    raise SystemExit(one.exitcode)


def on_host(namespace: str, work: Callable[..., None], *given: Any) -> None:
    """Put this process into a network namespace, and do `work(*given)`."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/var/run/netns", namespace).open("rb") as file:
        if libc.setns(file.fileno(), _NETWORK):
            raise OSError(ctypes.get_errno(), f"no way into {namespace}")
    torch.set_num_threads(1)  # as a worker
    work(*given)


def unable() -> str:
    """Why there can be no two hosts here; "" where there can."""
    if shutil.which("ip") is None:
        return "there is no `ip` (Debian: apt-get install iproute2)."
    try:
        with namespaces() as (near, _):
            mount = ["mount", "-t", "tmpfs", "none", "/mnt"]
            subprocess.run(inside(near, mount), check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        return f"network namespaces need a root who may make them ({error.stderr.strip()})."
    return ""


@contextmanager
def namespaces() -> Iterator[tuple[str, str]]:
    """Two network namespaces, near and far, joined by a cable; they go with the block."""
    near, far = names = tuple(f"semsim-{os.getpid()}-{side}" for side in ("near", "far"))
    made = []
    try:
        for name in names:
            ip("netns", "add", name)
            made.append(name)
        ip(
            "-n",
            near,
            "link",
            "add",
            "cable",
            "type",
            "veth",
            "peer",
            "name",
            "cable",
            "netns",
            far,
        )
        for name, address in zip(names, (NEAR, FAR), strict=True):
            ip("-n", name, "address", "add", f"{address}/24", "dev", "cable")
            for link in ("lo", "cable"):
                ip("-n", name, "link", "set", link, "up")
        yield near, far
    finally:
        for name in made:
            ip("netns", "delete", name)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def inside(namespace: str, command: Sequence[str]) -> list[str]:
    """What runs `command` in a namespace."""
    return ["ip", "netns", "exec", namespace, *command]


def faults(folder: Path, options: argparse.Namespace, far: str) -> None:
    """Compare a campaign under faults with one in one process, and count what was computed."""
    plan = tiny(options.cells, options.steps)
    with machines(folder, far) as cluster:
        run_plan(plan, folder / "alone", None, CPU)
        trouble = Trouble(cluster, options.cells, options.cut)
        began = time.monotonic()
        done = run_plan(plan, cluster.data, cluster.client, CPU, trouble)
        seconds = time.monotonic() - began
    alone, here = results_in(folder / "alone"), results_in(cluster.data)
    differ = sum(alone.get(name) != here.get(name) for name in alone.keys() | here.keys())
    told = counted(read_ledger(cluster.ledger), kept_at(plan, cluster.data), trouble)
    print(f"{done['n_ok']} ok / {done['n_failed']} failed of {options.cells}; {seconds:.0f} s")
    if trouble.killed > time.time():
        raise SystemExit("It ended before the last fault: take more --cells or --steps.")
    print(
        f"The cable out from {trouble.after(trouble.cut):.0f} to "
        f"{trouble.after(trouble.healed):.0f} s, near worker killed at "
        f"{trouble.after(trouble.killed):.0f} s"
    )
    print(
        f"Pieces begun: near {told['near']}, far {told['far']}, of these after the cable was "
        f"back {told['healed']}"
    )
    print(
        f"Computed again: {told['killed']} lost with the worker that was killed, {told['cut']} "
        f"with the network, {told['sent away']} with a worker that began without one"
    )
    print(
        f"Pieces computed twice though nothing was lost: {told['twice']}, "
        f"{judge(told['twice'], most=0)}"
    )
    print(f"Undone: {sum(done['undone'].values())}, {judge(sum(done['undone'].values()), most=0)}")
    print(f"Result files: {len(alone)}; not equal to the bit: {differ}, {judge(differ, most=0)}\n")


def overhead(folder: Path, options: argparse.Namespace, far: str) -> None:
    """What the two hosts cost more than two processes, and than one, at the same campaign."""
    given = options.cells, options.steps, options.together
    plan, halves = tiny(*given), [tiny(*given, (one,)) for one in STRATEGIES]
    runs: dict[str, list[Used]] = {"one process": [], "two processes": [], "two hosts": []}
    with machines(folder, far) as cluster, two_processes() as beside:
        warm()
        cluster.client.run(warm)
        for turn in range(options.rounds):
            here, there = folder / f"alone-{turn}", cluster.data / str(turn)
            runs["one process"].append(used(functools.partial(run_plan, plan, here, None, CPU)))
            runs["two processes"].append(beside(halves, folder / f"halves-{turn}"))
            run = functools.partial(run_plan, plan, there, cluster.client, CPU)
            runs["two hosts"].append(used(run, cluster.cpu))
            for one in (here, there, folder / f"halves-{turn}"):
                shutil.rmtree(one)
    print(
        f"| {options.cells} cells, {options.together} a piece, {options.rounds} rounds | CPU s | "
        "ms a cell | s |"
    )
    print("| --- | --- | --- | --- |")
    for name, found in runs.items():
        each = 1000 * median(one.cpu for one in found) / options.cells
        print(
            f"| {name} | {median(one.cpu for one in found):.1f} | {each:.1f} | "
            f"{median(one.wall for one in found):.1f} |"
        )
    hosts = runs["two hosts"]
    for called, at in (("in CPU", 0), ("on the clock", 1)):
        more = [median(_more(hosts, runs[name], at)) for name in ("two processes", "one process")]
        said = f"{more[0]:.1f}%, {judge(more[0], most=OVERHEAD, unit='%')}"
        print(f"Overhead {called}, over two processes: {said}; over one: {more[1]:.1f}%")


def _more(found: Sequence["Used"], than: Sequence["Used"], at: int) -> list[float]:
    """Per cent more, turn by turn; at: 0 for the CPU, 1 for the clock."""
    return [100 * (one[at] / other[at] - 1) for one, other in zip(found, than, strict=True)]


@contextmanager
def two_processes() -> Iterator[Callable[[Sequence[Plan], Path], "Used"]]:
    """What runs a plan in each of two processes at once, which have imported everything."""
    spawn = multiprocessing.get_context("spawn")
    with ExitStack() as held:
        pools = [held.enter_context(ProcessPoolExecutor(1, mp_context=spawn)) for _ in STRATEGIES]
        for one in [pool.submit(warm) for pool in pools]:
            one.result()

        def run(plans: Sequence[Plan], folder: Path) -> Used:
            began = time.monotonic()
            parts = enumerate(zip(pools, plans, strict=True))
            done = [pool.submit(alone, plan, folder / str(n)) for n, (pool, plan) in parts]
            return Used(sum(one.result() for one in done), time.monotonic() - began)

        yield run


def alone(plan: Plan, folder: Path) -> float:
    """CPU seconds of this process for a plan."""
    torch.set_num_threads(1)
    return used(functools.partial(run_plan, plan, folder, None, CPU)).cpu


def tiny(
    cells: int, steps: int, together: int = 1, strategies: tuple[str, ...] = STRATEGIES
) -> Plan:
    """A campaign of so many cells on ten small targets, `together` images a piece.

    strategies: of one, it is the half of the campaign.
    """
    return plan_of(
        toy_campaign(
            strategies=strategies,
            datasets=("symbols:train_per_class=1,test_per_class=2",),
            seeds=tuple(range(TARGETS // 2)),
            attacks=(f"invgrad:steps={steps}",),
            images=cells // TARGETS,
            together=together,
        )
    )


def warm() -> None:
    """Train and attack once, so that what is imported late is there."""
    with tempfile.TemporaryDirectory() as name:
        run_plan(plan_of(toy_campaign(name="warm", images=1)), Path(name), None, CPU)


class Used(NamedTuple):
    """Seconds of all processes, and on the clock."""

    cpu: float
    wall: float


def used(run: Callable[[], object], others: Callable[[], float] = float) -> Used:
    """What `run` used, in this process and in those whose CPU seconds `others` says."""
    began, before = time.monotonic(), time.process_time() + others()
    run()
    return Used(time.process_time() + others() - before, time.monotonic() - began)


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """What runs. far: the other host's namespace. data: of campaigns, on this host alone."""

    client: Client
    far: str
    data: Path
    ledger: Path
    processes: Mapping[str, BaseProcess]

    def cpu(self) -> float:
        """User and system seconds of scheduler and workers, with those that have ended."""
        return sum(
            sum(one.cpu_times()[:4])  # user, system, the same of children it has waited for
            for root in map(psutil.Process, (one.pid for one in self.processes.values()))
            for one in (root, *root.children(recursive=True))
        )

    def near_worker(self) -> int:
        """The process of this host's worker."""
        found = self.client.run(os.getpid)
        return next(pid for address, pid in found.items() if NEAR in address)


@contextmanager
def machines(folder: Path, far: str) -> Iterator[Cluster]:
    """A scheduler and a worker here, a worker on the far host, begun again where they end.

    Before this process has threads, as they begin as its copies.
    """
    folder.mkdir(parents=True, exist_ok=True)
    data, ledger = folder / "data", folder / "ledger"
    data.mkdir()
    words = [f"tcp://{NEAR}:8786", "--nworkers", "1", "--nthreads", "1", "--no-nanny"]
    words += ["--preload", "benchmarks.dask_hosts", "--no-dashboard"]
    words += ["--local-directory", str(folder)]
    here: tuple[Any, ...] = (dask_scheduler, "--host", NEAR, "--port", "8786", "--no-dashboard")
    asked: dict[str, tuple[Any, ...]] = {
        "scheduler": here,
        "near": (again, words, ledger),
        "far": (on_host, far, far_from, data, again, words, ledger),
    }
    running = {
        name: COPIES.Process(target=logged, args=(folder / f"{name}.log", *one))
        for name, one in asked.items()
    }
    try:
        for one in running.values():
            one.start()
        with connect(f"tcp://{NEAR}:8786", patience=PATIENCE) as client:
            client.wait_for_workers(2, timeout=PATIENCE)
            yield Cluster(client=client, far=far, data=data, ledger=ledger, processes=running)
    finally:
        for one in running.values():
            end_all(one)


def logged(log: Path, work: Callable[..., None], *given: Any) -> None:
    """Do `work(*given)`, with what this process says in a file."""
    with log.open("wb") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    work(*given)


def far_from(data: Path, work: Callable[..., None], *given: Any) -> None:
    """Do `work(*given)` where the folder `data` is empty."""
    if ctypes.CDLL(None, use_errno=True).unshare(_MOUNTS):
        raise OSError(ctypes.get_errno(), "no mounts of its own")
    subprocess.run(["mount", "--make-rslave", "/"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", str(data)], check=True)
    work(*given)


def again(words: Sequence[str], ledger: Path) -> None:
    """Have a worker again and again."""
    while True:
        one = COPIES.Process(target=dask_worker, args=(words, ledger))
        one.start()
        one.join()
        time.sleep(1)


def dask_scheduler(*words: str) -> None:
    """Do what `dask scheduler` does."""
    dask_scheduler_command.main(args=list(words))


def dask_worker(words: Sequence[str], ledger: Path) -> None:
    """Do what `dask worker` does."""
    os.environ[LEDGER] = str(ledger)
    with dask.config.set({"distributed.worker.profile.enabled": False}):
        dask_worker_command.main(args=list(words))


def end_all(process: BaseProcess) -> None:
    """End it and what it started."""
    with contextlib.suppress(psutil.NoSuchProcess):
        root = psutil.Process(process.pid)
        root.suspend()  # it begins others again
        for one in (*root.children(recursive=True), root):
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
    process.join()


@dataclass
class Trouble:
    """A report that pulls the cable, puts it back and kills the near worker, each once.

    killed, cut, healed: when, in seconds since 1970; inf before. pid: of the worker killed.
    """

    cluster: Cluster
    cells: int
    seconds: float
    killed: float = float("inf")
    cut: float = float("inf")
    healed: float = float("inf")
    pid: int = 0
    began: float = field(default_factory=time.time)

    def __call__(self, progress: Progress) -> None:
        now, done = time.time(), int(re.findall(r"(\d+) of ", progress.note)[-1])
        if self.cut > now:
            if done >= self.cells / 10:
                self._set("down")
                self.cut = time.time()
        elif self.healed > now:
            if now >= self.cut + self.seconds:
                self._set("up")
                self.healed = time.time()
        elif self.killed > now and done >= self.cells / 2:
            self.pid = self.cluster.near_worker()
            os.kill(self.pid, signal.SIGKILL)
            self.killed = time.time()

    def _set(self, how: str) -> None:
        ip("-n", self.cluster.far, "link", "set", "cable", how)

    def after(self, moment: float) -> float:
        """Seconds from the beginning to `moment`."""
        return moment - self.began


class Computed(NamedTuple):
    """A computation of a piece: on which host, by which process, begun when.

    host: near, far, or stray where nobody reached its worker.
    """

    key: str
    host: str
    pid: int
    begun: float


class Ledger(WorkerPlugin):
    """Writes a line for everything that a worker begins."""

    def setup(self, worker: Worker) -> None:
        # Begun again while the cable was out, it has no address that another host reaches.
        hosts = {NEAR: "near", FAR: "far"}
        self._host = hosts.get(get_address_host(worker.address), "stray")

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        if finish == "executing":
            with open(os.environ[LEDGER], "a", encoding="utf-8") as file:
                file.write(f"{key} {self._host} {os.getpid()} {time.time()}\n")


async def dask_setup(worker: Worker) -> None:
    """What `dask worker --preload` calls."""
    await worker.plugin_add(Ledger(), name="ledger")


def read_ledger(path: Path) -> list[Computed]:
    """The trainings and attacks that were begun."""
    found = []
    for line in path.read_text("utf-8").splitlines():
        name, host, pid, begun = line.split()
        what, _, rest = name.partition("-")
        if what in ("train", "attack"):
            found.append(Computed(rest.partition("-")[0], host, int(pid), float(begun)))
    return found


def kept_at(plan: Plan, data: Path) -> dict[str, float]:
    """When each target and each cell was kept, by its key."""
    store = PieceStore(data)
    paths = {cell.key: store.cells.path(cell.key) for cell in plan.cells}
    paths |= {target.key: store.weights.path(target.key) for target in plan.targets}
    return {key: path.stat().st_mtime for key, path in paths.items()}


def counted(ledger: list[Computed], kept: Mapping[str, float], trouble: Trouble) -> dict[str, int]:
    """How many computations each host began, and how many were of a piece for another time.

    killed, cut, sent away: again since the answer was lost so, the last with a worker that nobody
    reached; twice: again for no reason.
    """
    told = Counter(one.host for one in ledger)
    told["healed"] = sum(one.host == "far" and one.begun > trouble.healed for one in ledger)
    again = Counter(one.key for one in ledger)
    for one in ledger:
        if again[one.key] > 1 and (why := lost(one, kept[one.key], trouble)):
            told[why] += 1
            again[one.key] -= 1
    told["twice"] = sum(again.values()) - len(kept)
    return told


def lost(one: Computed, kept: float, trouble: Trouble) -> str:
    """Which fault its answer was lost to; "" where it was none."""
    if one.host == "stray":
        return "sent away"
    if one.pid == trouble.pid and kept > trouble.killed:
        return "killed"
    if one.host == "far" and one.begun < trouble.healed and kept > trouble.cut:
        return "cut"
    return ""


if __name__ == "__main__":
    main()
