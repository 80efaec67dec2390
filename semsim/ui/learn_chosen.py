"""The studies chosen on the page Train SemSim, taken as one, and the jobs that learn from them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from semsim.base.errors import DataError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job
from semsim.grid.subprocess_worker import apart
from semsim.learning.ablations_run import Material, Workplace
from semsim.learning.splits import join_labels, join_votes
from semsim.ui import ScienceContext

AND = " + "


def study_names(context: ScienceContext, ids: Sequence[str]) -> str:
    """Return the joint name of the chosen studies; raises `DataError` where one is no more."""
    names = {study.id: study.name for study in context.studies()}
    if not set(ids) <= set(names):
        raise DataError("This study does not exist any more; reload the page.")
    return AND.join(names[one] for one in ids)


def studies_behind(context: ScienceContext, together: str) -> dict[str, str]:
    """Names by id of the studies that `study_names` called `together`, those that still exist."""
    names = {study.id: study.name for study in context.studies()}
    one = {id_: name for id_, name in names.items() if name == together}
    return one or {id_: name for id_, name in names.items() if name in together.split(AND)}


def labels_of(context: ScienceContext, ids: Sequence[str]) -> pd.DataFrame:
    """Labels of all chosen studies; `DataError` where none is, or two judge the same images."""
    if not ids:
        raise DataError("Choose a study first; its votes are what SemSim learns from.")
    tables = [(study_names(context, [one]), context.labels(one)) for one in ids]
    return tables[0][1] if len(tables) == 1 else join_labels(tables)


def material_of(context: ScienceContext, ids: Sequence[str]) -> Material:
    """Labels and votes of all chosen studies; people of two studies count as different people."""
    labels = labels_of(context, ids)
    votes = {one: context.votes(one) for one in ids}
    joined = join_votes(votes) if len(votes) > 1 else votes[ids[0]]
    return Material(labels=labels, votes=joined)


def started(context: ScienceContext, queue: str, asked: Any, material: Material) -> Job:
    """Start what is asked for as a job;

    Args:
        queue: What makes it, of `semsim.learning.ablations_run`.

    Raises:
        SemsimError: Where it cannot be.
    """
    place = Workplace(
        checkpoints=Path(context.checkpoints).resolve(),
        scores=(context.data / "scores").resolve(),
        device=str(context.device),
    )
    where = f"semsim.learning.ablations_run:{queue}"
    job: Job = apart(where, asked, material, place, context.data / "jobs")
    jobs.start(job)
    return job
