"""State of a database for who watches the server: its version, votes and claims."""

from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import Session

from annotation.domain import SlotState, VoteStatus
from annotation.store import engine as engines
from annotation.store import migrate, reading
from annotation.store.tables import SlotRow, VoteRow


@dataclass(frozen=True)
class Standing:
    """State of a database.

    address: without its password. there: whether it has tables. version, newest: of its tables,
    and of this program's.
    """

    address: str
    there: bool
    version: str | None
    newest: str | None


def standing(url: str) -> Standing:
    """Return the state of the database at `url`; raises `StoreError` if it cannot be used."""
    engine, file = engines.open_engine(url), engines.sqlite_file(url)
    newest = migrate.newest()
    if file is not None and not file.is_file():
        return Standing(str(file), False, None, newest)
    try:
        with engine.connect() as connection:
            migrate.require_known_version(connection)
            version = migrate.version_of(connection)
    except DatabaseError as error:
        raise engines.unusable(engine, error) from error
    finally:
        engine.dispose()
    where = str(file or engine.url.render_as_string(hide_password=True))
    return Standing(where, version is not None, version, newest)


class Counts(NamedTuple):
    """votes: how many, by every status there is. claims: pictures handed out and unanswered."""

    votes: dict[str, int]
    claims: int


@reading
def counts(tx: Session) -> Counts:
    """Count what there is in all studies together. Raises `StoreError`."""
    votes = select(VoteRow.status, func.count()).group_by(VoteRow.status)
    claims = select(func.count()).where(SlotRow.state == SlotState.LEASED)
    found = {str(one): n for one, n in tx.execute(votes)}
    return Counts({one.value: found.get(one, 0) for one in VoteStatus}, tx.scalar(claims) or 0)


@reading
def is_current(tx: Session) -> bool:
    """Tell whether the tables are those of this program. Raises `StoreError`."""
    return migrate.version_of(tx.connection()) == migrate.newest()
