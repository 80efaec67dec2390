"""A campaign small enough to run in a test."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distributed import LocalCluster

from semsim.campaign.plan import Campaign
from semsim.targets.train_settings import TrainSettings

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
    quiet: dict[str, Any] = {"dashboard_address": None, "silence_logs": 50}
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp://", **quiet
    ) as cluster:
        yield cluster
