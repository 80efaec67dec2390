"""`semsim-studio job FOLDER`: carry out or resume any job, and say how it ended."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

import typer

from semsim.base.cli.terminal import Json, show_told, told_errors
from semsim.base.errors import JobError, SettingsError
from semsim.base.jobs.folders import Job, read_job, read_order
from semsim.base.jobs.terminal import carry_out
from semsim.base.progress import Report
from semsim.base.storage.atomic import require_room


@dataclass(frozen=True)
class Kind:
    """One kind of job, whose parts are imported where such a job is carried out.

    module: has `order`, the dataclass of what was asked, and `work`: (order, folder, report) → what
    it found. teller: has `told`: that → text; `rows`: that → the rows of its tables, for --json,
    where it has some; and `exit_code`: of that, or None where it was stopped, where it is not 0.
    state: the file in its folder that is of no use once there is a result.
    writes: folders it writes to besides its own: a field of its order, or below one, as data/runs.
    """

    module: str
    order: str
    work: str
    teller: str
    told: str
    rows: str = ""
    exit_code: str = ""
    state: str = ""
    writes: tuple[str, ...] = ()

    def done(self, name: str) -> Any:
        """Return `order` or `work` itself, by its name."""
        return getattr(import_module(self.module), name)

    def said(self, name: str) -> Any:
        """Return `told`, `rows` or `exit_code` itself, by its name."""
        return getattr(import_module(self.teller), name)


_TRAININGS, _LEARN = "semsim.learning.ablations_run", "semsim.cli.learn"
_IMPORTS, _SCORES = "semsim.importers.import_job", "semsim.scores.score_job"
_FETCHES = "semsim.datasets.fetch_job"
KINDS = {
    "learn": Kind(
        *(_TRAININGS, "TrainingJob", "do_training", _LEARN, "judged_text", "judged_rows"),
        state="training.pt",
        writes=("place.checkpoints",),
    ),
    "learn-study": Kind(
        _TRAININGS, "StudyJob", "do_study", _LEARN, "study_text", rows="study_rows"
    ),
    "learn-leave-out": Kind(
        *("semsim.learning.leave_out", "LeaveOutJob", "do_leave_out"),
        *(_LEARN, "left_out_text", "left_out_rows"),
    ),
    "split": Kind(
        *("semsim.systems.split.plan", "SplitJob", "do_split"),
        *("semsim.cli.split", "outcome_text", "outcome_rows"),
        writes=("place.data",),
    ),
    "federated": Kind(
        *("semsim.systems.federated.settings", "FederatedJob", "do_comparison"),
        *("semsim.cli.federated", "told", "rows_of"),
        writes=("out",),
    ),
    "judge": Kind(
        *("semsim.distractors.judge_job", "JudgeOrder", "do_judge", "semsim.cli.judge", "told"),
        state="training.pt",
        writes=("checkpoints/judges",),
    ),
    "look": Kind(_IMPORTS, "ImportOrder", "do_look", _IMPORTS, "look_text"),
    "import": Kind(_IMPORTS, "ImportOrder", "do_keep", _IMPORTS, "kept_text"),
    "dataset": Kind(_FETCHES, "FetchOrder", "do_fetch", _FETCHES, "told"),
    "comparison": Kind(
        *("semsim.comparison.packed_job", "PackOrder", "do_packed", _SCORES, "fetched")
    ),
    "score": Kind(_SCORES, "ScoreOrder", "do_score", _SCORES, "told", "rows_of", "exit_code"),
    "weights": Kind(_SCORES, "WeightsOrder", "do_fetch", _SCORES, "fetched"),
    "campaign": Kind(
        *("semsim.campaign.campaign_job", "CampaignOrder", "do_campaign"),
        *("semsim.cli.campaign", "campaign_summary"),
        exit_code="exit_code",
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
        outcome, kind = do(asked, as_json=as_json), KINDS[asked.kind]
        raise typer.Exit(kind.said(kind.exit_code)(outcome) if kind.exit_code else 0)


def do(
    asked: Job, change: Callable[[Any], Any] | None = None, as_json: bool = False
) -> dict[str, Any] | None:
    """Do the work of a job of `KINDS` and print what it found; None where it was stopped.

    change: of its order, for this time. as_json: print its rows, of a kind that has some.
    """
    kind = KINDS[asked.kind]
    order: Any = read_order(asked, kind.done(kind.order))
    if change is not None:
        order = change(order)
    outcome = carry_out(asked, partial(_work, kind, order, asked.folder))
    if outcome is not None:
        if kind.state:
            (asked.folder / kind.state).unlink(missing_ok=True)
        rows = kind.said(kind.rows)(outcome) if as_json else []
        show_told(rows, kind.said(kind.told)(outcome), as_json)
    return outcome


def _work(kind: Kind, order: Any, folder: Path, report: Report) -> dict[str, Any]:
    """Do the work of a job, once all that it writes to is found to have rights and room."""
    parts = (name.partition("/") for name in kind.writes)
    require_room(folder, *(Path(attrgetter(name)(order), below) for name, _, below in parts))
    done: dict[str, Any] = kind.done(kind.work)(order, folder, report)
    return done
