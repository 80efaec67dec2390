"""Trainings that are judged by what they have not seen, and studies of them, as jobs."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from semsim.base.errors import JobError, TrainingFailedError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job
from semsim.base.jobs.orders import to_record
from semsim.base.metric_spec import START
from semsim.base.progress import Progress, Report, silent
from semsim.base.storage.records import read_record, write_record
from semsim.device import pick_device
from semsim.learning import orders
from semsim.learning.ablations import (
    STUDIES,
    Arm,
    StudyPlan,
    arms,
    within_budget,
)
from semsim.learning.baselines import ALL, check_controls
from semsim.learning.card import NOT_STATED, CardFacts, data_facts, write_card
from semsim.learning.diagnostics import Course
from semsim.learning.evaluation import (
    BASELINES,
    Judging,
    agreement_of,
    check_judgeable,
    evaluate,
)
from semsim.learning.initial import check_start, check_unseen
from semsim.learning.orders import STATE_FILE, Facts, Order, require_free
from semsim.learning.settings import TrainSettings
from semsim.learning.shuffles import SHUFFLED, how_many, part_of, train_shuffles
from semsim.learning.splits import HoldOut, Split, divide, hold_out_text
from semsim.learning.triplets import is_simulated, learnable, take_stock, typed
from semsim.metrics import Resources, find_metric
from semsim.metrics.scoring import read_labels

STUDY_KIND = "learn-study"
ARM_FILE, ARM_FORMAT = "arm.json", "semsim-arm/1"
_LABELS_FILE, _VOTES_FILE = "labels.parquet", "votes.parquet"
_STEPS = 1000  # of one arm in the progress of a study


@dataclass(frozen=True, kw_only=True)
class Workplace:
    """Places that a job reads from and writes to; paths are absolute.

    checkpoints: weights of metrics, and where a finished SemSim goes. scores: kept scores.
    """

    checkpoints: Path
    scores: Path
    device: str = "auto"
    metrics: tuple[str, ...] = BASELINES

    def judging(self) -> Judging:
        """Return the settings of evaluations; `UnknownNameError` for a metric there is not."""
        for name in self.metrics:
            find_metric(name)
        resources = Resources(checkpoints=self.checkpoints, device=pick_device(self.device))
        return Judging(resources=resources, scores=self.scores, metrics=self.metrics)


@dataclass(frozen=True, kw_only=True)
class JudgedOrder:
    """A training, what is kept to judge it by, and the licence its card states.

    controls: of `semsim.learning.baselines.CHOICES`; "all" trains on shuffled votes as well, see
        `train_shuffles`.
    """

    order: Order
    hold_out: HoldOut
    licence: str = NOT_STATED
    controls: str = START

    def __post_init__(self) -> None:
        check_controls(self.controls)


@dataclass(frozen=True, kw_only=True)
class TrainingJob:
    """The order of a job that does `train_and_judge` with the tables in its folder."""

    asked: JudgedOrder
    place: Workplace


@dataclass(frozen=True, kw_only=True)
class StudyJob:
    """The order of a job that does `run_study` with the tables in its folder."""

    plan: StudyPlan
    place: Workplace


@dataclass(frozen=True, kw_only=True)
class Material:
    """Labels of a study, see `divide`, and its votes or None where only majorities are known."""

    labels: pd.DataFrame
    votes: pd.DataFrame | None = None


def train_and_judge(
    asked: JudgedOrder,
    material: Material,
    place: Workplace,
    folder: Path,
    report: Report = silent,
) -> dict[str, Any]:
    """Train on one side of the split, judge by both, and write the model card.

    Goes on from what an earlier run left in `folder`. Returns the outcome of `learn` with
    `split`, `held_out` and `in_sample`, see `evaluate`. Raises as `learn` and `divide`.
    """
    split = divide(material.labels, asked.hold_out)
    check_unseen(asked.order.settings.weights, split.test)
    judging, checkpoint, votes = place.judging(), asked.order.checkpoint, material.votes
    sides = Sides(train=split.train, test=split.test, votes=votes)
    outcome, shuffles = _trained(asked.order, sides, judging, folder, asked.controls, report)
    tell = _after(outcome, report)
    tell("judging held-out reconstructions")
    held_out = evaluate(
        checkpoint, split.test, votes, judging, sample="held-out", shuffles=shuffles
    )
    tell("judging what it learned from")
    in_sample = evaluate(checkpoint, split.train, votes, judging, sample="in-sample")
    facts = CardFacts(
        outcome=outcome,
        split=split_record(split),
        data=data_facts(material.labels, material.votes),
        held_out=held_out,
        in_sample=in_sample,
        licence=asked.licence,
    )
    card = write_card(checkpoint, facts)
    judged = {"split": facts.split, "held_out": held_out, "in_sample": in_sample}
    return {**outcome, **judged, "licence": card["licence"]}


def _trained(
    order: Order, sides: "Sides", judging: Judging, folder: Path, controls: str, report: Report
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what `learn` does; of controls "all" also `train_shuffles` of the same."""
    from semsim.learning.train_job import learn  # with torch, and only a job needs it

    n = how_many(order.settings) if controls == ALL else 0
    outcome = learn(order, sides.train, folder, part_of(report, 0, n))
    if not n:
        return outcome, []

    def judge(checkpoint: Path) -> dict[str, Any]:
        return agreement_of(checkpoint, sides.test, sides.votes, judging)

    return outcome, train_shuffles(order, sides.train, judge, folder / SHUFFLED, report)


def run_study(
    plan: StudyPlan,
    material: Material,
    place: Workplace,
    folder: Path,
    report: Report = silent,
) -> dict[str, Any]:
    """Train and judge every arm; one that was finished before is not done again.

    folder: each arm has a folder of its own in it, with its checkpoint and its numbers.
    Returns the plan and one row an arm, see `run_arm`; one whose training fails stops no other.
    """
    every = arms(plan)
    rows = []
    for number, arm in enumerate(every):
        tell = _part_of(report, number, len(every), f"{arm.name}, {number + 1} of {len(every)}")
        rows.append(run_arm(arm, material, place, folder / "arms" / arm.name, tell))
    report(Progress(_STEPS * len(every), _STEPS * len(every), "done"))
    simulated = is_simulated(material.labels)
    return {**to_record(plan), "simulated": simulated, "rows": rows}


def run_arm(
    arm: Arm, material: Material, place: Workplace, folder: Path, report: Report = silent
) -> dict[str, Any]:
    """Train one arm and judge it by its held-out images.

    Returns name, value, seed, n_originals, n_triplets, epochs, seconds, warnings and held_out;
    where the training fails, name, value, seed and `why`.
    """
    sides = sides_of(arm, material)
    facts = {"name": arm.name, "value": arm.value, "seed": arm.seed}
    try:
        return run_sides(
            arm.settings, sides, place, folder, facts=facts, controls=arm.controls, report=report
        )
    except TrainingFailedError as error:
        return {**facts, "why": str(error)}


@dataclass(frozen=True, kw_only=True)
class Sides:
    """Labels to learn from and labels to judge by, see `divide`, and the votes behind them."""

    train: pd.DataFrame
    test: pd.DataFrame
    votes: pd.DataFrame | None = None


def run_sides(
    settings: TrainSettings,
    sides: Sides,
    place: Workplace,
    folder: Path,
    *,
    facts: Mapping[str, Any],
    controls: str = START,
    report: Report = silent,
) -> dict[str, Any]:
    """Train on one side and judge by the other, once: what `folder` has is not done again.

    controls: of `semsim.learning.baselines.CHOICES`. Returns `facts`, which go into the file as
    well, with n_originals, n_triplets, epochs, warnings, seconds and held_out.
    """
    done = folder / ARM_FILE
    if done.exists():  # what it is called now counts: the folder may have been moved
        return {**read_record(done, ARM_FORMAT, JobError), **facts}
    check_unseen(settings.weights, sides.test)
    began = time.monotonic()
    order = Order(name="semsim", checkpoints=folder, settings=settings)
    if not (folder / STATE_FILE).exists():  # a checkpoint without a state or numbers is of no use
        order.checkpoint.unlink(missing_ok=True)
    judging = place.judging()
    outcome, shuffles = _trained(order, sides, judging, folder, controls, report)
    held_out = evaluate(
        order.checkpoint,
        sides.test,
        sides.votes,
        judging,
        sample="held-out",
        shuffles=shuffles,
    )
    row = {
        **facts,
        **{key: outcome[key] for key in ("n_originals", "n_triplets", "epochs")},
        "warnings": list(outcome["warnings"]),
        **{"seconds": time.monotonic() - began, "held_out": held_out},
    }
    write_record(done, ARM_FORMAT, row)
    (folder / STATE_FILE).unlink(missing_ok=True)
    return row


def sides_of(arm: Arm, material: Material) -> Sides:
    """Return the labels that the arm learns from and is judged by."""
    split = divide(material.labels, arm.hold_out)
    learned = within_budget(split.train, arm.budget, arm.seed, arm.settings)
    return Sides(train=learned, test=split.test, votes=material.votes)


def split_record(split: Split) -> dict[str, Any]:
    """Return the record of a split for a card and a result, with the test originals by name."""
    named = split.test[["dataset", "image_id"]].drop_duplicates().astype(str)
    hold_out = split.hold_out
    return {
        "hold_out": hold_out_text(hold_out),
        "words": hold_out.words,
        "fraction": hold_out.fraction,
        "seed": hold_out.seed,
        "n_train": len(split.train),
        "n_test": len(split.test),
        "unused": split.unused,
        "test_originals": [f"{dataset}/{image}" for dataset, image in named.to_numpy()],
    }


def queue_judged(asked: JudgedOrder, material: Material, place: Workplace, root: Path) -> Job:
    """The job that will do `train_and_judge`; not yet started.

    The tables are kept in its folder, so that votes which come later change nothing.
    Raises `SettingsError` where the name is taken by a checkpoint or by a training under way,
    `DataError` where the labels allow no triplet or no split, or the weights to start from have
    seen votes of the test, and as `check_start`.
    """
    order = asked.order
    place.judging()
    require_free(order.checkpoint)
    orders.refuse_taken(order.name, root)
    check_start(order.settings)
    split = divide(material.labels, asked.hold_out)
    check_unseen(order.settings.weights, split.test)
    for side in (split.test, split.train):
        check_judgeable(side, material.votes)
    learnable(take_stock(split.train), order.settings.ordering)
    facts = Facts(name=order.name, study=order.study, simulated=is_simulated(material.labels))
    return jobs.create(
        root,
        kind=orders.KIND,
        title=f"Train {order.name}" + (" on simulated votes" if facts.simulated else ""),
        order=TrainingJob(asked=asked, place=resolved(place)),
        files={**tables_of(material), orders.FACTS_FILE: asdict(facts)},
    )


def queue_study(plan: StudyPlan, material: Material, place: Workplace, root: Path) -> Job:
    """The job that will do `run_study`; not yet started.

    Raises `DataError` where an arm has nothing to learn from or less than its budget, or starts
    from weights that have seen votes of its test, and as `check_start`.
    """
    for arm in arms(plan):
        check_start(arm.settings)
        sides = sides_of(arm, material)
        check_unseen(arm.settings.weights, sides.test)
        check_judgeable(sides.test, sides.votes)
        learnable(take_stock(sides.train), arm.settings.ordering)
    place.judging()
    title = f"Study of SemSim: {STUDIES[plan.what].title.lower()}"
    title += " on simulated votes" if is_simulated(material.labels) else ""
    order = StudyJob(plan=plan, place=resolved(place))
    return jobs.create(root, kind=STUDY_KIND, title=title, order=order, files=tables_of(material))


def do_training(order: TrainingJob, folder: Path, report: Report) -> dict[str, Any]:
    """Do what the training's job in `folder` was asked."""
    told = Course(folder, report)
    try:
        return train_and_judge(order.asked, material_in(folder), order.place, folder, told)
    finally:
        told.write()


def do_study(order: StudyJob, folder: Path, report: Report) -> dict[str, Any]:
    """Carry out the study's job in `folder`."""
    return run_study(order.plan, material_in(folder), order.place, folder, report)


def read_material(labels: Path, votes: Path | None) -> Material:
    """Tables from Parquet files; without the file of votes there are none."""
    found = read_labels(votes, "votes") if votes is not None and votes.exists() else None
    return Material(labels=typed(read_labels(labels)), votes=found)


def material_in(folder: Path) -> Material:
    """The tables that a job's folder keeps."""
    return read_material(folder / _LABELS_FILE, folder / _VOTES_FILE)


def tables_of(material: Material) -> dict[str, pd.DataFrame]:
    """The files by which a job's folder keeps its tables."""
    tables = {_LABELS_FILE: material.labels}
    return tables if material.votes is None else {**tables, _VOTES_FILE: material.votes}


def resolved(place: Workplace) -> Workplace:
    """The same place from wherever the job is carried out."""
    return replace(place, checkpoints=place.checkpoints.resolve(), scores=place.scores.resolve())


def _after(outcome: Mapping[str, Any], report: Report) -> Callable[[str], None]:
    """Tells what comes after the last epoch; the bar stays full."""
    return lambda note: report(Progress(outcome["epochs"], outcome["epochs"], note))


def _part_of(report: Report, number: int, total: int, name: str) -> Report:
    """A report for one arm, as a part of the study's. Curves of arms would mix, so none is kept."""

    def tell(progress: Progress) -> None:
        share = progress.done / progress.total if progress.total else 0.0
        done = _STEPS * number + round(_STEPS * min(1.0, share))
        report(Progress(done, _STEPS * total, f"{name}, {progress.note}"))

    return tell
