"""What an open database holds, for whoever watches the server: its version, votes and claims."""

from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from annotation.domain import SlotState
from annotation.store import migrate, reading
from annotation.store.tables import SlotRow, VoteRow


class Counts(NamedTuple):
    """votes: how many by their status. claims: pictures that are with somebody, unanswered."""

    votes: dict[str, int]
    claims: int


@reading
def counts(tx: Session) -> Counts:
    """What there is in all studies together. Raises `StoreError`."""
    votes = select(VoteRow.status, func.count()).group_by(VoteRow.status)
    claims = select(func.count()).where(SlotRow.state == SlotState.LEASED)
    return Counts({str(one): n for one, n in tx.execute(votes)}, tx.scalar(claims) or 0)


@reading
def is_current(tx: Session) -> bool:
    """Whether the tables are those of this program. Raises `StoreError`."""
    return migrate.version_of(tx.connection()) == migrate.script().get_current_head()
