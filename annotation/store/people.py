"""Inside one transaction: annotators and their sessions."""

import hashlib
import secrets
import uuid
from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from annotation.domain import Annotator, SignedIn
from annotation.store.tables import AnnotatorRow, EventRow, SessionRow


def annotator_named(
    tx: Session, study_id: str, name: str, now: datetime, *, simulated: bool = False
) -> Annotator:
    """The annotator of that name in the study, made if new; letter case does not matter."""
    known = tx.scalar(
        select(AnnotatorRow).where(
            AnnotatorRow.study_id == study_id, AnnotatorRow.name_key == name.casefold()
        )
    )
    return _value(known or _add(tx, study_id, name, now, simulated))


def _add(tx: Session, study_id: str, name: str, now: datetime, simulated: bool) -> AnnotatorRow:
    row = AnnotatorRow(
        id=str(uuid.uuid4()),
        study_id=study_id,
        name=name,
        name_key=name.casefold(),
        simulated=simulated,
        created=now,
        last_seen=now,
    )
    tx.add(row)
    tx.flush()
    tx.add(
        EventRow(
            study_id=study_id,
            kind="joined",
            annotator_id=row.id,
            at=now,
            data={"name": name, "simulated": simulated},
        )
    )
    return row


def open_session(tx: Session, annotator: Annotator, now: datetime) -> SignedIn:
    """A new session; its token is told once and kept only as a hash."""
    token = secrets.token_urlsafe(32)
    tx.add(SessionRow(token_sha256=_hash(token), annotator_id=annotator.id, created=now))
    return SignedIn(session_token=token, annotator=annotator)


def session_owner(tx: Session, token: str) -> Annotator | None:
    """Whose session `token` is, None if nobody's."""
    row = tx.scalar(
        select(AnnotatorRow)
        .join(SessionRow, SessionRow.annotator_id == AnnotatorRow.id)
        .where(SessionRow.token_sha256 == _hash(token))
    )
    return None if row is None else _value(row)


def close_session(tx: Session, token: str) -> None:
    """Forget a session."""
    tx.execute(delete(SessionRow).where(SessionRow.token_sha256 == _hash(token)))


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _value(row: AnnotatorRow) -> Annotator:
    return Annotator(id=row.id, study_id=row.study_id, name=row.name, simulated=row.simulated)
