"""A campaign small enough to run in a test, and one that is done without having run."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from click.testing import Result
from distributed import Client, LocalCluster
from safetensors.torch import load_file, save

from semsim.base.jobs.folders import Job, run_as_job
from semsim.base.progress import Report
from semsim.base.registry import Plugin
from semsim.campaign.campaign_job import CampaignOrder, plan_of, queue_campaign
from semsim.campaign.plan import Campaign, Cell
from semsim.campaign.runner import write_finished_set
from semsim.campaign.store import PieceStore, StoredCell
from semsim.grid.machines import UNWATCHED
from semsim.images import to_uint8
from semsim.sets.image import AttackResult
from semsim.targets.chance import facts_of_test
from semsim.targets.convnet import SmallCNN
from semsim.targets.model import TargetModel, save_target
from semsim.targets.simulated_annotators import JURORS
from semsim.targets.train_settings import TrainSettings
from semsim.types import LabelledImages

SYMBOLS = "symbols:train_per_class=1,test_per_class=1"


def toy_campaign(**changes: Any) -> Campaign:
    """Two tiny targets, three images each."""
    settings: dict[str, Any] = {
        "name": "toy",
        "datasets": (SYMBOLS,),
        "architectures": ("cnn-small:width=4,activation=tanh",),
        "strategies": ("none", "crop-flip"),
        "attacks": ("invgrad:steps=30",),
        "images": 3,
        "train": TrainSettings(epochs=1),
    }
    return Campaign(**{**settings, **changes})


@contextmanager
def one_thread_cluster() -> Iterator[LocalCluster]:
    """A Dask cluster whose one worker is a thread of this process: nothing to start."""
    quiet: dict[str, Any] = {"dashboard_address": None, "silence_logs": 50, "memory_limit": 0}
    with (
        dask.config.set(UNWATCHED),
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, protocol="tcp://", **quiet
        ) as cluster,
    ):
        yield cluster


@contextmanager
def grid_in_this_process() -> Iterator[None]:
    """Whatever asks for a grid gets `one_thread_cluster`, in place of what connects to one."""
    with one_thread_cluster() as cluster, cluster.get_client() as client:

        @contextmanager
        def connected(*asked: Any, **wanted: Any) -> Iterator[Client]:
            yield client

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("semsim.grid.machines.connect", connected)
            yield


@contextmanager
def quick_jury() -> Iterator[None]:
    """Simulated annotators are five small LeNets, which learn in an eighth of the time."""
    small = Plugin(name="lenet", settings={"width": 8, "activation": "relu"})
    jury = tuple(replace(one, architecture=small, lr=0.03, epochs=20) for one in JURORS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("semsim.targets.simulated_annotators.JURORS", jury)
        patch.setattr("semsim.papers.simulated_votes.JURORS", jury)
        yield


@contextmanager
def one_shuffle() -> Iterator[None]:
    """A network's training has one control on shuffled votes beside it, where it has five."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("semsim.learning.ablations_run.SHUFFLES", 1)
        yield


def carried_out_twice(
    command: Callable[[], Result], folder: Path
) -> tuple[Result, tuple[dict[Path, int], ...]]:
    """Carry out a command that succeeds twice: its first end, and when pieces were written."""
    with grid_in_this_process():
        done, first = command(), pieces_written(folder)
        again, second = command(), pieces_written(folder)
    assert (done.exit_code, again.exit_code) == (0, 0), done.output + again.output
    return done, (first, second)


def pieces_written(folder: Path) -> dict[Path, int]:
    """When each finished piece below `folder` was written."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("_pieces/*/*")}


def dies_later(name: str, log: str, *, report: Report) -> str:
    """A piece of work; the process that does the second one dies a second later."""
    del report
    if name == "second":
        with open(log, "a", encoding="utf-8") as file:
            print(name, file=file)
        threading.Timer(1.0, os._exit, (1,)).start()
    return name


def finished_campaign(data: Path) -> Job:
    """The job of a toy campaign that is done, its pieces made up: nothing was trained.

    Of each target's pictures the first came back spoilt, the second blew up, the third not at all.
    """
    order = CampaignOrder(campaign=toy_campaign(), data=data)
    job, plan, store = (
        queue_campaign(order, data / "jobs"),
        plan_of(order.campaign),
        PieceStore(data),
    )
    sets = []
    for planned in plan.sets:
        images = plan.images[planned.target.dataset]
        for place, cell in enumerate(planned.cells):
            store.cells.write(cell.key, _made_cell(cell, images, place))
        path = store.weights.path(planned.target.key)
        path.parent.mkdir(parents=True, exist_ok=True)
        model = TargetModel(
            SmallCNN(width=4),
            images.classes,
            mean=[0.5] * 3,
            std=[0.3] * 3,
            size=(images.images.shape[2], images.images.shape[3]),
        )
        save_target(model, path, name="cnn-small", facts=facts_of_test(0.6, [*range(47)] * 10, 47))
        store.costs.write(planned.target.key, {"seconds": 1.0})
        sets.append(str(write_finished_set(data, plan, planned)))
    counts = {"n_ok": 2 * len(sets), "n_failed": len(sets), "n_crashed": 0, "undone": {}}
    run_as_job(job.folder, lambda report: {"sets": sets, "seconds": 1.0, **counts})
    return job


def results_in(data: Path) -> dict[str, bytes]:
    """Everything a campaign computed, without what says how long it took."""
    paths = [path for kind in ("*.png", "*.parquet") for path in (data / "runs").rglob(kind)]
    found = {str(path.relative_to(data)): path.read_bytes() for path in paths}
    for path in (data / "runs").rglob("*.safetensors"):  # the format leaves its head's order open
        found[path.name] = save(load_file(path))
    return found


def _made_cell(cell: Cell, images: LabelledImages, place: int) -> StoredCell:
    original = to_uint8(images.images[place])
    noise = np.random.default_rng(place).integers(0, 256, original.shape, np.uint8)
    failed = place == 2
    label = int(images.labels[place])
    return StoredCell(
        image_id=cell.image_id,
        class_id=label,
        class_name=images.classes[label],
        original=original,
        result=AttackResult(
            picture=None if failed else original // 2 + noise // 2,
            attacked=original,
            error="the attack diverged" if failed else "",
            objective=0.1,
            shift_x=0,
            shift_y=0,
            flipped=False,
            residual=2.0,
            grey_residual=1.0,
            blown_up=place == 1,
        ),
        crashed=False,
        seconds=1.0,
    )
