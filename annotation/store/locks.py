"""A lock for what several servers on one database must not do at the same time."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError

from annotation.errors import StoreError

LOCK = 726_002  # any number but that of `migrate.LOCK`, the same in every process
PATIENCE = 600.0  # seconds; making the built-in studies takes far less
# Of this schema: one database may hold several sets of tables.
_POSTGRESQL = text("SELECT pg_advisory_xact_lock(:lock, hashtext(current_schema()))")


@contextmanager
def alone(engine: Engine) -> Iterator[None]:
    """Until the end nobody else on this database gets past here, in no process; others wait.

    Transactions go on as usual meanwhile, also one's own. The lock ends with the process.
    Raises `StoreError` if others take longer than anybody should.
    """
    try:
        with _sqlite(engine) if engine.dialect.name == "sqlite" else _postgresql(engine):
            yield
    except (sqlite3.OperationalError, OperationalError) as error:
        raise StoreError(
            f"Another server on this database has not finished to start: {error}. Try again later."
        ) from error


@contextmanager
def _postgresql(engine: Engine) -> Iterator[None]:
    with engine.begin() as connection:
        connection.execute(text(f"SET LOCAL lock_timeout = '{int(PATIENCE)}s'"))
        connection.execute(_POSTGRESQL, {"lock": LOCK})
        yield


@contextmanager
def _sqlite(engine: Engine) -> Iterator[None]:
    # The database itself must stay free for transactions, so a file beside it is locked.
    beside = f"{engine.url.database}.lock"
    with closing(sqlite3.connect(beside, timeout=PATIENCE, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield
