"""Inside one transaction: what has been answered so far. Nothing here changes anything."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, String, cast, distinct, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from annotation.domain import (
    NONE,
    Annotator,
    AnnotatorProgress,
    AnnotatorRow,
    AnnotatorStatus,
    SlotState,
    StimulusKind,
    Study,
    StudyProgress,
    Task,
    VoteStatus,
)
from annotation.errors import NotAllowedError, NotFoundError
from annotation.images import path_of
from annotation.store import tables
from annotation.store.ballots import VOTED
from annotation.store.slots import FREE, LEASED, has_held
from annotation.store.studies import study_of
from annotation.store.tables import (
    CandidateListRow,
    EventRow,
    SlotRow,
    SourceRow,
    StimulusRow,
    StudyRow,
    VoteRow,
)


@dataclass(frozen=True, kw_only=True)
class Stimulus:
    """What a simulated annotator answers from."""

    item: str
    candidates: tuple[str, ...]
    probabilities: Mapping[str, float]


def study_progress(tx: Session, study_id: str) -> StudyProgress:
    """How many items have how many counted votes, and how far each annotator is."""
    study = study_of(tx, study_id)
    return StudyProgress(
        n_items=study.n_items,
        coverage=_coverage(tx, study),
        annotators=_annotator_rows(tx, study),
    )


def _coverage(tx: Session, study: Study) -> list[int]:
    done = (
        select(func.count().label("votes"))
        .where(SlotRow.study_id == study.id, SlotRow.state == SlotState.DONE)
        .group_by(SlotRow.stimulus_id)
        .subquery()
    )
    coverage = [0] * (study.spec.votes_per_item + 1)
    for votes, items in tx.execute(select(done.c.votes, func.count()).group_by(done.c.votes)):
        coverage[votes] = items
    coverage[0] = study.n_items - sum(coverage)
    return coverage


def _annotator_rows(tx: Session, study: Study) -> list[AnnotatorRow]:
    of = {row.annotator_id: row for row in tx.execute(_summaries(study))}
    people = tx.scalars(
        select(tables.AnnotatorRow)
        .where(tables.AnnotatorRow.study_id == study.id)
        .order_by(tables.AnnotatorRow.created, tables.AnnotatorRow.name_key)
    )
    return [_annotator_row(study.task, person, of.get(person.id)) for person in people]


def _summaries(study: Study) -> Select[*tuple[Any, ...]]:
    """One row an annotator with votes: the database has a hundred thousand to count."""
    return (
        select(
            VoteRow.annotator_id,
            func.count().filter(VoteRow.status == VoteStatus.COUNTED).label("counted"),
            func.count().filter(VoteRow.status == VoteStatus.EXCLUDED).label("excluded"),
            func.count().filter(VoteRow.answer != "").label("answered"),  # blank: person erased
            func.count().filter(VoteRow.answer == NONE).label("none"),
            # SQLite has no median, and ranking rows for one takes it three times as long as this.
            func.aggregate_strings(cast(VoteRow.rt_ms, String), " ").label("times"),
        )
        .where(
            VoteRow.study_id == study.id,
            VoteRow.status.in_((VoteStatus.COUNTED, VoteStatus.EXCLUDED)),
        )
        .group_by(VoteRow.annotator_id)
    )


def _annotator_row(task: Task, person: tables.AnnotatorRow, votes: Row[Any] | None) -> AnnotatorRow:
    said = votes is not None and votes.answered > 0 and task is Task.RECOGNITION
    return AnnotatorRow(
        name=person.name,
        done=votes.counted if votes else 0,
        median_rt_ms=_median([float(rt) for rt in (votes.times or "").split()]) if votes else None,
        none_rate=votes.none / votes.answered if votes and said else None,
        last_seen=person.last_seen,
        simulated=person.simulated,
        status=AnnotatorStatus(person.status),
        excluded=votes.excluded if votes else 0,
    )


def _median(times: list[float]) -> float | None:
    return median(times) if times else None


def annotator_progress(tx: Session, annotator: Annotator, now: datetime) -> AnnotatorProgress:
    """How many items `annotator` has answered and may still answer."""
    times = tx.scalars(
        select(VoteRow.rt_ms).where(
            VoteRow.annotator_id == annotator.id, VoteRow.status == VoteStatus.COUNTED
        )
    ).all()
    left = _left(tx, annotator, now)
    return AnnotatorProgress(
        done=len(times),
        left=left,
        total=len(times) + left,
        median_rt_ms=_median([rt_ms for rt_ms in times if rt_ms is not None]),
    )


def _left(tx: Session, annotator: Annotator, now: datetime) -> int:
    study = tx.get_one(StudyRow, annotator.study_id)
    own, last = aliased(SlotRow), aliased(SlotRow)
    not_held = ~exists().where(
        own.stimulus_id == SlotRow.stimulus_id, own.annotator_id == annotator.id
    )
    not_roomy = ~exists().where(
        last.study_id == SlotRow.study_id,
        last.stimulus_id == SlotRow.stimulus_id,
        last.k == study.votes_per_item - 1,
        last.state == FREE,
    )
    leased = SlotRow.state == LEASED
    # Slots are taken in the order of k, so an item has a free slot exactly when its last is free.
    roomy = (SlotRow.state == FREE) & (SlotRow.k == study.votes_per_item - 1)
    return (
        _count(tx, annotator, leased, SlotRow.annotator_id == annotator.id)
        + _count(tx, annotator, roomy, not_held)
        + _count(tx, annotator, leased, SlotRow.lease_until < now, not_held, not_roomy)
    )


def _count(tx: Session, annotator: Annotator, *where: ColumnElement[bool]) -> int:
    query = select(func.count(distinct(SlotRow.stimulus_id)))
    return tx.scalar(query.where(SlotRow.study_id == annotator.study_id, *where)) or 0


def image_of(tx: Session, annotator: Annotator, token: str) -> Path:
    """The image behind an opaque token, if `annotator` holds or has held its item."""
    row = tx.execute(
        select(StimulusRow.id, StimulusRow.token, StimulusRow.sha256, SourceRow.sha256)
        .join(SourceRow, SourceRow.id == StimulusRow.source_id)
        .where(
            StimulusRow.study_id == annotator.study_id,
            or_(StimulusRow.token == token, StimulusRow.original_token == token),
        )
    ).one_or_none()
    if row is None:
        raise NotFoundError("There is no such image in this study.")
    item, shown_token, shown, original = row
    if not has_held(tx, annotator, item):
        raise NotAllowedError("This image belongs to an item that was not given to you.")
    study = tx.get_one(StudyRow, annotator.study_id)
    return path_of(Path(study.images), shown if token == shown_token else original)


def last_event(tx: Session, study_id: str) -> int:
    """The number of the last thing that happened in a study, 0 if nothing has."""
    last = select(func.max(EventRow.id)).where(EventRow.study_id == study_id)
    return tx.scalar(last) or 0


def item_rows(tx: Session, study: Study) -> list[dict[str, Any]]:
    """One row a reconstruction, decoys left out, in the order they were made."""
    rows = tx.execute(
        select(
            StimulusRow.id.label("item"),
            StimulusRow.model,
            StimulusRow.attack,
            SourceRow.image_id,
            SourceRow.class_name,
            SourceRow.sha256.label("original"),
            StimulusRow.sha256.label("reconstruction"),
            StimulusRow.attacked_sha256.label("attacked"),
        )
        .join(SourceRow, SourceRow.id == StimulusRow.source_id)
        .where(StimulusRow.study_id == study.id, StimulusRow.kind == StimulusKind.RECONSTRUCTION)
        .order_by(StimulusRow.model, SourceRow.image_id)
    )
    return [{**row, **_constants(study)} for row in rows.mappings()]


def stimulus_rows(tx: Session, study: Study) -> list[dict[str, Any]]:
    """One row an item of any kind: what is shown, beside what, and which classes are offered."""
    rows = tx.execute(
        select(
            StimulusRow.id.label("item"),
            StimulusRow.kind,
            StimulusRow.model,
            StimulusRow.attack,
            SourceRow.image_id,
            SourceRow.class_name,
            SourceRow.sha256.label("original"),
            StimulusRow.sha256.label("shown"),
            CandidateListRow.classes.label("candidates"),
        )
        .join(SourceRow, SourceRow.id == StimulusRow.source_id)
        .outerjoin(CandidateListRow, CandidateListRow.source_id == SourceRow.id)
        .where(StimulusRow.study_id == study.id)
        .order_by(StimulusRow.model, SourceRow.image_id, StimulusRow.id)
    )
    return [dict(row) for row in rows.mappings()]


def vote_rows(tx: Session, study: Study) -> list[dict[str, Any]]:
    """One row a vote, whatever became of it, in the order they came."""
    people = tables.AnnotatorRow
    rows = tx.execute(
        select(
            VoteRow.stimulus_id.label("item"),
            StimulusRow.kind,
            StimulusRow.model,
            StimulusRow.attack,
            SourceRow.image_id,
            SourceRow.class_name,
            people.name.label("annotator"),
            people.simulated,
            VoteRow.answer,
            VoteRow.reason,
            VoteRow.recognised,
            VoteRow.rt_ms,
            VoteRow.client_ts,
            VoteRow.server_ts,
            VoteRow.status,
            VoteRow.id.label("vote_id"),
        )
        .join(StimulusRow, StimulusRow.id == VoteRow.stimulus_id)
        .join(SourceRow, SourceRow.id == StimulusRow.source_id)
        .join(people, people.id == VoteRow.annotator_id)
        .join(EventRow, (EventRow.vote_id == VoteRow.id) & (EventRow.kind == VOTED))
        .where(VoteRow.study_id == study.id)
        .order_by(EventRow.id)
    )
    return [{**row, **_constants(study)} for row in rows.mappings()]


def _constants(study: Study) -> dict[str, Any]:
    return {
        "study": study.name,
        "task": study.task.value,
        "dataset": study.dataset,
        "votes_per_item": study.spec.votes_per_item,
        "headline": study.spec.headline.value,
    }


def stimuli(tx: Session, study_id: str) -> dict[str, Stimulus]:
    """What simulated annotators answer from, by item; only of items with probabilities.

    In the order of model and image, which unlike the items' names is the same in every copy.
    """
    rows = tx.execute(
        select(StimulusRow.id, CandidateListRow.classes, StimulusRow.probabilities)
        .join(SourceRow, SourceRow.id == StimulusRow.source_id)
        .join(CandidateListRow, CandidateListRow.source_id == SourceRow.id)
        .where(StimulusRow.study_id == study_id)
        .order_by(StimulusRow.model, SourceRow.image_id)
    )
    return {
        item: Stimulus(item=item, candidates=tuple(classes), probabilities=probabilities)
        for item, classes, probabilities in rows
        if probabilities is not None
    }
