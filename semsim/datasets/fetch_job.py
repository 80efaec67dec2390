"""Fetching a data set from its authors as a job, so that a page need not be kept open for it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semsim.base.errors import SettingsError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job
from semsim.base.jobs.orders import to_record
from semsim.base.progress import Progress, Report
from semsim.base.registry import build
from semsim.datasets import DATASETS, OnDisk

KIND = "dataset"


@dataclass(frozen=True, kw_only=True)
class FetchOrder:
    """Order to fetch a data set;

    Attributes:
        root: Folder of data sets, "" for the usual one.
    """

    name: str
    root: str = ""


def fetchable() -> dict[str, OnDisk]:
    """The data sets whose files have to be fetched once, by name."""
    made = {name: build(DATASETS, name) for name in DATASETS}
    return {name: one for name, one in made.items() if isinstance(one, OnDisk)}


def queue_fetch(order: FetchOrder, root: Path) -> Job:
    """The job that will fetch a data set, below `root`; the one under way where there is one.

    Raises `SettingsError` for a data set that needs no files from elsewhere.
    """
    _made(order)
    live = jobs.live_jobs(root, KIND, to_record(order))
    return (
        live[0]
        if live
        else jobs.create(root, kind=KIND, title=f"Fetching {order.name}", order=order)
    )


def do_fetch(order: FetchOrder, folder: Path, report: Report) -> dict[str, Any]:
    """Carry out a job's order; nothing where the files are there already."""
    del folder
    made = _made(order)
    report(Progress(0, 1, f"{order.name}: {type(made).about}"))
    if not made.present():
        made.download()
    report(Progress(1, 1, "fetched"))
    return {"folder": str(made.folder)}


def told(result: dict[str, Any]) -> str:
    """Return what a finished job prints in a terminal."""
    return str(result["folder"])


def _made(order: FetchOrder) -> Any:
    made = build(DATASETS, order.name, {"root": order.root} if order.root else {})
    if not isinstance(made, OnDisk):
        raise SettingsError(f"The data set {order.name!r} needs no files from elsewhere.")
    return made
