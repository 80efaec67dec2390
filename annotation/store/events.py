"""Inside one transaction: the event that goes with a vote."""

from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from annotation.store.tables import EventRow, VoteRow

VOTED = "vote"
UNDONE = "undo"


def log(tx: Session, kind: str, vote: VoteRow, now: datetime, **data: Any) -> None:
    """Say in an event that `vote` was given (`VOTED`) or taken back (`UNDONE`)."""
    tx.flush()  # the event refers to the vote
    tx.add(
        EventRow(
            study_id=vote.study_id,
            kind=kind,
            annotator_id=vote.annotator_id,
            stimulus_id=vote.stimulus_id,
            vote_id=vote.id,
            at=now,
            data=data,
        )
    )
