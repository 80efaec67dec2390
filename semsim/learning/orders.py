"""Asking for a training: what it is made of, and the names that are taken."""

import re
from dataclasses import dataclass
from pathlib import Path

from semsim.errors import JobError, SettingsError
from semsim.jobs import folders as jobs
from semsim.jobs.folders import Job, JobState
from semsim.learning.settings import TrainSettings

KIND = "learn"
FACTS_FILE = "training.json"
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


def read_facts(job: Job) -> Facts:
    """What a training's job is about; `JobError` where its folder does not say."""
    content = jobs.read_json(job.folder / FACTS_FILE)
    try:
        return Facts(**content)
    except TypeError as error:
        raise JobError(f"{job.folder / FACTS_FILE} is not a training's: {error}.") from error


def name_of(job: Job) -> str:
    """The name of the SemSim a job trains; "" where its folder does not say."""
    try:
        return read_facts(job).name
    except JobError:
        return ""


def refuse_taken(name: str, root: Path) -> None:
    """`SettingsError` where a training below `root` that is not over has that name."""
    live = [job for job in jobs.list_jobs(root, KIND) if jobs.state(job) in _LIVE]
    if any(name_of(job) == name for job in live):
        raise SettingsError(f"{name!r} is being trained already; choose another name.")
