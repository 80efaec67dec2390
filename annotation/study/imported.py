"""Votes that others collected, as a study to look at: no annotator is asked anything in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from annotation.domain import AnnotatorRow, Step, StimulusKind, Study, StudyStatus, VoteStatus
from annotation.errors import NotFoundError
from annotation.spec import USUAL_TASK, HeadlineRule, StudySpec, Task
from annotation.tasks import KINDS
from annotation.votes.aggregate import scale_of
from semsim.base.errors import DataError
from semsim.base.sets.imports import import_names, imported_votes
from semsim.base.words import MODEL

PREFIX = "import:"  # of the ids of such studies


@dataclass(frozen=True, kw_only=True)
class Brought:
    """Votes with `base.columns.VOTE_COLUMNS` from elsewhere.

    Attributes:
        state: Changes when they do.
    """

    name: str
    votes: pd.DataFrame
    state: int


def choices(imports: Sequence[Path]) -> dict[str, tuple[str, str]]:
    """Return the name of each import in the folders `imports` and what it holds, by its study's id.

    It holds "votes" or "labels".
    """
    return {PREFIX + key: one for key, one in import_names(*imports).items()}


def find(imports: Sequence[Path], study_id: str) -> Brought:
    """The votes of such a study as they are now; raises `NotFoundError`."""
    try:
        name, votes, state = imported_votes(study_id.removeprefix(PREFIX), *imports)
    except DataError as error:
        raise NotFoundError(str(error)) from error
    return Brought(name=name, votes=votes, state=state)


def people_of(brought: Brought) -> list[AnnotatorRow]:
    """Return the annotators of those votes, by name; nothing can be done to them here."""
    votes = brought.votes[brought.votes["status"] == VoteStatus.COUNTED.value]
    then = datetime.fromtimestamp(brought.state / 1e9, UTC)
    rows = []
    for name, own in votes.groupby("annotator", sort=True):
        pace = own["rt_ms"].median()
        rows.append(
            AnnotatorRow(
                name=str(name),
                done=len(own),
                median_rt_ms=None if pd.isna(pace) else float(pace),
                none_rate=None,
                last_seen=then,
                simulated=bool(own["simulated"].any()),
                step=Step.DONE,
            )
        )
    return rows


def study_of(study_id: str, brought: Brought) -> Study:
    """A closed study of those votes, whose protocol is what their table says of it."""
    votes = brought.votes
    real = votes[votes["kind"] == StimulusKind.RECONSTRUCTION.value]
    decoys = votes[votes["kind"] == StimulusKind.DECOY.value]
    spec = _spec_of(brought)
    return Study(
        id=study_id,
        name=brought.name,
        task=spec.task,
        status=StudyStatus.CLOSED,
        spec=spec,
        token="",
        created=datetime.fromtimestamp(brought.state / 1e9, UTC),
        protected=False,
        dataset=", ".join(sorted(real["dataset"].unique())),
        models=tuple(sorted(real["model"].unique())),
        n_items=real["item"].nunique() + decoys["item"].nunique(),
        n_decoys=decoys["item"].nunique(),
        n_failed=0,
        protocol="",
    )


class _Collected(StudySpec):
    """The settings of a study that others have held, by whatever rules."""

    def _checks(self) -> tuple[tuple[bool, str], ...]:
        return ()


def _spec_of(brought: Brought) -> StudySpec:
    votes, scale = brought.votes, scale_of(brought.votes)
    settings: dict[str, Any] = {"task": USUAL_TASK, "repeat_rate": 0.0}
    if len(votes):
        first = votes.iloc[0]
        told = first["task"]  # by whoever made the table
        if told in KINDS and KINDS[told]().scale is None:
            settings["task"] = told
        settings["votes_per_item"] = max(1, int(first["votes_per_item"]))
        settings["label_originals"] = first["headline"] == HeadlineRule.AS_ORIGINAL_NAMED
    if scale is not None:
        levels = {"rating_levels": int(scale.levels), "rating_threshold": scale.threshold}
        settings |= {"task": Task("rating"), **levels}
    if settings.get("label_originals"):
        settings["headline"] = HeadlineRule.AS_ORIGINAL_NAMED
    told = str(votes["voter"].iloc[0]) if len(votes) and "voter" in votes else ""
    settings["voter"] = told.removeprefix(MODEL) if told.startswith(MODEL) else ""
    return _Collected(name=brought.name, simulated=bool(votes["simulated"].any()), **settings)
