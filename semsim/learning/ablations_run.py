"""Trainings that are judged by what they have not seen, one or a set of them, as jobs."""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from semsim.base.errors import (
    DataError,
    JobError,
    SemsimError,
    SettingsError,
    TrainingFailedError,
)
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job, read_json
from semsim.base.metric_spec import START
from semsim.base.progress import Progress, Report, silent
from semsim.base.storage.atomic import write_json
from semsim.base.storage.records import read_record, write_record
from semsim.device import pick_device
from semsim.learning.ablations import NAME, AblationPlan, LeaveOut, Variant, within_budget
from semsim.learning.baselines import ALL, SHUFFLED, check_controls
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
from semsim.learning.settings import STATE_FILE, Order, TrainSettings, require_free
from semsim.learning.splits import (
    HoldOut,
    Split,
    divide,
    hold_out_text,
    join_labels,
    join_votes,
)
from semsim.learning.triplets import is_simulated, learnable, take_stock, typed
from semsim.metrics import Resources, find_metric
from semsim.metrics.scoring import read_labels

KIND = "learn"  # of the job of one training
ARM_FILE, ARM_FORMAT = "arm.json", "semsim-arm/1"
SHUFFLES = 5  # of the votes, unless more are asked for; 20 can show a p below 0.05, 5 cannot
LONG = 1800  # seconds of shuffles after which no further one begins
_LABELS_FILE, _VOTES_FILE = "labels.parquet", "votes.parquet"
_STEPS = 1000  # of one training in the progress of a set of them


@dataclass(frozen=True, kw_only=True)
class Workplace:
    """Places that a job reads from and writes to; paths are absolute.

    Attributes:
        checkpoints: Weights of metrics, and where a finished SemSim goes.
        scores: Kept scores.
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

    Attributes:
        controls: Of `semsim.learning.baselines.CHOICES`; "all" trains on as many `shuffles` of the
            votes as well, see `train_shuffles`.
    """

    order: Order
    hold_out: HoldOut
    licence: str = NOT_STATED
    controls: str = START
    shuffles: int = field(default_factory=lambda: SHUFFLES)

    def __post_init__(self) -> None:
        check_controls(self.controls)


@dataclass(frozen=True, kw_only=True)
class TrainingJob:
    """The order of a job that does `train_and_judge` with the tables in its folder.

    Attributes:
        simulated: Whether any of their votes are, for the list of trainings.
    """

    asked: JudgedOrder
    place: Workplace
    simulated: bool


@dataclass(frozen=True, kw_only=True)
class StudyJob:
    """The order of a job that does `run_ablation` with the tables in its folder."""

    plan: AblationPlan
    place: Workplace


@dataclass(frozen=True, kw_only=True)
class LeaveOutJob:
    """As `StudyJob`, of what is left out in turn."""

    plan: LeaveOut
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
    checkpoint, votes = asked.order.checkpoint, material.votes
    sides = Sides(split.train, split.test, votes, asked.controls, asked.shuffles)
    outcome, held_out = _judged(asked.order, sides, place, folder, report)
    report(Progress(outcome["epochs"], outcome["epochs"], "judging what it learned from"))
    in_sample = evaluate(checkpoint, split.train, votes, place.judging(), sample="in-sample")
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


def _judged(
    order: Order, sides: "Sides", place: Workplace, folder: Path, report: Report
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what `learn` does, and what `evaluate` finds on the held-out side.

    Of controls "all" the same is trained on shuffled votes as well, see `train_shuffles`.
    """
    from semsim.learning.train import learn  # with torch, and only a job needs it

    check_unseen(order.settings.weights, sides.test)
    judging, shuffles = place.judging(), []
    n = sides.shuffles if sides.controls == ALL else 0
    outcome = learn(order, sides.train, folder, part_of(report, 0, n))

    def judge(checkpoint: Path) -> dict[str, Any]:
        return agreement_of(checkpoint, sides.test, sides.votes, judging)

    if n:
        shuffles = train_shuffles(order, sides.train, judge, folder / SHUFFLED, report, n)
    told = Progress(outcome["epochs"], outcome["epochs"], "judging held-out reconstructions")
    report(told)  # the bar stays full
    test, votes = sides.test, sides.votes
    judged = evaluate(order.checkpoint, test, votes, judging, sample="held-out", shuffles=shuffles)
    return outcome, judged


def train_shuffles(
    order: Order,
    labels: pd.DataFrame,
    judge: Callable[[Path], Mapping[str, Any]],
    folder: Path,
    report: Report,
    n: int,
) -> list[dict[str, Any]]:
    """Train as `order` says on votes dealt out anew, `n` times, and judge each.

    Votes are dealt out among the reconstructions of each original; all else is the same, the start
    too. After `LONG` seconds no further one begins. What `folder` has is not done again.

    Args:
        judge: The row of a checkpoint, as of `metric_rows`.
        report: Told of all as one bar with the training, see `part_of`.

    Returns:
        Of each rho, tau, AUCs by scope, and seconds; or `why` where its training failed.
    """
    found: list[dict[str, Any]] = []
    while len(found) < n and sum(row["seconds"] for row in found) <= LONG:
        number = len(found) + 1
        done = folder / f"{number}.json"
        if not done.exists():
            place, tell = folder / str(number), part_of(report, number, n)
            write_json(done, _shuffle(order, number, labels, judge, place, tell))
            shutil.rmtree(place, ignore_errors=True)
        found.append(read_json(done))
    return found


def _shuffle(
    order: Order,
    number: int,
    labels: pd.DataFrame,
    judge: Callable[[Path], Mapping[str, Any]],
    folder: Path,
    report: Report,
) -> dict[str, Any]:
    from semsim.learning.train import learn  # with torch, and only a job needs it

    began, settings = time.monotonic(), replace(order.settings, shuffle=number)
    shuffled = replace(order, checkpoints=folder, settings=settings)
    try:
        learn(shuffled, labels, folder, report)
        row = judge(shuffled.checkpoint)
    except TrainingFailedError as error:
        return {"why": str(error), "seconds": time.monotonic() - began}
    aucs = {scope: found["auc"] for scope, found in row["auc"].items()}
    measured = {"rho": row["rho"], "tau": row["tau"], "auc": aucs}
    return {**measured, "seconds": time.monotonic() - began}


def part_of(report: Report, number: int, n: int) -> Report:
    """Return what the training (number 0) or one of its `n` shuffles reports to, as one bar.

    The curves of shuffles would mix with the training's, so only their places and words are told.
    """

    def tell(progress: Progress) -> None:
        done, total = number * progress.total + progress.done, (1 + n) * progress.total
        if number == 0:
            report(replace(progress, done=done, total=total))
        else:
            report(Progress(done, total, f"control, shuffle {number} of {n}, {progress.note}"))

    return tell


def run_ablation(
    plan: AblationPlan | LeaveOut,
    material: Material,
    place: Workplace,
    folder: Path,
    report: Report = silent,
) -> dict[str, Any]:
    """Train and judge every variant of `plan`; one that was finished before is not done again.

    Args:
        plan: The trainings.
        material: Labels to divide, and the votes behind them.
        place: Where weights and scores are, and what each is compared with.
        folder: Each variant has a folder of its own in it, with its checkpoint and its numbers.
        report: Told of all as one bar.

    Returns:
        The plan's `record`, simulated, and `rows`, one a variant: its facts with n_originals,
        n_triplets, epochs, seconds, warnings and held_out, see `run_sides`; where the training
        fails, its facts with `why`, and the others go on.
    """
    every, rows = plan.variants(material.labels, folder), []
    for number, one in enumerate(every):
        tell = _part_of(report, number, len(every), one.words)
        try:
            sides = sides_of(one, material)
            rows.append(run_sides(one.settings, sides, place, one.folder, one.facts, tell))
        except plan.ONE_FAILS as error:
            facts = {name: fact for name, fact in one.facts.items() if name != "checkpoint"}
            rows.append({**facts, "why": str(error)})
    report(Progress(_STEPS * len(every), _STEPS * len(every), "done"))
    return {**plan.record(), "simulated": is_simulated(material.labels), "rows": rows}


@dataclass(frozen=True)
class Sides:
    """Labels to learn from and labels to judge by, see `divide`, and the votes behind them.

    Attributes:
        controls: Of `semsim.learning.baselines.CHOICES`, what it is judged beside.
    """

    train: pd.DataFrame
    test: pd.DataFrame
    votes: pd.DataFrame | None = None
    controls: str = START
    shuffles: int = field(default_factory=lambda: SHUFFLES)


def run_sides(
    settings: TrainSettings,
    sides: Sides,
    place: Workplace,
    folder: Path,
    facts: Mapping[str, Any],
    report: Report = silent,
) -> dict[str, Any]:
    """Train on one side and judge by the other, once: what `folder` has is not done again.

    Returns `facts`, which go into the file as well, with n_originals, n_triplets, epochs, warnings,
    seconds and held_out.
    """
    done = folder / ARM_FILE
    if done.exists():  # what it is called now counts: the folder may have been moved
        return {**read_record(done, ARM_FORMAT, JobError), **facts}
    began = time.monotonic()
    order = Order(name=NAME, checkpoints=folder, settings=settings)
    if not (folder / STATE_FILE).exists():  # a checkpoint without a state or numbers is of no use
        order.checkpoint.unlink(missing_ok=True)
    outcome, held_out = _judged(order, sides, place, folder, report)
    row = {
        **facts,
        **{key: outcome[key] for key in ("n_originals", "n_triplets", "epochs")},
        "warnings": list(outcome["warnings"]),
        **{"seconds": time.monotonic() - began, "held_out": held_out},
    }
    write_record(done, ARM_FORMAT, row)
    (folder / STATE_FILE).unlink(missing_ok=True)
    return row


def sides_of(one: Variant, material: Material) -> Sides:
    """Return the labels that a training of a set learns from and is judged by."""
    split = divide(material.labels, one.hold_out)
    learned = within_budget(split.train, one.budget, one.settings)
    return Sides(train=learned, test=split.test, votes=material.votes, controls=one.controls)


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

    Raises `SettingsError` where the name is taken by a checkpoint or by a training under way,
    `DataError` where the labels allow no triplet or no split, or the weights to start from have
    seen votes of the test, and as `check_start`.
    """
    order = asked.order
    require_free(order.checkpoint)
    if jobs.live_jobs(root, KIND, {"asked": {"order": {"name": order.name}}}):
        raise SettingsError(f"{order.name!r} is being trained already; choose another name.")
    split = divide(material.labels, asked.hold_out)
    _check_sides(order.settings, Sides(train=split.train, test=split.test, votes=material.votes))
    check_judgeable(split.train, material.votes)
    job = TrainingJob(asked=asked, place=place, simulated=is_simulated(material.labels))
    return _queue(root, KIND, f"Train {order.name}", job, material)


def queue_ablation(
    plan: AblationPlan | LeaveOut, material: Material, place: Workplace, root: Path
) -> Job:
    """The job that will do `run_ablation`; not yet started.

    Raises `DataError` as the plan's `variants`, and of a study also where a training has nothing to
    learn from or less than its budget, or starts from weights that have seen votes of its test; and
    as `check_start`.
    """
    for one in plan.variants(material.labels):
        check_start(one.settings)
        if DataError not in plan.ONE_FAILS:
            _check_sides(one.settings, sides_of(one, material))
    job = (
        StudyJob(plan=plan, place=place)
        if isinstance(plan, AblationPlan)
        else LeaveOutJob(plan=plan, place=place)
    )
    return _queue(root, plan.KIND, plan.title, job, material)


def _check_sides(settings: TrainSettings, sides: Sides) -> None:
    check_start(settings)
    check_unseen(settings.weights, sides.test)
    check_judgeable(sides.test, sides.votes)
    learnable(take_stock(sides.train), settings.ordering)


def _queue(
    root: Path,
    kind: str,
    title: str,
    order: TrainingJob | StudyJob | LeaveOutJob,
    material: Material,
) -> Job:
    """The tables are kept in the job's folder, so that votes which come later change nothing."""
    order.place.judging()
    title += " on simulated votes" if is_simulated(material.labels) else ""
    tables = {_LABELS_FILE: material.labels}
    if material.votes is not None:
        tables[_VOTES_FILE] = material.votes
    return jobs.create(root, kind=kind, title=title, order=order, files=tables)


def name_of(job: Job) -> str:
    """The name of the SemSim that a job trains; "" where its order does not say."""
    try:
        return jobs.read_order(job, TrainingJob).asked.order.name
    except SemsimError:
        return ""


def do_training(order: TrainingJob, folder: Path, report: Report) -> dict[str, Any]:
    """Do what the training's job in `folder` was asked."""
    told = Course(folder, report)
    try:
        return train_and_judge(order.asked, material_in(folder), order.place, folder, told)
    finally:
        told.write()


def do_ablation(order: StudyJob | LeaveOutJob, folder: Path, report: Report) -> dict[str, Any]:
    """Do what the job of a set of trainings in `folder` was asked."""
    return run_ablation(order.plan, material_in(folder), order.place, folder, report)


def read_material(labels: Path, votes: Path | None) -> Material:
    """Tables from Parquet files; without the file of votes there are none."""
    found = read_labels(votes, "votes") if votes is not None and votes.exists() else None
    return Material(labels=typed(read_labels(labels)), votes=found)


def material_in(folder: Path) -> Material:
    """The tables that a job's folder keeps."""
    return read_material(folder / _LABELS_FILE, folder / _VOTES_FILE)


def read_materials(labels: Sequence[Path], votes: Sequence[Path]) -> Material:
    """The labels of several studies as one table, and their votes.

    Args:
        votes: None, or one file for each of `labels`, in their order.

    Raises:
        DataError: For another number, for tables that cannot be read and for studies that judge the
            same reconstruction.
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


def _part_of(report: Report, number: int, total: int, words: str) -> Report:
    """A report for one training, as a part of the set's; its curves would mix with the others'."""

    def tell(progress: Progress) -> None:
        share = progress.done / progress.total if progress.total else 0.0
        done = _STEPS * number + round(_STEPS * min(1.0, share))
        report(Progress(done, _STEPS * total, f"{words}{progress.note}"))

    return tell
