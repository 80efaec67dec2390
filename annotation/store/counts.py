"""What an open database holds, for whoever watches the server: its version, votes and claims."""

from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from annotation.domain import SlotState, VoteStatus
from annotation.store import migrate, reading
from annotation.store.tables import SlotRow, VoteRow


class Counts(NamedTuple):
    """votes: how many, by every status there is. claims: pictures handed out and unanswered."""

    votes: dict[str, int]
    claims: int


@reading
def counts(tx: Session) -> Counts:
    """What there is in all studies together. Raises `StoreError`."""
    votes = select(VoteRow.status, func.count()).group_by(VoteRow.status)
    claims = select(func.count()).where(SlotRow.state == SlotState.LEASED)
    found = {str(one): n for one, n in tx.execute(votes)}
    return Counts({one.value: found.get(one, 0) for one in VoteStatus}, tx.scalar(claims) or 0)


@reading
def is_current(tx: Session) -> bool:
    """Whether the tables are those of this program. Raises `StoreError`."""
    return migrate.version_of(tx.connection()) == migrate.newest()
