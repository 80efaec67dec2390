"""Inside one transaction: what happens, in order."""

from datetime import datetime
from typing import Any

from sqlalchemy import insert
from sqlalchemy.orm import Session

from annotation.store.engine import author
from annotation.store.tables import EventRow, Table, VoteRow

VOTED = "vote"
UNDONE = "undo"
CHECKED = "check"  # answers to the questions on the instructions
# A statement on the table costs half of what a mapped class does.
_ADD = insert(Table.metadata.tables["event"]).inline()


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
    told = {**data, **author(tx)}
    who = {"annotator_id": person, "stimulus_id": item, "vote_id": vote}
    tx.add(EventRow(study_id=study_id, kind=kind, at=now, data=told, **who))


def log(tx: Session, kind: str, vote: VoteRow, now: datetime, **data: Any) -> None:
    """Say in an event that `vote` was given (`VOTED`) or taken back (`UNDONE`)."""
    tx.flush()  # the event refers to the vote, and what follows goes past the session
    told = {"vote_id": vote.id, "kind": kind, "at": now, "data": {**data, **author(tx)}}
    columns = "study_id", "annotator_id", "stimulus_id"
    tx.connection().execute(_ADD, told | {name: getattr(vote, name) for name in columns})
