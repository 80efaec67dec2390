"""Asking for an experiment in split inference: the job it becomes, and what that job does."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semsim.base.errors import JobError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job
from semsim.base.jobs.orders import from_record, to_record
from semsim.base.progress import Report
from semsim.base.storage.records import as_record, read_record
from semsim.systems.split.plan import SplitPlace, SplitPlan, check

KIND = "split"
PLAN_FILE, FORMAT = "split.json", "semsim-split-plan/1"


@dataclass(frozen=True, kw_only=True)
class SplitJob:
    """An experiment and where it is carried out. workers, scheduler: as of `run_split`."""

    plan: SplitPlan
    place: SplitPlace
    workers: int = 1
    scheduler: str = ""


def queue_split(plan: SplitPlan, place: SplitPlace, workers: int = 1, scheduler: str = "") -> Job:
    """The job that will carry out `plan`; not yet started.

    Raises `SettingsError` for a plan that cannot be, `JobError` where one of that name is live.
    """
    check(plan)
    root = place.data / "jobs"
    if any(plan_of(job).name == plan.name for job in jobs.live_jobs(root, KIND)):
        raise JobError(f"{plan.name!r} is under way already; choose another name.")
    return jobs.create(
        root,
        kind=KIND,
        title=f"Split inference {plan.name}",
        order=SplitJob(plan=plan, place=place.resolved(), workers=workers, scheduler=scheduler),
        files={PLAN_FILE: as_record(FORMAT, to_record(plan))},  # for --file
    )


def do_split(order: SplitJob, folder: Path, report: Report) -> dict[str, Any]:
    """Carry out a job's order; what is finished lies in the data folder, not in `folder`."""
    from semsim.systems.split.run import run_split  # with torch, which only a job needs

    del folder
    return run_split(order.plan, order.place, report, order.workers, order.scheduler)


def like(plan: SplitPlan, workers: int = 1, scheduler: str = "") -> Mapping[str, Any]:
    """Return what jobs have that carry out the same experiment, whatever metrics judge it."""
    free = ("name", "metrics")
    asked = {name: one for name, one in to_record(plan).items() if name not in free}
    return {"plan": asked, "workers": workers, "scheduler": scheduler}


def plan_of(job: Job) -> SplitPlan:
    """The plan a job carries out; `JobError` where its folder does not say."""
    return plan_in(job.folder / PLAN_FILE)


def plan_in(path: Path, *, by_hand: bool = False) -> SplitPlan:
    """The plan that a file `PLAN_FILE` tells, as `from_record`; `JobError` where it tells none."""
    return from_record(SplitPlan, read_record(path, FORMAT, JobError), by_hand=by_hand)
