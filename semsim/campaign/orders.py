"""Asking for a campaign: its plan from the data at hand, and the job it becomes."""

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from semsim.campaign.plan import Campaign, Plan, campaign_from, campaign_to, check, make_plan
from semsim.campaign.probe import known_estimate
from semsim.campaign.watch import CAMPAIGN, RunFolder
from semsim.datasets import DATASETS
from semsim.errors import JobError
from semsim.jobs import folders as jobs
from semsim.jobs.folders import Job, JobState
from semsim.jobs.orders import options
from semsim.progress import Report
from semsim.registry import Plugin, build, read_plugin
from semsim.types import LabelledImages

KIND = "campaign"
_LIVE = {JobState.QUEUED, JobState.RUNNING}


@dataclass(frozen=True, kw_only=True)
class CampaignOrder:
    """A campaign and where it is carried out.

    data: the data folder. scheduler: address of a Dask scheduler, "" for this machine.
    workers: processes on this machine, 0 for one a core. device: where each computes.
    """

    campaign: Campaign
    data: Path
    scheduler: str = ""
    workers: int = 0
    device: str = "auto"
    retry: bool = False


def plan_of(campaign: Campaign) -> Plan:
    """The plan of `campaign` on the data sets of this machine.

    Raises `SettingsError` for what cannot be, `DataError` that says how to get missing data.
    """
    check(campaign)
    tests = {text: load_text(text, "test") for text in campaign.datasets}
    return make_plan(campaign, tests)


@lru_cache(maxsize=2)
def load_text(text: str, split: str) -> LabelledImages:
    """One split of the data set written as `text`; the last few are kept."""
    return load(read_plugin(DATASETS, text), split)


def load(dataset: Plugin, split: str) -> LabelledImages:
    """One split of a data set."""
    images: LabelledImages = build(DATASETS, dataset.name, dataset.settings)(split)
    return images


def queue_campaign(order: CampaignOrder, root: Path) -> Job:
    """The job that will carry out `order`, below `root`; not yet started.

    Raises `JobError` where the campaign is under way, `SettingsError` where another one has the
    name or it cannot be planned.
    """
    check(order.campaign)
    RunFolder(order.data, order.campaign.name).claim(order.campaign)
    if any(jobs.state(job) in _LIVE for job in jobs_of(root, order.campaign.name)):
        raise JobError(f"{order.campaign.name!r} is under way already.")
    return jobs.create(
        root,
        kind=KIND,
        title=f"Campaign {order.campaign.name}",
        order=replace(order, data=Path(order.data).resolve()),
        files={CAMPAIGN: campaign_to(order.campaign)},  # for --file
    )


def jobs_of(root: Path, name: str) -> list[Job]:
    """The jobs of the campaign called `name`, newest first."""
    return [job for job in jobs.list_jobs(root, KIND) if name_of(job) == name]


def name_of(job: Job) -> str:
    """The campaign a job carries out; "" where its folder does not say."""
    try:
        return str(jobs.read_json(job.folder / CAMPAIGN)["name"])
    except (JobError, KeyError):
        return ""


def do_campaign(order: CampaignOrder, folder: Path, report: Report) -> dict[str, Any]:
    """Carry out a job's order; what is finished lies in the data folder, not in `folder`."""
    from semsim.campaign.machines import connect  # takes a second, and only a job needs it
    from semsim.campaign.runner import HowToRun, run_plan

    del folder
    plan = plan_of(order.campaign)
    known = known_estimate(plan, order.data)
    how = HowToRun(device=order.device, retry=order.retry)
    how = how if known is None else replace(how, estimate=known)
    with connect(order.scheduler, order.workers) as client:
        return run_plan(plan, order.data, client, how, report)


def older_campaign(job: Job) -> CampaignOrder:
    """The order of a job whose arguments say where, as a previous version left it."""
    given = options(job.argv)
    if "data-dir" not in given:
        raise JobError(f"{job.folder} cannot be resumed: it does not say its data-dir.")
    return CampaignOrder(
        campaign=campaign_from(jobs.read_json(job.folder / CAMPAIGN)),
        data=Path(given["data-dir"]),
        scheduler=given.get("scheduler", ""),
        workers=int(given.get("workers", 0)),
        device=given.get("device", "auto"),
        retry="retry-failed" in given,
    )
