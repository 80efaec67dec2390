"""Asking for a federated comparison: the job it becomes, and where its results go."""

import itertools
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from semsim.errors import JobError, SettingsError
from semsim.federated.comparison import KIND, Order, check_settings, load
from semsim.federated.leak import ARMS
from semsim.jobs import folders as jobs
from semsim.jobs.folders import Job

_FACTS = "federated.json"


def queue_comparison(order: Order, data: Path) -> Job:
    """The job that will carry out `order`; not yet started.

    data: the data folder; results go to runs/federated/<name> below it, where studies find the
    sets. Raises `SemsimError` where the order cannot be carried out.
    """
    check(order)
    out = _free(Path(data).resolve() / "runs" / "federated", order)
    return jobs.create(
        Path(data) / "jobs",
        kind=KIND,
        title=f"{order.network} on {order.data}, {order.clients} clients",
        argv=["federated", "--out", str(out), *argv_of(order)],
        files={_FACTS: {"out": str(out), "order": asdict(order)}},
    )


def check(order: Order) -> None:
    """Raise what is wrong with `order` before any work is done."""
    check_settings(order)
    loaded = load(order.data)
    if loaded.images is not None and min(loaded.data.input_shape[1:]) < 11:
        raise SettingsError("Images are 11 pixels a side or more: SSIM's window is that wide.")


def argv_of(order: Order) -> list[str]:
    """The options of `python -m semsim federated` that mean `order`, every one spelt out."""
    argv: list[str] = []
    for field in fields(Order):
        value, flag = getattr(order, field.name), field.name.replace("_", "-")
        if isinstance(value, bool):
            argv.append(f"--{flag}" if value else f"--no-{flag}")
        elif isinstance(value, tuple):
            argv += [f"--{flag}", ",".join(value) or "none"]
        else:
            argv += [f"--{flag}", str(value)]
    return argv


def out_of(job: Job) -> Path:
    """Where the results of a comparison's job are; `JobError` where its folder does not say."""
    facts = jobs.read_json(job.folder / _FACTS)
    if "out" not in facts:
        raise JobError(f"{job.folder / _FACTS} names no folder of results.")
    return Path(facts["out"])


def arms_done(out: Path, arms: Sequence[str] = tuple(ARMS)) -> list[str]:
    """The arms whose sets are complete, in the order of `arms`."""
    return [arm for arm in arms if (out / "sets" / arm / "run.json").exists()]


def _free(root: Path, order: Order) -> Path:
    stem = f"{order.data.partition(':')[0]}-{order.network}"
    return next(
        root / f"{stem}-{number}"
        for number in itertools.count(1)
        if not (root / f"{stem}-{number}").exists()
    )
