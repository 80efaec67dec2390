"""Asking for a campaign: its plan from the data at hand, and the job it becomes."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semsim.base.errors import JobError, SemsimError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job
from semsim.base.jobs.orders import Place, to_record
from semsim.base.progress import Report
from semsim.base.registry import Plugin, built, read_plugin
from semsim.base.storage.optional import need
from semsim.campaign.forecast import known_estimate
from semsim.campaign.plan import Campaign, Plan, check, make_plan
from semsim.campaign.watch import RunFolder
from semsim.datasets import DATASETS
from semsim.distractors.registry import check_classes, classes_of, find_judge
from semsim.types import LabelledImages
from semsim.weights import CHECKPOINTS

KIND = "campaign"


@dataclass(frozen=True, kw_only=True)
class CampaignOrder(Place):
    """A campaign and where it is carried out; `device` is that of each worker.

    Attributes:
        scheduler: Address of a Dask scheduler, "" for this machine.
        workers: Processes on this machine, 0 for one a core.
        retry: See `HowToRun`.
        judge: Of those in `checkpoints`, the one that reads the pictures at the end; "" for none.
        imports: The folder in which a user's own networks are looked for, None where there are
            none.
    """

    campaign: Campaign
    scheduler: str = ""
    workers: int = 0
    retry: bool = False
    judge: str = ""
    checkpoints: Path = CHECKPOINTS
    imports: Path | None = None


def load(dataset: Plugin | str, split: str) -> LabelledImages:
    """One split of a data set."""
    images: LabelledImages = built(DATASETS, dataset)(split)
    return images


def plan_of(campaign: Campaign) -> Plan:
    """Return the plan of `campaign` on the data sets of this machine.

    Raises `SettingsError` for what cannot be, `DataError` that says how to get missing data.
    """
    check(campaign)
    tests = {text: load(read_plugin(DATASETS, text), "test") for text in campaign.datasets}
    return make_plan(campaign, tests)


def queue_campaign(order: CampaignOrder, root: Path) -> Job:
    """The job that will carry out `order`, below `root`; not yet started.

    Raises `JobError` where the campaign is under way, `SettingsError` where another one has the
    name or it cannot be planned.
    """
    need("distributed", "Work in many processes", "grid")
    name = order.campaign.name
    check(order.campaign)
    if order.judge:
        find_judge(order.judge, order.checkpoints)
    RunFolder(order.data, name).claim(order.campaign)
    if jobs.live_jobs(root, KIND, _called(name)):
        raise JobError(f"{name!r} is under way already.")
    return jobs.create(root, kind=KIND, title=f"Campaign {name}", order=order)


def jobs_of(root: Path, name: str) -> list[Job]:
    """The jobs of the campaign called `name`, newest first."""
    return jobs.list_jobs(root, KIND, _called(name))


def _called(name: str) -> Mapping[str, Any]:
    return {"campaign": {"name": name}}


def name_of(job: Job) -> str:
    """The campaign a job carries out; "" where its folder does not say."""
    try:
        return jobs.read_order(job, CampaignOrder).campaign.name
    except SemsimError:
        return ""


def do_campaign(order: CampaignOrder, folder: Path, report: Report) -> dict[str, Any]:
    """Carry out a job's order; what is finished lies in the data folder, not in `folder`."""
    from semsim.campaign import runner, work  # takes a second, and only a job needs it
    from semsim.device import pick_device
    from semsim.distractors.apply import judge_new
    from semsim.grid.machines import connect
    from semsim.metrics import Resources
    from semsim.metrics.reference_classifier import recognition

    del folder
    if order.imports is not None:
        look_in(order.imports)
    plan = plan_of(order.campaign)
    judge = find_judge(order.judge, order.checkpoints) if order.judge else None
    if judge is not None:  # said before hours of work, not after
        for text, images in plan.images.items():
            check_classes(classes_of(judge), order.judge, images.names, f"The data set {text}")
    known = known_estimate(plan, order.data)
    how = runner.HowToRun(device=order.device, retry=order.retry, estimate=known)
    with connect(order.scheduler, order.workers, needs=work.__name__) as client:
        outcome = runner.run_plan(plan, order.data, client, how, report)
    resources = Resources(checkpoints=order.checkpoints, device=pick_device(order.device))
    outcome["recognition"] = recognition({one: Path(one) for one in outcome["sets"]}, resources)
    if judge is None:
        return outcome
    read = judge_new(judge, [Path(one) for one in outcome["sets"]])
    return {**outcome, "judged": [one.said for one in read], "judge": order.judge}


def like(campaign: Campaign) -> Mapping[str, Any]:
    """Return what jobs have that carry out the same campaign on all of a machine, for a page."""
    asked = {name: one for name, one in to_record(campaign).items() if name != "name"}
    return {"campaign": asked, "scheduler": "", "workers": 0}


def look_in(folder: Path) -> None:
    """Let this process, and those it starts, import what is in `folder`."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
