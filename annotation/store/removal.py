"""Inside one transaction: taking a study out with all that belongs to it.

What stays is its row, which says that it is deleted, and one event, which says who did it, when,
and how many votes went. The study cannot be found any more.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import Table as SqlTable
from sqlalchemy import delete, func, or_, select
from sqlalchemy.orm import Session

from annotation.errors import NotFoundError
from annotation.store.events import note
from annotation.store.studies import DELETED
from annotation.store.tables import StudyRow, Table, VoteRow


def delete_study(tx: Session, study_id: str, now: datetime) -> int:
    """Delete everything of a study; returns how many votes it had. Raises `NotFoundError`."""
    row = tx.scalar(select(StudyRow).where(StudyRow.id == study_id).with_for_update())
    if row is None or row.status == DELETED:
        raise NotFoundError(f"There is no study {study_id!r}.")
    votes = tx.scalar(select(func.count()).where(VoteRow.study_id == study_id)) or 0
    before: dict[str, Any] = {"name": row.name, "votes": votes, "protocol": row.protocol}
    row.status = DELETED
    tx.flush()  # only the events of a deleted study may go
    belongs: dict[str, Any] = {
        StudyRow.__tablename__: select(StudyRow.id).where(StudyRow.id == study_id)
    }
    tables = [one for one in Table.metadata.sorted_tables if one.name != StudyRow.__tablename__]
    for table in tables:
        found = _rows(table, belongs)
        if found is not None:
            belongs[table.name] = found
    for table in reversed(tables):
        if table.name in belongs:
            key = next(iter(table.primary_key.columns))
            tx.execute(delete(table).where(key.in_(belongs[table.name])))
    row.name, row.spec = "", {}
    row.models, row.targets, row.judges, row.cells = [], {}, [], []
    row.password_salt = row.password_hash = None
    note(tx, study_id, "study_deleted", now, **before)
    return votes


def _rows(table: SqlTable, belongs: dict[str, Any]) -> Any:
    """Select the keys of a table's rows that belong to the study; None where none can."""
    if "study_id" in table.columns:
        of: list[Any] = [table.columns["study_id"].in_(belongs[StudyRow.__tablename__])]
    else:
        of = [
            key.parent.in_(belongs[key.column.table.name])
            for key in table.foreign_keys
            if key.column.table.name in belongs
        ]
    if not of:
        return None
    return select(next(iter(table.primary_key.columns))).where(or_(*of))
