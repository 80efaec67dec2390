"""Asking for a training: what it is made of, and the job it becomes."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import pandas as pd

from semsim.errors import JobError, SettingsError
from semsim.jobs import folders as jobs
from semsim.jobs.folders import Job, JobState
from semsim.learning.initial import check_initial
from semsim.learning.settings import TrainSettings
from semsim.learning.triplets import is_simulated, learnable, take_stock

KIND = "learn"
_FACTS_FILE = "training.json"
_LABELS_FILE = "labels.parquet"
_LIVE = {JobState.QUEUED, JobState.RUNNING}
_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,79}")


@dataclass(frozen=True, kw_only=True)
class Order:
    """What to train, and where the outcome goes.

    name: the checkpoint's, without suffix. checkpoints: the folder it goes to.
    study: whose votes it learns from, for people to read.
    """

    name: str
    checkpoints: Path
    settings: TrainSettings
    study: str = ""

    @property
    def checkpoint(self) -> Path:
        """Where the finished weights go."""
        return checkpoint_path(self.checkpoints, self.name)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the list of trainings shows of one before it has a result."""

    name: str
    study: str
    simulated: bool


def checkpoint_path(checkpoints: Path, name: str) -> Path:
    """The file of the checkpoint called `name`; `SettingsError` where that cannot be a name."""
    if not _NAME.fullmatch(name):
        raise SettingsError(
            f"{name!r} cannot name a checkpoint: use up to 80 letters, digits, '.', '_' and '-', "
            "beginning with a letter or digit."
        )
    return Path(checkpoints) / f"{name}.safetensors"


def free_checkpoint_path(checkpoints: Path, name: str) -> Path:
    """As `checkpoint_path`; `SettingsError` where a checkpoint of that name exists already."""
    path = checkpoint_path(checkpoints, name)
    if path.exists():
        raise SettingsError(f"There is a checkpoint {path} already; choose another name.")
    return path


def queue_training(order: Order, labels: pd.DataFrame, root: Path) -> Job:
    """The job that will carry out `order` below `root`; not yet started.

    labels: see `take_stock`; kept in the job's folder, so that votes which come later do not
        change a training that is resumed.
    Raises `SettingsError` where the name is taken by a checkpoint or by a training under way,
    `DataError` where the labels allow no triplet, `WeightsError` where the weights to start from
    are missing.
    """
    free_checkpoint_path(order.checkpoints, order.name)
    if any(name_of(job) == order.name for job in _live_trainings(root)):
        raise SettingsError(f"{order.name!r} is being trained already; choose another name.")
    check_initial(order.settings.backbone, order.settings.weights)
    learnable(take_stock(labels), order.settings.ordering)
    facts = Facts(name=order.name, study=order.study, simulated=is_simulated(labels))
    return jobs.create(
        root,
        kind=KIND,
        title=f"Train {order.name}" + (" on simulated votes" if facts.simulated else ""),
        argv=learn_argv(order, Path("{job}") / _LABELS_FILE),
        files={_LABELS_FILE: labels, _FACTS_FILE: asdict(facts)},
    )


def read_facts(job: Job) -> Facts:
    """What a training's job is about; `JobError` where its folder does not say."""
    content = jobs.read_json(job.folder / _FACTS_FILE)
    try:
        return Facts(**content)
    except TypeError as error:
        raise JobError(f"{job.folder / _FACTS_FILE} is not a training's: {error}.") from error


def name_of(job: Job) -> str:
    """The name of the SemSim a job trains; "" where its folder does not say."""
    try:
        return read_facts(job).name
    except JobError:
        return ""


def learn_argv(order: Order, labels: Path) -> list[str]:
    """The arguments after `python -m semsim` that carry out `order`, every setting spelt out."""
    argv = ["learn", "--labels", str(labels), "--name", order.name]
    argv += ["--checkpoints", str(order.checkpoints), "--study", order.study]
    for field in fields(TrainSettings):
        argv += _flag(field.name, getattr(order.settings, field.name))
    return argv


def _live_trainings(root: Path) -> list[Job]:
    return [job for job in jobs.list_jobs(root, KIND) if jobs.state(job) in _LIVE]


def _flag(name: str, value: object) -> Sequence[str]:
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    if isinstance(value, tuple):
        return [f"--{flag}", ",".join(str(part) for part in value)]
    return [f"--{flag}", str(value)]
