"""`python -m semsim job FOLDER`: carry out or resume any job, and say how it ended."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from semsim.jobs.folders import Job, read_job, read_order
from semsim.jobs.terminal import carry_out
from semsim.terminal import told_errors


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of job; each part is `module:name`, imported where such a job is carried out.

    order: the dataclass in its order.json. work: (order, folder, report) → what it found.
    told: that → text. older: (job) → the order of a job that a previous version left.
    state: the file in its folder that is of no use once there is a result.
    exit_code: of what it found, or None where it was stopped; without, 0.
    """

    order: str
    work: str
    told: str
    older: str
    state: str = ""
    exit_code: str = ""


KINDS = {
    "learn": Kind(
        order="semsim.learning.ablations_run:TrainingJob",
        work="semsim.learning.ablations_run:do_training",
        told="semsim.cli.learn:judged_text",
        older="semsim.learning.older_jobs:older_training",
        state="training.pt",
    ),
    "learn-study": Kind(
        order="semsim.learning.ablations_run:StudyJob",
        work="semsim.learning.ablations_run:do_study",
        told="semsim.cli.learn:study_text",
        older="semsim.learning.older_jobs:older_study",
    ),
    "split": Kind(
        order="semsim.split.orders:SplitJob",
        work="semsim.split.orders:do_split",
        told="semsim.cli.split:outcome_text",
        older="semsim.split.orders:older_split",
    ),
    "federated": Kind(
        order="semsim.federated.orders:FederatedJob",
        work="semsim.federated.orders:do_comparison",
        told="semsim.cli.federated:told",
        older="semsim.federated.orders:older_comparison",
    ),
    "campaign": Kind(
        order="semsim.campaign.orders:CampaignOrder",
        work="semsim.campaign.orders:do_campaign",
        told="semsim.cli.campaign:campaign_summary",
        older="semsim.campaign.orders:older_campaign",
        exit_code="semsim.cli.campaign:exit_code",
    ),
}


def job(folder: Annotated[Path, typer.Argument(help="Folder of the job.")]) -> None:
    """Carry out or resume the job in a folder, which a page or another command made."""
    with told_errors():
        asked = read_job(folder)
        if asked.kind in KINDS:
            outcome, code = do(asked), KINDS[asked.kind].exit_code
            raise typer.Exit(_named(code)(outcome) if code else 0)
    from semsim.cli.main import app  # the command that a job of this kind names

    app([*asked.argv, "--job", str(asked.folder)])


def do(asked: Job) -> dict[str, Any] | None:
    """Do the work of a job of `KINDS` and print what it found; None where it was stopped."""
    kind = KINDS[asked.kind]
    if asked.argv:  # as a previous version made it
        order = _named(kind.older)(asked)
    else:
        kept: Any = _named(kind.order)
        order = read_order(asked, kept)
    outcome = carry_out(asked, partial(_named(kind.work), order, asked.folder))
    if outcome is not None:
        if kind.state:
            (asked.folder / kind.state).unlink(missing_ok=True)
        typer.echo(_named(kind.told)(outcome))
    return outcome


def _named(path: str) -> Callable[..., Any]:
    module, _, name = path.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found
