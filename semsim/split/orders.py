"""Asking for an experiment in split inference: the job it becomes."""

from pathlib import Path

from semsim.errors import JobError
from semsim.jobs import folders as jobs
from semsim.jobs.folders import Job, JobState
from semsim.split.plan import SplitPlan, check, plan_from, plan_to
from semsim.split.session import Place

KIND = "split"
PLAN_FILE = "split.json"
_LIVE = {JobState.QUEUED, JobState.RUNNING}


def queue_split(plan: SplitPlan, place: Place) -> Job:
    """The job that will carry out `plan`; not yet started.

    Raises `SettingsError` for a plan that cannot be, `JobError` where one of that name is live.
    """
    check(plan)
    root = Path(place.data) / "jobs"
    live = [job for job in jobs.list_jobs(root, KIND) if jobs.state(job) in _LIVE]
    if any(plan_of(job).name == plan.name for job in live):
        raise JobError(f"{plan.name!r} is under way already; choose another name.")
    argv = ["split", "run", "--file", str(Path("{job}") / PLAN_FILE)]
    argv += ["--data-dir", str(Path(place.data).resolve()), "--device", place.device]
    argv += ["--checkpoints", str(Path(place.checkpoints).resolve())]
    return jobs.create(
        root,
        kind=KIND,
        title=f"Split inference {plan.name}",
        argv=argv,
        files={PLAN_FILE: plan_to(plan)},
    )


def plan_of(job: Job) -> SplitPlan:
    """The plan a job carries out; `JobError` where its folder does not say."""
    return plan_from(jobs.read_json(job.folder / PLAN_FILE))
