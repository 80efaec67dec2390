"""Inside one transaction: what happens, in order."""

from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from annotation.store.engine import author
from annotation.store.tables import EventRow, VoteRow

VOTED = "vote"
UNDONE = "undo"


def note(
    tx: Session,
    study_id: str,
    kind: str,
    now: datetime,
    *,
    person: str | None = None,
    item: str | None = None,
    vote: str | None = None,
    **data: Any,
) -> None:
    """Say in an event what has happened to whom, and with whose account if with one."""
    tx.add(
        EventRow(
            study_id=study_id,
            kind=kind,
            annotator_id=person,
            stimulus_id=item,
            vote_id=vote,
            at=now,
            data={**data, **author(tx)},
        )
    )


def log(tx: Session, kind: str, vote: VoteRow, now: datetime, **data: Any) -> None:
    """Say in an event that `vote` was given (`VOTED`) or taken back (`UNDONE`)."""
    tx.flush()  # the event refers to the vote
    whose = {"person": vote.annotator_id, "item": vote.stimulus_id, "vote": vote.id}
    note(tx, vote.study_id, kind, now, **whose, **data)
