"""Inside one transaction: room for one vote more on items whose K votes are split.

A split item gets a slot K in the transaction that splits it. When that is no longer so (a vote was
taken back, an annotator excluded) and the slot has not been given, it is withdrawn. One that has
been given stays, and the vote in it counts.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Integer, cast, delete, func, insert, select
from sqlalchemy.orm import Session

from annotation.design.assignment import wants_another
from annotation.domain import SlotState, VoteStatus
from annotation.store.engine import batches
from annotation.store.events import note
from annotation.store.specs import settings_of
from annotation.store.tables import SlotRow, StudyRow, VoteRow


def settle(tx: Session, study_id: str, items: Sequence[str], now: datetime) -> None:
    """Give each of `items`, whose stimuli the caller has locked, the extra slot it needs or none.

    Does nothing in a study without extra votes.
    """
    study = tx.get_one(StudyRow, study_id)
    if not settings_of(study).extra_vote:
        return
    for batch in batches(list(dict.fromkeys(items))):
        _settle(tx, study, batch, now)


def settle_votes(tx: Session, study_id: str, votes: Sequence[str], now: datetime) -> None:
    """`settle` the items of these votes."""
    for batch in batches(votes):
        of = select(VoteRow.stimulus_id).where(VoteRow.id.in_(batch))
        settle(tx, study_id, tx.scalars(of).all(), now)


def _settle(tx: Session, study: StudyRow, items: Sequence[str], now: datetime) -> None:
    k = study.votes_per_item
    votes = _counted(tx, items)
    extra = select(SlotRow.stimulus_id, SlotRow.state).where(
        SlotRow.stimulus_id.in_(items), SlotRow.k == k
    )
    there = dict(tx.execute(extra).all())
    split = {item for item in items if wants_another(*votes.get(item, (0, 0)), k)}
    free = {item for item, state in there.items() if state == SlotState.FREE}
    opened, withdrawn = sorted(split - set(there)), sorted(free - split)
    if opened:
        _open(tx, opened, k)
    if withdrawn:
        tx.execute(delete(SlotRow).where(SlotRow.stimulus_id.in_(withdrawn), SlotRow.k == k))
    for item in (*opened, *withdrawn):
        note(tx, study.id, "extra_vote", now, item=item, wanted=item in split)


def _counted(tx: Session, items: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Count for each item the counted votes that recognised it, and all counted votes."""
    rows = tx.execute(
        select(VoteRow.stimulus_id, func.sum(cast(VoteRow.recognised, Integer)), func.count())
        .where(VoteRow.stimulus_id.in_(items), VoteRow.status == VoteStatus.COUNTED)
        .group_by(VoteRow.stimulus_id)
    )
    return {item: (int(recognised), n) for item, recognised, n in rows}


def _open(tx: Session, items: Sequence[str], k: int) -> None:
    first = tx.execute(
        select(
            SlotRow.study_id, SlotRow.stimulus_id, SlotRow.source_id, SlotRow.salt, SlotRow.cell
        ).where(SlotRow.stimulus_id.in_(items), SlotRow.k == 0)
    )
    slots: list[dict[str, Any]] = [
        {**row, "k": k, "begun": 1, "state": SlotState.FREE, "tab": ""} for row in first.mappings()
    ]
    tx.execute(insert(SlotRow), slots)
