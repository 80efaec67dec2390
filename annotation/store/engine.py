"""Opening a database so that writers queue instead of failing and a commit survives a power cut."""

import json
import logging
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.engine.interfaces import ExceptionContext
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, OperationalError, StatementError
from sqlalchemy.orm import Session

from annotation.errors import UnfitError
from semsim.base.errors import StoreError

log = logging.getLogger(__name__)
T = TypeVar("T")

BUSY_MS = 30_000
# uvicorn runs handlers on 40 threads; a smaller pool would make them wait for a connection.
POOL: dict[str, Any] = {"pool_size": 24, "max_overflow": 40, "pool_timeout": 30}
# Each connection to a file fills a cache of its own: few are kept, and of these the one last used
# is used next, so that the others' caches stay small. The rest are closed after their use.
FILE_POOL: dict[str, Any] = {**POOL, "pool_size": 6, "max_overflow": 58, "pool_use_lifo": True}
# Serialization failure, deadlock, and a key another transaction has just inserted.
RETRY_STATES = frozenset({"40001", "40P01", "23505"})
ATTEMPTS = 8
# What SQLite says of a file, folder or disk that does not let itself be written.
UNWRITABLE = frozenset(
    {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN}
)
LOCK = 726_002  # any number but that of `migrate.LOCK`, the same in every process
PATIENCE = 600.0  # seconds; making the built-in studies takes far less
# Of this schema: one database may hold several sets of tables.
_POSTGRESQL = text("SELECT pg_advisory_xact_lock(:lock, hashtext(current_schema()))")
_VACUUM = "VACUUM FULL annotator, event, slot, trial, vote"
_SETTLE = "VACUUM stimulus, slot"
BATCH = 5_000  # rows at once: databases limit how many values a statement may have
CANNOT_HOLD = "The database cannot hold what was sent"
DAMAGED = "The database holds a value that nobody can read"
LONGEST = 30.0  # seconds that a writer waits for its turn
MOST_PASSED = 20  # who yields lets no more than so many others by in a row
BUSY = (
    "The database could not do this: others have been writing for {:.0f} s. Nothing of it was "
    "kept; do the same again."
)
RESTORE = "It is damaged: restore a backup (semsim-studio restore), or have it repaired."


def open_engine(url: str, *, only_read: bool = False) -> Engine:
    """Make an engine on `url` (sqlite:///file or postgresql+psycopg://…); raises `StoreError`.

    Args:
        only_read: As `connected`, where the process may not write beside the file of SQLite.
    """
    parsed = _parsed(url)
    if parsed.get_backend_name() == "sqlite":
        return _open_sqlite(parsed, only_read)
    if parsed.drivername == "postgresql+psycopg":
        return create_engine(parsed, **POOL)
    raise StoreError(
        f"Databases of kind {parsed.drivername!r} are not supported. "
        "Use sqlite:///<file> or postgresql+psycopg://…"
    )


def unusable(engine: Engine, error: DBAPIError) -> StoreError:
    """Return the error to raise where a database does not let itself be opened."""
    asked = "" if engine.dialect.name == "sqlite" else " A password is taken from PGPASSWORD."
    return StoreError(
        f"The database {engine.url} cannot be used: {error.orig}. "
        f"Check the address, the rights and that the server runs.{asked}"
    )


def _parsed(url: str) -> URL:
    try:
        return make_url(url)
    except ArgumentError as error:
        raise StoreError(
            f"{url!r} is no database address. Expected sqlite:///<file> or "
            "postgresql+psycopg://user:password@host/database."
        ) from error


def sqlite_file(url: str) -> Path | None:
    """The file of an SQLite database, None for others; raises `StoreError` if `url` is neither."""
    parsed = _parsed(url)
    return Path(parsed.database or ":memory:") if parsed.get_backend_name() == "sqlite" else None


def connected(file: Path) -> sqlite3.Connection:
    """Connect to an SQLite file, for any thread; only to read it where its folder is read-only.

    SQLite makes files beside one that others may write. Where it cannot, no other process does:
    the file is all there is, unless what a writer left beside it is to be read too.
    """
    options: dict[str, Any] = {"timeout": BUSY_MS / 1000, "check_same_thread": False}
    effective = os.access in os.supports_effective_ids
    if os.access(file.parent, os.W_OK, effective_ids=effective) or not file.exists():
        return sqlite3.connect(file, **options)
    beside = file.with_name(f"{file.name}-wal")
    how = "mode=ro" if beside.exists() and beside.stat().st_size else "immutable=1"
    return sqlite3.connect(f"{file.absolute().as_uri()}?{how}", uri=True, **options)


def _open_sqlite(url: URL, only_read: bool) -> Engine:
    if url.database in (None, "", ":memory:"):
        raise StoreError("A study needs a database file; an in-memory database loses every vote.")
    opens: dict[str, Any] = {"connect_args": {"timeout": BUSY_MS / 1000}}
    if only_read:
        opens = {"creator": partial(connected, Path(str(url.database)))}
    engine = create_engine(url, **FILE_POOL, **opens)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    event.listen(engine, "handle_error", _forget_read_only)
    return engine


def _prepare_sqlite(connection, record) -> None:  # type: ignore[no-untyped-def]
    # Python's driver must not begin transactions by itself: it would begin them too late.
    connection.isolation_level = None
    for pragma in (
        f"busy_timeout = {BUSY_MS}",
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
        "cache_size = -32768",  # 32 MiB: a large study's indices stay in memory
    ):
        connection.execute(f"PRAGMA {pragma}")


def _forget_read_only(context: ExceptionContext) -> None:
    # A connection that was opened while the file could not be written stays read-only for good.
    if _is_unwritable(context.original_exception):
        context.is_disconnect = True  # this one and all others are opened anew


def _is_unwritable(error: BaseException | None) -> bool:
    # The low byte is the kind, the rest says more of it.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in UNWRITABLE


def _begin_sqlite(connection: Connection) -> None:
    # A writer takes the write lock before it reads, so that what it read stays true.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def writer(engine: Engine) -> Engine:
    """The same pool, for transactions that write."""
    return engine.execution_options(writes=True)


def reader(engine: Engine) -> Engine:
    """The same pool, for transactions that see one unchanging snapshot."""
    if engine.dialect.name == "postgresql":
        return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    return engine


def run(
    engine: Engine,
    work: Callable[[Session], T],
    attempts: int = ATTEMPTS,
    by: str | None = None,
    turn: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> T:
    """Do `work` in one transaction, from the start again when the database reports a lost race.

    Also where its connection turns out to be dead, which happens when the database was restarted:
    to ask each connection before its use would cost every transaction a round trip. And where
    PostgreSQL takes no further connection: who asked for a script of a page does not ask again.

    Args:
        by: The name of the account it is done with, for `author`.
        turn: What each attempt waits for.

    Raises:
        StoreError: If the database does not answer or holds what cannot be read.
        UnfitError: For a value that it cannot hold.
    """
    for attempt in range(1, attempts + 1):
        committing, refused = False, engine.dialect.name == "postgresql"
        try:
            session = Session(engine, expire_on_commit=False, info={"by": by})
            with turn(), session, session.begin():
                session.connection()
                refused = False
                result = work(session)
                committing = True
            return result
        except DBAPIError as error:
            # Whether a commit that broke off was carried out, nobody knows.
            dead = error.connection_invalidated and not committing
            lost = dead or refused or getattr(error.orig, "sqlstate", None) in RETRY_STATES
            if lost and attempt < attempts:
                time.sleep(0.005 * 2**attempt)
            elif _is_unwritable(error.orig):
                raise StoreError(
                    f"The database cannot be written at this moment ({error.orig}); this was not "
                    "acknowledged and can be sent again. The server goes on by itself once its "
                    "data folder can be written: see to the rights and the room on the disk."
                ) from error
            elif isinstance(error, OperationalError):
                raise StoreError(f"The database could not do this: {error.orig}") from error
            elif isinstance(error, DataError):
                raise UnfitError(f"{CANNOT_HOLD}: {error.orig}") from error
            else:
                raise
        except (StatementError, UnicodeEncodeError) as error:  # before it got to the database
            raise UnfitError(f"{CANNOT_HOLD}: {getattr(error, 'orig', error)}") from error
        except json.JSONDecodeError as error:
            raise StoreError(f"{DAMAGED}: {error}. {RESTORE}") from error
    raise StoreError(f"The database refused a transaction {attempts} times.")


def author(tx: Session) -> dict[str, str]:
    """Return what an event keeps of the account that caused it: {"by": name}; empty if none did."""
    by = tx.info.get("by")
    return {} if by is None else {"by": str(by)}


def scrub(engine: Engine) -> None:
    """Write the tables that hold people's words anew, without traces of what rows held before.

    Raises `StoreError` if others are too busy for it, which says what does it later.
    """
    by_hand = f"`{_VACUUM}` in psql"
    try:
        if engine.dialect.name == "sqlite":
            by_hand = f"`sqlite3 {engine.url.database} VACUUM` while the server is stopped"
            _scrub_sqlite(engine)
            return
        with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
            connection.exec_driver_sql(_VACUUM)
    except (sqlite3.OperationalError, OperationalError) as error:
        raise StoreError(
            f"Traces may be left in the files of the database: {error}. They go when anybody is "
            f"erased or a study deleted after this, or by {by_hand}."
        ) from error


def settle(engine: Engine) -> None:
    """Mark a new study's rows as seen by all; else the first readers do, many on the same pages.

    What costs them time, not correctness: a database that refuses is left as it is.
    """
    if engine.dialect.name != "postgresql":
        return
    try:
        with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
            connection.exec_driver_sql(_SETTLE)
    except DBAPIError as error:
        log.warning("The first who join may wait; `%s` in psql spares it: %s", _SETTLE, error.orig)


def _scrub_sqlite(engine: Engine) -> None:
    # Past SQLAlchemy: neither of the two may be part of a transaction.
    connection = engine.raw_connection()
    try:
        cursor = connection.cursor()
        cursor.execute("VACUUM")
        busy, *_ = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        connection.close()
    if busy:
        raise sqlite3.OperationalError("somebody was reading all the time")


@contextmanager
def alone(engine: Engine) -> Iterator[None]:
    """Hold the one lock of this database until the end; others wait for it, in any process.

    Transactions go on as usual meanwhile, also one's own. The lock ends with the process.
    Raises `StoreError` after `PATIENCE` seconds of waiting.
    """
    try:
        with _sqlite_lock(engine) if engine.dialect.name == "sqlite" else _postgresql_lock(engine):
            yield
    except (sqlite3.OperationalError, OperationalError) as error:
        raise StoreError(
            f"Another server on this database has not finished to start: {error}. Try again later."
        ) from error


@contextmanager
def _postgresql_lock(engine: Engine) -> Iterator[None]:
    with engine.begin() as connection:
        connection.execute(text(f"SET LOCAL lock_timeout = '{int(PATIENCE)}s'"))
        connection.execute(_POSTGRESQL, {"lock": LOCK})
        yield


@contextmanager
def _sqlite_lock(engine: Engine) -> Iterator[None]:
    # The database itself must stay free for transactions, so a file beside it is locked.
    beside = f"{engine.url.database}.lock"
    with closing(sqlite3.connect(beside, timeout=PATIENCE, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield


def batches(rows: Iterable[T]) -> Iterator[list[T]]:
    """`rows` as many at a time as one statement takes."""
    left = iter(rows)
    while batch := list(islice(left, BATCH)):
        yield batch


class Turns:
    """Turns of this process's threads at writing to an SQLite file.

    One at a time, in the order they came; those who yield come after all others. SQLite has one
    writer at a time and keeps no order among those who wait: each sleeps and tries again, the
    longer it has waited the less often, so that whoever came first may be served last.
    """

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._taken = False
        self._waiting: dict[bool, deque[threading.Event]] = {False: deque(), True: deque()}
        self._passed = 0  # how many went before the first of those who yield

    @contextmanager
    def turn(self, *, yields: bool = False) -> Iterator[None]:
        """Hold the only turn until the end; raises `StoreError` if it does not come."""
        self._take(yields)
        try:
            yield
        finally:
            self._pass_on()

    def _take(self, yields: bool) -> None:
        with self._changing:
            if not self._taken:
                self._taken = True
                return
            mine = threading.Event()
            self._waiting[yields].append(mine)
        if mine.wait(LONGEST):
            return
        with self._changing:
            if not mine.is_set():
                self._waiting[yields].remove(mine)
                raise StoreError(BUSY.format(LONGEST))

    def _pass_on(self) -> None:
        with self._changing:
            first, yielding = self._waiting[False], self._waiting[True]
            self._taken = bool(first or yielding)
            if yielding and (not first or self._passed >= MOST_PASSED):
                self._passed = 0
                yielding.popleft().set()
            elif first:
                self._passed += bool(yielding)
                first.popleft().set()
