"""What runs and what was trained, for the frame and the start page."""

from pathlib import Path
from typing import NamedTuple

from semsim.jobs import folders as jobs
from semsim.jobs.folders import Job
from semsim.metrics.provenance import semsims as semsims
from semsim.ui.jobpanel import share_done, words_for_seconds
from semsim.ui.markup import rooted

# The page below /studio/ that shows a kind of job; of others there is only the command line.
WATCHED = {
    "look": "pictures",
    "import": "pictures",
    "campaign": "reconstruct",
    "dataset": "reconstruct",
    "learn": "train",
    "learn-study": "train",
    "split": "split",
    "federated": "federated",
    "score": "compare",
    "weights": "compare",
    "comparison": "compare?tab=files",
}


class Live(NamedTuple):
    """A job that waits or runs: its title, the share that is done, time left, where one sees it."""

    words: str
    share: float
    left: str
    address: str


def running(root: Path) -> list[Live]:
    """The jobs below `root` that wait or run, newest first."""
    return [_live(job) for job in jobs.list_jobs(root) if jobs.state(job) in jobs.LIVE]


def _live(job: Job) -> Live:
    progress, seconds = jobs.latest(job), jobs.eta_seconds(job)
    left = "" if seconds is None else f"about {words_for_seconds(seconds)} left"
    share = 0.0 if progress is None else share_done(progress)
    where = rooted(f"/studio/{WATCHED.get(job.kind, '')}")
    return Live(job.title, share, left, where)
