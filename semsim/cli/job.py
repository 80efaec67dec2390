"""`semsim-studio job FOLDER`: carry out or resume any job, and say how it ended."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from semsim.base.cli.terminal import Json, told_errors
from semsim.base.errors import JobError, SettingsError
from semsim.base.jobs import terminal
from semsim.base.jobs.folders import Job, read_job
from semsim.base.jobs.terminal import JobKind
from semsim.systems import JOBS

_TRAININGS, _LEARN = "semsim.learning.ablations_run", "semsim.cli.train"
_IMPORTS, _WEIGHTS = "semsim.importers.import_job", "semsim.weights"
_FETCHES, _PEOPLE = "semsim.datasets.fetch_job", "semsim.people.get_job"
KINDS = {
    "learn": JobKind(
        *(_TRAININGS, "TrainingJob", "do_training", _LEARN, "judged_text", "judged_parts"),
        state="training.pt",
        writes=("place.checkpoints",),
    ),
    "learn-study": JobKind(
        _TRAININGS, "StudyJob", "do_ablation", _LEARN, "study_text", parts="study_parts"
    ),
    "learn-leave-out": JobKind(
        *(_TRAININGS, "LeaveOutJob", "do_ablation", _LEARN, "left_out_text", "left_out_parts")
    ),
    "judge": JobKind(
        *(
            "semsim.distractors.judge_job",
            "JudgeOrder",
            "do_judge",
            "semsim.cli.distractors",
            "told",
        ),
        state="training.pt",
        writes=("checkpoints/judges",),
    ),
    "look": JobKind(_IMPORTS, "ImportOrder", "do_look", _IMPORTS, "look_text"),
    "import": JobKind("semsim.cli.imports", "ImportOrder", "keep", _IMPORTS, "kept_text"),
    "dataset": JobKind(_FETCHES, "FetchOrder", "do_fetch", _FETCHES, "told"),
    "comparison": JobKind(
        *("semsim.comparison.packed_job", "PackOrder", "do_packed", _WEIGHTS, "fetched")
    ),
    "score": JobKind(
        *("semsim.metrics.scoring", "ScoreOrder", "do_score"),
        *("semsim.cli.score", "told", "sets_of", "exit_code"),
    ),
    "people": JobKind(_PEOPLE, "PeopleOrder", "do_people", _PEOPLE, "brought"),
    "weights": JobKind(_WEIGHTS, "WeightsOrder", "do_fetch", _WEIGHTS, "fetched"),
    "campaign": JobKind(
        *("semsim.campaign.campaign_job", "CampaignOrder", "do_campaign"),
        *("semsim.cli.campaign", "campaign_summary"),
        exit_code="exit_code",
        writes=("data/runs",),
    ),
    **JOBS,
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
        if as_json and not KINDS[asked.kind].parts:
            raise SettingsError(f"A job {asked.kind} prints no table; leave --json out.")
        outcome, kind = do(asked, as_json=as_json), KINDS[asked.kind]
        raise typer.Exit(kind.said(kind.exit_code)(outcome) if kind.exit_code else 0)


def do(
    asked: Job, change: Callable[[Any], Any] | None = None, as_json: bool = False
) -> dict[str, Any] | None:
    """Do the work of a job of `KINDS`, see `semsim.base.jobs.terminal.do`."""
    return terminal.do(KINDS[asked.kind], asked, change, as_json)
