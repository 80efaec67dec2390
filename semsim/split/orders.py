"""Asking for an experiment in split inference: the job it becomes, and what that job does."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from semsim.errors import JobError
from semsim.jobs import folders as jobs
from semsim.jobs.folders import Job, JobState
from semsim.jobs.orders import options
from semsim.progress import Report
from semsim.split.parallel import run_spread
from semsim.split.plan import SplitPlan, check, plan_from, plan_to
from semsim.split.session import Place

KIND = "split"
PLAN_FILE = "split.json"
_LIVE = {JobState.QUEUED, JobState.RUNNING}


@dataclass(frozen=True, kw_only=True)
class SplitJob:
    """An experiment and where it is carried out. workers: processes that share its pieces."""

    plan: SplitPlan
    place: Place
    workers: int = 1


def queue_split(plan: SplitPlan, place: Place, workers: int = 1) -> Job:
    """The job that will carry out `plan`; not yet started.

    Raises `SettingsError` for a plan that cannot be, `JobError` where one of that name is live.
    """
    check(plan)
    root = Path(place.data) / "jobs"
    live = [job for job in jobs.list_jobs(root, KIND) if jobs.state(job) in _LIVE]
    if any(plan_of(job).name == plan.name for job in live):
        raise JobError(f"{plan.name!r} is under way already; choose another name.")
    data, checkpoints = Path(place.data).resolve(), Path(place.checkpoints).resolve()
    kept = replace(place, data=data, checkpoints=checkpoints)
    return jobs.create(
        root,
        kind=KIND,
        title=f"Split inference {plan.name}",
        order=SplitJob(plan=plan, place=kept, workers=workers),
        files={PLAN_FILE: plan_to(plan)},  # for --file
    )


def do_split(order: SplitJob, folder: Path, report: Report) -> dict[str, Any]:
    """Carry out a job's order; what is finished lies in the data folder, not in `folder`."""
    del folder
    return run_spread(order.plan, order.place, order.workers, report)


def older_split(job: Job) -> SplitJob:
    """The order of a job whose arguments say where, as a previous version left it."""
    given = options(job.argv)
    missing = [name for name in ("data-dir", "checkpoints") if name not in given]
    if missing:
        raise JobError(f"{job.folder} cannot be resumed: it does not say its {missing[0]}.")
    place = Place(
        data=Path(given["data-dir"]),
        checkpoints=Path(given["checkpoints"]),
        device=given.get("device", "auto"),
    )
    return SplitJob(plan=plan_of(job), place=place)


def plan_of(job: Job) -> SplitPlan:
    """The plan a job carries out; `JobError` where its folder does not say."""
    return plan_from(jobs.read_json(job.folder / PLAN_FILE))
