"""Asking for a federated comparison: the job it becomes, and where its results go."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semsim.base.errors import JobError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job
from semsim.base.jobs.orders import to_record
from semsim.base.progress import Report
from semsim.base.storage.atomic import finite, write_json
from semsim.base.storage.names import free_name
from semsim.base.storage.records import read_object, read_record
from semsim.systems.federated.settings import FederatedOrder

KIND = "federated"
FORMAT = "semsim-federated/1"  # of the folder of the results: `ORDER` says it
ORDER, TRAINING = "order.json", "training.json"  # what was asked for; curves and costs


@dataclass(frozen=True, kw_only=True)
class FederatedJob:
    """A comparison and the folder its results go to."""

    order: FederatedOrder
    out: Path


def queue_comparison(order: FederatedOrder, data: Path) -> Job:
    """The job that will carry out `order`; not yet started.

    data: the data folder; results go to runs/federated/<name> below it, where studies find the
    sets. Raises `SemsimError` where the order cannot be carried out.
    """
    from semsim.systems.federated.comparison import check  # with torch, which a page needs not

    check(order)
    root = Path(data).resolve() / "runs" / "federated"
    out = root / free_name(root, f"{order.data.partition(':')[0]}-{order.network}")
    return jobs.create(
        Path(data) / "jobs",
        kind=KIND,
        title=f"{order.network} on {order.data}, {order.clients} clients",
        order=FederatedJob(order=order, out=out),
    )


def do_comparison(order: FederatedJob, folder: Path, report: Report) -> dict[str, Any]:
    """Carry out a job's order, and keep the result beside the sets, not in `folder` alone."""
    from semsim.systems.federated.comparison import carry_out

    result = carry_out(order.order, order.out, report)
    write_json(order.out / "result.json", finite(result))
    return result


def kept_training(out: Path) -> dict[str, Any] | None:
    """The curves and costs in the folder of the results; None while there are none.

    Raises `JobError` where they are broken or of another format.
    """
    if not (out / TRAINING).exists():
        return None
    read_record(out / ORDER, FORMAT, JobError)
    return read_object(out / TRAINING, JobError)


def like(order: FederatedOrder) -> Mapping[str, Any]:
    """Return what jobs have that carry out the same comparison."""
    return {"order": to_record(order)}
