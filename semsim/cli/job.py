"""`python -m semsim job FOLDER`: carry out or resume any job, and say how it ended."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from semsim.errors import SettingsError
from semsim.jobs.folders import Job, read_job
from semsim.jobs.terminal import carry_out
from semsim.terminal import Json, show_told, told_errors


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of job; each part is `module:name`, imported where such a job is carried out.

    order: (job) → what was asked, also of a job that a previous version left. work: (order,
    folder, report) → what it found. told: that → text.
    rows: what it found → the rows of its tables, for --json; without, it has none.
    state: the file in its folder that is of no use once there is a result.
    exit_code: of what it found, or None where it was stopped; without, 0.
    """

    order: str
    work: str
    told: str
    rows: str = ""
    state: str = ""
    exit_code: str = ""


KINDS = {
    "learn": Kind(
        order="semsim.learning.older_jobs:training_order",
        work="semsim.learning.ablations_run:do_training",
        told="semsim.cli.learn:judged_text",
        rows="semsim.cli.learn:judged_rows",
        state="training.pt",
    ),
    "learn-study": Kind(
        order="semsim.learning.older_jobs:study_order",
        work="semsim.learning.ablations_run:do_study",
        told="semsim.cli.learn:study_text",
        rows="semsim.cli.learn:study_rows",
    ),
    "learn-leave-out": Kind(
        order="semsim.learning.leave_out:leave_out_order",
        work="semsim.learning.leave_out:do_leave_out",
        told="semsim.cli.learn:left_out_text",
        rows="semsim.cli.learn:left_out_rows",
    ),
    "split": Kind(
        order="semsim.split.split_job:split_order",
        work="semsim.split.split_job:do_split",
        told="semsim.cli.split:outcome_text",
        rows="semsim.cli.split:outcome_rows",
    ),
    "federated": Kind(
        order="semsim.federated.comparison_job:comparison_order",
        work="semsim.federated.comparison_job:do_comparison",
        told="semsim.cli.federated:told",
        rows="semsim.federated.summary:rows_of",
    ),
    "judge": Kind(
        order="semsim.judges.judge_job:judge_order",
        work="semsim.judges.judge_job:do_judge",
        told="semsim.cli.judge:told",
        state="training.pt",
    ),
    "look": Kind(
        order="semsim.importers.import_job:order_of",
        work="semsim.importers.import_job:do_look",
        told="semsim.importers.import_job:look_text",
    ),
    "import": Kind(
        order="semsim.importers.import_job:order_of",
        work="semsim.importers.import_job:do_keep",
        told="semsim.importers.import_job:kept_text",
    ),
    "dataset": Kind(
        order="semsim.datasets.fetch_job:fetch_order",
        work="semsim.datasets.fetch_job:do_fetch",
        told="semsim.datasets.fetch_job:told",
    ),
    "comparison": Kind(
        order="semsim.comparison.packed_job:packed_order",
        work="semsim.comparison.packed_job:do_packed",
        told="semsim.comparison.packed_job:told",
    ),
    "campaign": Kind(
        order="semsim.campaign.campaign_job:campaign_order",
        work="semsim.campaign.campaign_job:do_campaign",
        told="semsim.cli.campaign:campaign_summary",
        exit_code="semsim.cli.campaign:exit_code",
    ),
}


def job(
    folder: Annotated[Path, typer.Argument(help="Folder of the job.")], as_json: Json = False
) -> None:
    """Carry out or resume the job in a folder, which a page or another command made."""
    with told_errors():
        asked = read_job(folder)
        if asked.kind in KINDS:
            if as_json and not KINDS[asked.kind].rows:
                raise SettingsError(f"A job {asked.kind} prints no table; leave --json out.")
            outcome, code = do(asked, as_json=as_json), KINDS[asked.kind].exit_code
            raise typer.Exit(_named(code)(outcome) if code else 0)
    from semsim.cli.main import app  # the command that a job of this kind names

    app([*asked.argv, "--job", str(asked.folder), *(["--json"] if as_json else [])])


def do(
    asked: Job, change: Callable[[Any], Any] | None = None, as_json: bool = False
) -> dict[str, Any] | None:
    """Do the work of a job of `KINDS` and print what it found; None where it was stopped.

    change: of its order, for this time. as_json: print its rows, of a kind that has some.
    """
    kind = KINDS[asked.kind]
    order = _named(kind.order)(asked)
    if change is not None:
        order = change(order)
    outcome = carry_out(asked, partial(_named(kind.work), order, asked.folder))
    if outcome is not None:
        if kind.state:
            (asked.folder / kind.state).unlink(missing_ok=True)
        rows = _named(kind.rows)(outcome) if as_json else []
        show_told(rows, _named(kind.told)(outcome), as_json)
    return outcome


def _named(path: str) -> Callable[..., Any]:
    module, _, name = path.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found
