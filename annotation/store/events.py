"""Inside one transaction: what happens, in order."""

from datetime import datetime
from typing import Any

from sqlalchemy import insert
from sqlalchemy.orm import Session

from annotation.store.engine import author
from annotation.store.tables import Table, VoteRow

VOTED = "vote"
UNDONE = "undo"
EXPORTED = "exported"  # by a researcher
EXTRA_VOTE = "extra_vote"  # one more is wanted of an item, or no longer
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
    tx.flush()  # the event may refer to what was added, and what follows goes past the session
    told = {"study_id": study_id, "kind": kind, "at": now, "data": {**data, **author(tx)}}
    who = {"annotator_id": person, "stimulus_id": item, "vote_id": vote}
    tx.connection().execute(_ADD, told | who)


def log(tx: Session, kind: str, vote: VoteRow, now: datetime, **data: Any) -> None:
    """Say in an event that `vote` was given (`VOTED`) or taken back (`UNDONE`)."""
    whose = {"person": vote.annotator_id, "item": vote.stimulus_id, "vote": vote.id}
    note(tx, vote.study_id, kind, now, **whose, **data)
