"""Several machines: what each must have, and what is said of one that has not."""

import asyncio
import os
import shutil
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import copies
import numpy as np
import pytest
import torch
from distributed import Client
from distributed.utils import get_ip
from helpers import skip_or_fail, until
from made_campaign import dies_later, one_thread_cluster, toy_campaign
from PIL import Image

from semsim.attacks import ATTACKS, MATCHES
from semsim.attacks.invgrad import InvGrad
from semsim.base.errors import JobError
from semsim.campaign.campaign_job import plan_of
from semsim.campaign.runner import HowToRun, run_plan
from semsim.grid import machines as machines_code
from semsim.grid.executor import Piece, compute
from semsim.grid.machines import connect, product_version, stray

ROOT = Path(__file__).resolve().parents[3]
DASK = ["-m", "dask"]
# On a machine without the product: what is installed here is not found there.
BARE = [
    "-c",
    "import pathlib, sys; "
    "sys.path = [one for one in sys.path "
    "if not (pathlib.Path(one) / 'semsim/base/errors.py').exists()]; "
    "from dask.__main__ import main; main()",
]
CPU = HowToRun(device="cpu")
SMALL = toy_campaign(strategies=("none",), images=2, attacks=("invgrad:steps=3",))


@contextmanager
def machines(folder: Path, host: str = "127.0.0.1", hosts=None, **workers: str | None):
    """A scheduler that knows nothing of the product, and workers with that PYTHONPATH each.

    host: of the scheduler. hosts: of workers by name, where they are not to find out themselves.
    """
    address, running = folder / "scheduler.json", []
    try:
        running.append(
            begun(folder, None, "scheduler", "--scheduler-file", address, "--host", host)
        )
        until(address.exists, 60)
        for name, path in workers.items():
            where = ["--host", hosts[name]] if name in (hosts or {}) else []
            running.append(worker(folder, path, "--name", name, *where))
        with Client(scheduler_file=str(address), set_as_default=False) as client:
            until(lambda: len(client.scheduler_info()["workers"]) == len(workers), 60)
            yield client.scheduler.address
    finally:
        # A worker that is asked to end may wait for a scheduler that has ended.
        for process in running:
            process.kill()
        for process in running:
            process.wait()


def worker(folder: Path, path: str | None, *words: str) -> copies.Copy:
    """One more worker of the scheduler whose file is in `folder`."""
    shared = ["--scheduler-file", str(folder / "scheduler.json")]
    return begun(folder, path, "worker", *shared, "--nthreads", "1", "--no-nanny", *words)


def begun(folder: Path, path: str | None, *words: object) -> copies.Copy:
    """A process of Dask; what it says is in a file of `folder`."""
    around = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    around |= {} if path is None else {"PYTHONPATH": path}
    command = [*(BARE if path is None else DASK), *map(str, words), "--no-dashboard"]
    with (folder / "dask.log").open("ab") as log:
        return copies.begin(command, cwd=folder, env=around, out=log)


def test_a_worker_that_cannot_do_the_work_is_named_before_anything_starts(tmp_path):
    other = tmp_path / "other"
    shutil.copytree(ROOT / "semsim", other / "semsim", ignore=shutil.ignore_patterns("*.pyc"))
    with (other / "semsim/device.py").open("a") as file:
        file.write("# another version\n")
    with (
        machines(tmp_path, able=str(ROOT), bare=None, other=str(other)) as address,
        pytest.raises(JobError) as told,
        connect(address),
    ):
        pass
    words = str(told.value).splitlines()
    assert len(words) == 3
    (bare,) = [line for line in words if "No module named 'semsim" in line]
    assert bare.startswith("tcp://127.0.0.1:")
    assert "PYTHONPATH=. dask worker" in bare
    (older,) = [line for line in words if "another version of semsim" in line]
    assert product_version() in older
    assert "same commit" in older


def test_a_worker_that_joins_later_and_cannot_do_the_work_ends_the_run(tmp_path):
    told = []
    with machines(tmp_path) as address, connect(address) as client:
        bare = worker(tmp_path, None)
        try:
            with pytest.raises(JobError, match=r"tcp://\S+ cannot import semsim"):
                run_plan(plan_of(SMALL), tmp_path / "data", client, CPU, told.append)
        finally:
            bare.kill()
            bare.wait()
    assert {one.done for one in told} == {0}
    assert not list((tmp_path / "data").rglob("*.npz"))
    assert not list((tmp_path / "data").rglob("*.error.txt"))


def test_an_answer_is_there_when_its_worker_dies_before_it_is_looked_at(tmp_path):
    """While an earlier answer is kept, which takes long, the worker of the next one ends."""
    found, log, again = [], tmp_path / "log", []
    path = f"{ROOT}:{ROOT / 'tests'}"
    with machines(tmp_path, able=path) as address, connect(address) as client:

        def keep(piece, answer):
            if not found:
                until(lambda: log.exists() and not client.nthreads(), 60)
                again.append(worker(tmp_path, path))
            found.append(answer)

        pieces = [
            Piece(key=f"{n}", work=dies_later, asked=(n, str(log))) for n in ("first", "second")
        ]
        compute(pieces, keep, lambda standing: None, client)
        for one in again:
            one.kill()
            one.wait()
    assert sorted(found) == ["first", "second"]
    assert log.read_text() == "second\n"


@pytest.fixture
def alone():
    with one_thread_cluster() as cluster, Client(cluster, set_as_default=False) as client:
        yield client


def write_images(root: Path) -> None:
    """A data set of two classes, two images each."""
    rng = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (root / name).mkdir(parents=True)
        for number in range(20):
            pixels = rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(root / name / f"{number}.png")


@dataclass(frozen=True, kw_only=True)
class Hungry:
    """An attack that needs more than there is for one image, for as long as `failing` says."""

    failing: ClassVar[list] = []  # the error, and the seed of the image

    def __call__(self, seen, *, rng, report):
        if self.failing and rng.initial_seed() == self.failing[1]:
            raise self.failing[0]
        return InvGrad(steps=2)(seen, rng=rng, report=report)


@pytest.mark.parametrize(
    "error",
    [MemoryError("no room"), OSError(28, "No space left"), torch.OutOfMemoryError("CUDA")],
    ids=repr,
)
def test_what_a_machine_could_not_do_is_not_kept(alone, tmp_path, monkeypatch, error):
    monkeypatch.setitem(ATTACKS._entries, "hungry", Hungry)
    monkeypatch.setitem(ATTACKS._needs, "hungry", MATCHES)
    plan = plan_of(replace(SMALL, attacks=("hungry",)))
    monkeypatch.setattr(Hungry, "failing", [error, plan.cells[0].draw])
    done = run_plan(plan, tmp_path, alone, CPU)
    assert (done["n_ok"], done["n_failed"], sum(done["undone"].values())) == (1, 0, 1)
    assert str(error) in next(iter(done["undone"]))
    assert done["sets"] == []
    Hungry.failing.clear()
    again = run_plan(plan, tmp_path, alone, CPU)
    assert (again["n_ok"], again["computed"], again["reused"], again["undone"]) == (2, 1, 1, {})
    assert len(again["sets"]) == 1


@pytest.mark.parametrize("trainings", [("",), ("", "epochs=1")], ids=["one set", "two sets"])
def test_a_data_set_that_a_worker_has_not_is_not_kept_against_the_target(
    trainings, alone, tmp_path
):
    root = tmp_path / "pictures"
    write_images(root)
    data = f"folder:root={root},size=16"
    plan = plan_of(replace(SMALL, datasets=(data,), trainings=trainings))
    assert len({cell.key for cell in plan.cells}) == 2
    root.rename(tmp_path / "away")
    done = run_plan(plan, tmp_path, alone, CPU)
    assert (done["n_ok"], done["n_failed"], sum(done["undone"].values())) == (0, 0, 2)
    assert "No folder" in next(iter(done["undone"]))
    (tmp_path / "away").rename(root)
    again = run_plan(plan, tmp_path, alone, CPU)
    assert (again["computed"], again["n_failed"], again["undone"]) == (2, 0, {})


def test_a_scheduler_without_the_product_sends_away_whom_no_other_machine_reaches(tmp_path, caplog):
    """As one that began while its machine had no network: it is known as 127.0.0.1."""
    host = get_ip()
    alone = ip_address(host).is_loopback
    lost = [] if alone else ["lost"]
    workers = dict.fromkeys(["able", *lost], str(ROOT))
    with machines(tmp_path, host, dict.fromkeys(lost, "127.0.0.1"), **workers) as address:
        with Client(address, set_as_default=False) as client:
            sent = stray(address, client.nthreads())
        with connect(address) as client:
            done = run_plan(plan_of(SMALL), tmp_path / "data", client, CPU)
            (left,) = client.nthreads()
    assert (done["n_ok"], done["n_failed"], done["undone"]) == (2, 0, {})
    assert len(done["sets"]) == 1
    assert left.startswith(f"tcp://{host}:")
    if alone:
        skip_or_fail("this machine has no address but its own")
    (away,) = sent
    assert away.startswith("tcp://127.0.0.1:")
    assert [one for one in caplog.messages if f"no other machine reaches them: {away}" in one]


def test_one_on_the_machine_of_the_scheduler_or_behind_a_tunnel_to_it_stays():
    peers = {"tcp://127.0.0.1:4": "tcp://127.0.0.1:99", "tcp://127.0.0.1:5": "tcp://10.0.0.2:99"}
    removed = []

    class Scheduler:
        stream_comms: ClassVar = {
            one: SimpleNamespace(comm=SimpleNamespace(peer_address=peer))
            for one, peer in peers.items()
        }

        async def remove_worker(self, address, **_):
            removed.append(address)

    asked = [*peers, "tcp://127.0.0.1:6"]  # the last has gone by itself
    send_away, is_own = machines_code._sending_away(), machines_code._own_address()
    away = asyncio.run(send_away(asked, is_own, Scheduler()))
    assert away == removed == ["tcp://127.0.0.1:5"]


@pytest.mark.parametrize(
    ("scheduler", "strays"),
    [
        ("tcp://10.0.0.1:8786", ["tcp://127.0.1.1:5", "tls://[::1]:6", "tcp://localhost:7"]),
        ("tcp://127.0.0.1:8786", []),  # all of one machine
    ],
)
def test_addresses_of_one_machine_alone_are_told_from_others(scheduler, strays):
    workers = ["tcp://10.0.0.2:4", "tcp://127.0.1.1:5", "tls://[::1]:6", "tcp://localhost:7"]
    assert stray(scheduler, [*workers, "tcp://able:8"]) == strays


def test_two_clusters_on_one_machine_say_nothing_of_each_other(monkeypatch):
    # Workers are threads: what could be said is of the schedulers, which are here anyhow.
    in_threads = partial(machines_code.LocalCluster, processes=False)
    monkeypatch.setattr(machines_code, "LocalCluster", in_threads)
    with warnings.catch_warnings(), connect(workers=1) as one:
        warnings.simplefilter("error")
        with connect(workers=1) as other:
            assert one.submit(abs, -1).result() == other.submit(abs, -1).result() == 1
            ports = [client.scheduler_info()["services"]["dashboard"] for client in (one, other)]
    assert len(set(ports)) == 2
    assert 8787 not in ports
