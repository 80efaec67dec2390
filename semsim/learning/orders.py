"""Asking for a training: what it is made of, and the names that are taken."""

from dataclasses import dataclass
from pathlib import Path

from semsim.base.errors import JobError, SettingsError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job
from semsim.base.metric_spec import control_in
from semsim.base.storage.names import checked_name
from semsim.learning.settings import TrainSettings

KIND = "learn"
FACTS_FILE = "training.json"
STATE_FILE = "training.pt"  # in the job's folder while it is not done


@dataclass(frozen=True, kw_only=True)
class Order:
    """Order of a training, with the place of its outcome.

    name: the checkpoint's, without suffix. checkpoints: the folder it goes to.
    study: whose votes it learns from, for people to read.
    """

    name: str
    checkpoints: Path
    settings: TrainSettings
    study: str = ""

    @property
    def checkpoint(self) -> Path:
        """Path of the finished weights."""
        return checkpoint_path(self.checkpoints, self.name)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Facts that the list of trainings shows of one before it has a result."""

    name: str
    study: str
    simulated: bool


def checkpoint_path(checkpoints: Path, name: str) -> Path:
    """The file of the checkpoint called `name`; `SettingsError` where that cannot be a name."""
    checked = checked_name(name, "a checkpoint")
    if control_in(checked):
        raise SettingsError(
            f"{name!r} is the name of a control, not of a SemSim; leave out .{control_in(checked)}."
        )
    return Path(checkpoints) / f"{checked}.safetensors"


def control_path(checkpoint: Path, control: str) -> Path:
    """Return the path of a checkpoint's control of `CONTROLS`: beside the checkpoint."""
    return checkpoint.with_name(f"{checkpoint.stem}.{control}{checkpoint.suffix}")


def require_free(path: Path) -> Path:
    """`path`; `SettingsError` where there is a checkpoint already."""
    if path.exists():
        raise SettingsError(f"There is a checkpoint {path} already; choose another name.")
    return path


def read_facts(job: Job) -> Facts:
    """Read the facts of a training's job; `JobError` where its folder does not hold them."""
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
    if any(name_of(job) == name for job in jobs.live_jobs(root, KIND)):
        raise SettingsError(f"{name!r} is being trained already; choose another name.")
