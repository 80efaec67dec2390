"""Inside one transaction: when annotators are shown trials, by all settings that were in force."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from annotation.design.quality import Schedule, rhythm, schedule
from annotation.domain import Annotator, TrialKind, VoteStatus
from annotation.spec import StudySpec
from annotation.store.specs import settings_of
from annotation.store.tables import ProtocolRow, VoteRow

# In this order where several are due at the same place.
MIXED = (TrialKind.CATCH, TrialKind.GOLD, TrialKind.REPEAT)


def schedules_of(
    tx: Session, annotator: Annotator, spec: StudySpec, version: int
) -> Mapping[TrialKind, Schedule]:
    """The schedule of each of `MIXED` for `annotator`; `spec` are the settings of that version."""
    versions = [(spec, 0)] if version == 1 else _versions(tx, annotator)
    return {kind: schedule(kind, annotator.seat, versions) for kind in MIXED}


def _versions(tx: Session, annotator: Annotator) -> Sequence[tuple[StudySpec, int]]:
    """The settings that brought other trials, each with how many votes that count came before."""
    query = select(ProtocolRow).where(ProtocolRow.study_id == annotator.study_id)
    rows = tx.scalars(query.order_by(ProtocolRow.version)).all()
    known = [(settings_of(row), row.at) for row in rows]
    others = [
        (spec, _votes_before(tx, annotator, at))
        for (before, _), (spec, at) in pairwise(known)
        if any(rhythm(spec, kind) != rhythm(before, kind) for kind in MIXED)
    ]
    return [(known[0][0], 0), *others]


def _votes_before(tx: Session, annotator: Annotator, moment: datetime) -> int:
    # Of items, as one that was answered again later has been given before all the same; none that
    # became surplus, as trials are due by votes that count.
    query = select(func.count(VoteRow.stimulus_id.distinct())).where(
        VoteRow.annotator_id == annotator.id,
        VoteRow.trial_id.is_(None),
        VoteRow.status != VoteStatus.SURPLUS,
        VoteRow.server_ts < moment,
    )
    return tx.scalar(query) or 0
