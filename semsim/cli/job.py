"""`semsim-studio job FOLDER`: carry out or resume any job, and say how it ended."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any

import typer

from semsim.base.whole import require_room
from semsim.errors import JobError, SettingsError
from semsim.jobs.folders import Job, read_job, read_order
from semsim.jobs.terminal import carry_out
from semsim.progress import Report
from semsim.terminal import Json, show_told, told_errors


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of job; each part is `module:name`, imported where such a job is carried out.

    order: the dataclass of what was asked. work: (order, folder, report) → what it found.
    told: that → text.
    rows: what it found → the rows of its tables, for --json; without, it has none.
    state: the file in its folder that is of no use once there is a result.
    writes: folders it writes to besides its own: a field of its order, or below one, as data/runs.
    exit_code: of what it found, or None where it was stopped; without, 0.
    """

    order: str
    work: str
    told: str
    rows: str = ""
    state: str = ""
    exit_code: str = ""
    writes: tuple[str, ...] = ()


KINDS = {
    "learn": Kind(
        order="semsim.learning.ablations_run:TrainingJob",
        work="semsim.learning.ablations_run:do_training",
        told="semsim.cli.learn:judged_text",
        rows="semsim.cli.learn:judged_rows",
        state="training.pt",
        writes=("place.checkpoints",),
    ),
    "learn-study": Kind(
        order="semsim.learning.ablations_run:StudyJob",
        work="semsim.learning.ablations_run:do_study",
        told="semsim.cli.learn:study_text",
        rows="semsim.cli.learn:study_rows",
    ),
    "learn-leave-out": Kind(
        order="semsim.learning.leave_out:LeaveOutJob",
        work="semsim.learning.leave_out:do_leave_out",
        told="semsim.cli.learn:left_out_text",
        rows="semsim.cli.learn:left_out_rows",
    ),
    "split": Kind(
        order="semsim.split.split_job:SplitJob",
        work="semsim.split.split_job:do_split",
        told="semsim.cli.split:outcome_text",
        rows="semsim.cli.split:outcome_rows",
        writes=("place.data",),
    ),
    "federated": Kind(
        order="semsim.federated.comparison_job:FederatedJob",
        work="semsim.federated.comparison_job:do_comparison",
        told="semsim.cli.federated:told",
        rows="semsim.federated.summary:rows_of",
        writes=("out",),
    ),
    "judge": Kind(
        order="semsim.judges.judge_job:JudgeOrder",
        work="semsim.judges.judge_job:do_judge",
        told="semsim.cli.judge:told",
        state="training.pt",
        writes=("checkpoints/judges",),
    ),
    "look": Kind(
        order="semsim.importers.import_job:ImportOrder",
        work="semsim.importers.import_job:do_look",
        told="semsim.importers.import_job:look_text",
    ),
    "import": Kind(
        order="semsim.importers.import_job:ImportOrder",
        work="semsim.importers.import_job:do_keep",
        told="semsim.importers.import_job:kept_text",
    ),
    "dataset": Kind(
        order="semsim.datasets.fetch_job:FetchOrder",
        work="semsim.datasets.fetch_job:do_fetch",
        told="semsim.datasets.fetch_job:told",
    ),
    "comparison": Kind(
        order="semsim.comparison.packed_job:PackOrder",
        work="semsim.comparison.packed_job:do_packed",
        told="semsim.scores.score_job:fetched",
    ),
    "score": Kind(
        order="semsim.scores.score_job:ScoreOrder",
        work="semsim.scores.score_job:do_score",
        told="semsim.scores.score_job:told",
        rows="semsim.scores.score_job:rows_of",
        exit_code="semsim.scores.score_job:exit_code",
    ),
    "weights": Kind(
        order="semsim.scores.score_job:WeightsOrder",
        work="semsim.scores.score_job:do_fetch",
        told="semsim.scores.score_job:fetched",
    ),
    "campaign": Kind(
        order="semsim.campaign.campaign_job:CampaignOrder",
        work="semsim.campaign.campaign_job:do_campaign",
        told="semsim.cli.campaign:campaign_summary",
        exit_code="semsim.cli.campaign:exit_code",
        writes=("data/runs",),
    ),
}


def job(
    folder: Annotated[Path, typer.Argument(help="Folder of the job.")], as_json: Json = False
) -> None:
    """Carry out or resume the job in a folder, which a page or another command made."""
    with told_errors():
        asked = read_job(folder)
        if asked.kind not in KINDS:
            known = ", ".join(sorted(KINDS))
            raise JobError(f"{asked.folder} is a job of the kind {asked.kind!r}; known: {known}.")
        if as_json and not KINDS[asked.kind].rows:
            raise SettingsError(f"A job {asked.kind} prints no table; leave --json out.")
        outcome, code = do(asked, as_json=as_json), KINDS[asked.kind].exit_code
        raise typer.Exit(resolve_name(code)(outcome) if code else 0)


def do(
    asked: Job, change: Callable[[Any], Any] | None = None, as_json: bool = False
) -> dict[str, Any] | None:
    """Do the work of a job of `KINDS` and print what it found; None where it was stopped.

    change: of its order, for this time. as_json: print its rows, of a kind that has some.
    """
    kind = KINDS[asked.kind]
    order: Any = read_order(asked, resolve_name(kind.order))
    if change is not None:
        order = change(order)
    outcome = carry_out(asked, partial(_work, kind, order, asked.folder))
    if outcome is not None:
        if kind.state:
            (asked.folder / kind.state).unlink(missing_ok=True)
        rows = resolve_name(kind.rows)(outcome) if as_json else []
        show_told(rows, resolve_name(kind.told)(outcome), as_json)
    return outcome


def _work(kind: Kind, order: Any, folder: Path, report: Report) -> dict[str, Any]:
    """Do the work of a job, once all that it writes to is found to have rights and room."""
    parts = (name.partition("/") for name in kind.writes)
    require_room(folder, *(Path(attrgetter(name)(order), below) for name, _, below in parts))
    done: dict[str, Any] = resolve_name(kind.work)(order, folder, report)
    return done
