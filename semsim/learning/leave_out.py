"""Leaving out one thing after the other: each data set, architecture, strategy or attack in turn.

Of data sets that is the paper's Table 1 (Sun et al. 2023): SemSim learns from all but one and is
judged by that one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semsim.base.errors import DataError, SettingsError, TrainingFailedError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job
from semsim.base.metric_spec import START
from semsim.base.progress import Progress, Report, silent
from semsim.base.words import counted
from semsim.learning.ablations import plain_names
from semsim.learning.ablations_run import (
    Material,
    Sides,
    Workplace,
    material_in,
    read_material,
    resolved,
    run_sides,
    tables_of,
)
from semsim.learning.baselines import check_controls
from semsim.learning.initial import check_start
from semsim.learning.settings import TrainSettings
from semsim.learning.splits import KINDS, HoldOut, choices, divide, join_labels, join_votes
from semsim.learning.triplets import is_simulated

KIND = "learn-leave-out"


@dataclass(frozen=True, kw_only=True)
class LeaveOut:
    """Values left out in turn: `kind` of `semsim.learning.splits.KINDS`, but "original".

    seed: of each training and of the originals in the test. fraction: of those, where it counts.
    controls: of `semsim.learning.baselines.CHOICES`.
    """

    kind: str = "dataset"
    fraction: float = 0.25
    seed: int = 0
    controls: str = START

    def __post_init__(self) -> None:
        check_controls(self.controls)
        if self.kind not in KINDS[1:]:
            raise SettingsError(f"Leave out each {', '.join(KINDS[1:])}; got {self.kind!r}.")

    def hold_out(self, value: str) -> HoldOut:
        """With `value` in the test."""
        return HoldOut(kind=self.kind, value=value, fraction=self.fraction, seed=self.seed)


@dataclass(frozen=True, kw_only=True)
class LeaveOutJob:
    """The order of a job that does `leave_each_out` with the tables in its folder."""

    plan: LeaveOut
    settings: TrainSettings
    place: Workplace


def read_materials(labels: Sequence[Path], votes: Sequence[Path]) -> Material:
    """The labels of several studies as one table, and their votes.

    votes: none, or one file for each of `labels`, in their order. Raises `DataError` for another
    number, for tables that cannot be read and for studies that judge the same reconstruction.
    """
    if votes and len(votes) != len(labels):
        raise DataError(
            f"{len(labels)} tables of labels and {len(votes)} of votes: give the votes of every "
            "study, in the order of the labels, or of none."
        )
    beside: list[Path | None] = [*votes] if votes else [None] * len(labels)
    found = [read_material(one, other) for one, other in zip(labels, beside, strict=True)]
    absent = [path for path in votes if not path.is_file()]
    if absent:
        raise DataError(f"No votes at {absent[0]}. Export them from a study, or give none.")
    if len(found) == 1:
        return found[0]
    named = [(str(path), one.labels) for path, one in zip(labels, found, strict=True)]
    tables = {str(place): one.votes for place, one in enumerate(found) if one.votes is not None}
    joined = join_votes(tables) if len(tables) == len(found) else None
    return Material(labels=join_labels(named), votes=joined)


def leave_each_out(
    plan: LeaveOut,
    settings: TrainSettings,
    material: Material,
    place: Workplace,
    folder: Path,
    report: Report = silent,
) -> dict[str, Any]:
    """Train without each value of `plan.kind` and judge by it; what `folder` has is not done again.

    Returns kind, simulated, and `rows`, one a value, see `run_sides`, with `left_out` and its
    `checkpoint`; where one leaves nothing to learn from or to judge by, or its training fails, its
    row has `left_out` and `why` alone.
    Raises `DataError` where there are fewer than two values.
    """
    values, rows = _values(plan, material), []
    names = plain_names(values)
    for number, value in enumerate(values):
        tell = _part(report, number, len(values), value)
        rows.append(_one(plan, value, settings, material, place, folder / names[value], tell))
    report(Progress(len(values), len(values), "done"))
    return {"kind": plan.kind, "simulated": is_simulated(material.labels), "rows": rows}


def queue_leave_out(
    plan: LeaveOut, settings: TrainSettings, material: Material, place: Workplace, root: Path
) -> Job:
    """The job that will do `leave_each_out`; not yet started.

    Raises `DataError` as that, and as `check_start`.
    """
    _values(plan, material)
    check_start(settings)
    place.judging()
    title = f"Leave out each {plan.kind}"
    title += " on simulated votes" if is_simulated(material.labels) else ""
    order = LeaveOutJob(plan=plan, settings=settings, place=resolved(place))
    return jobs.create(root, kind=KIND, title=title, order=order, files=tables_of(material))


def do_leave_out(order: LeaveOutJob, folder: Path, report: Report) -> dict[str, Any]:
    """Carry out the leave-out job in `folder`."""
    material = material_in(folder)
    return leave_each_out(order.plan, order.settings, material, order.place, folder, report)


def _values(plan: LeaveOut, material: Material) -> list[str]:
    found = choices(material.labels, plan.kind)
    if not found:
        raise DataError(
            f"There is only one {plan.kind} in these labels, so none can be left out. Give the "
            "labels of further studies."
        )
    return found


def _one(
    plan: LeaveOut,
    value: str,
    settings: TrainSettings,
    material: Material,
    place: Workplace,
    folder: Path,
    report: Report,
) -> dict[str, Any]:
    facts = {"left_out": value, "checkpoint": str((folder / "semsim.safetensors").resolve())}
    try:
        split = divide(material.labels, plan.hold_out(value))
        sides = Sides(train=split.train, test=split.test, votes=material.votes)
        return run_sides(
            settings, sides, place, folder, facts=facts, controls=plan.controls, report=report
        )
    except (DataError, TrainingFailedError) as error:  # what is so of one; the others go on
        return {"left_out": value, "why": str(error)}


def judged_words(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Of how many trainings the numbers are, in a line where that is not all of them."""
    judged = sum("why" not in row for row in rows)
    if judged == len(rows):
        return []
    return [f"Of {counted(len(rows), 'training')} {counted(judged, 'is', 'are')} judged here."]


def _part(report: Report, number: int, total: int, value: str) -> Callable[[Progress], None]:
    return lambda progress: report(Progress(number, total, f"without {value}: {progress.note}"))
