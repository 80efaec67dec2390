"""Copies of an SQLite database that can be put back, made while people go on voting.

A copy gets its name only when it is complete, checked and on disk, so whatever lies in the folder
of backups can be restored. PostgreSQL has tools of its own for this.
"""

import filecmp
import logging
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from annotation.store import Store
from annotation.store.engine import connected, sqlite_file
from annotation.store.events import VOTED
from annotation.store.tables import EventRow
from semsim.base.errors import StoreError
from semsim.base.storage.atomic import whole

log = logging.getLogger(__name__)

EVERY_SECONDS = 15 * 60
EVERY_VOTES = 500
REST = 30  # times as long as the last backup took; before that no number of votes asks for another
KEEP = 20  # five hours of steady work
LOOK_SECONDS = 10.0  # how often it is asked whether a backup is due
STAMP = "%Y%m%dT%H%M%S%fZ"
NAMES = "studies-" + "[0-9]" * 8 + "T" + "[0-9]" * 12 + "Z.db"
OURS = frozenset({"alembic_version", "study", "slot", "vote", "event"})
PG_DUMP = (
    "Backups made here are of SQLite files only. "
    "Back a PostgreSQL database up with pg_dump and bring it back with pg_restore."
)


def file_of(url: str) -> Path:
    """The SQLite file at `url`; raises `StoreError` for other databases, naming their tools."""
    database = sqlite_file(url)
    if database is None:
        raise StoreError(PG_DUMP)
    return database


def back_up(database: Path, target: Path) -> Path:
    """Write a checked copy of the SQLite file `database` to `target`, which must not exist.

    No other user of the database is held up; the copy is of one moment. Raises `StoreError`.
    """
    _require(database)
    if target.exists():
        raise StoreError(f"{target} exists already; choose another name for the backup.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole(target, settled=True) as part, _alone(part):
            _copy(database, part)
            check(part)
    except OSError as error:
        raise StoreError(f"The backup {target} could not be written: {error}") from error
    return target


def back_up_into(database: Path, folder: Path, now: datetime, keep: int = KEEP) -> Path:
    """A new backup in `folder`, named after `now`; only the newest `keep` stay.

    One that is the same byte for byte gives way to the new one, so that a server at rest does not
    push out what is older. Raises `StoreError`.
    """
    made = back_up(database, folder / f"studies-{now.astimezone(UTC):{STAMP}}.db")
    older = [path for path in backups(folder) if path.name < made.name]
    if older and filecmp.cmp(older[-1], made, shallow=False):
        older.pop().unlink()
    for path in older[: max(0, len(older) - keep + 1)]:
        path.unlink()
    return made


def backups(folder: Path) -> list[Path]:
    """The backups in `folder`, oldest first; files with other names are not looked at."""
    return sorted(folder.glob(NAMES))


def check(path: Path) -> None:
    """Raise `StoreError` unless `path` is an intact SQLite database of this program."""
    try:
        with closing(_opened(path)) as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
            faults = [text for (text,) in connection.execute("PRAGMA integrity_check")]
            if connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
                faults.append("rows refer to others that are not there")
    except sqlite3.Error as error:
        raise StoreError(f"{path} is no intact SQLite database: {error}.") from error
    if not tables >= OURS:
        raise StoreError(
            f"{path} is no database of SemSim Studio: it lacks the tables "
            f"{', '.join(sorted(OURS - tables))}."
        )
    if faults != ["ok"]:
        raise StoreError(f"{path} is damaged: {'; '.join(faults)}. Use an older backup.")


def restore(backup: Path, database: Path, now: datetime) -> Path | None:
    """Make `database` what it was when `backup` was made; the file it replaces is kept.

    Returns where the replaced database lies now, None if there was none; `backup` itself is
    left as it is. Raises `StoreError` if it is damaged or foreign or newer than this program, and
    while a server uses `database`.
    """
    check(backup)
    try:
        database.parent.mkdir(parents=True, exist_ok=True)
        with whole(database, settled=True) as part, _alone(part):
            _copy(backup, part)
            Store(f"sqlite:///{part}").close()  # refuses tables of another version
            check(part)
            kept = _set_aside(database, now)
    except OSError as error:
        raise StoreError(f"{database} could not be restored: {error}") from error
    return kept


def _copy(source: Path, target: Path) -> None:
    try:
        with closing(_opened(source)) as old, closing(sqlite3.connect(target)) as new:
            old.backup(new)  # in one step: a backup in several starts anew after each vote
            new.execute("PRAGMA journal_mode = DELETE")  # one file, nothing beside it
    except sqlite3.Error as error:
        raise StoreError(f"The database {source} could not be copied: {error}.") from error


def _opened(path: Path) -> sqlite3.Connection:
    _require(path)  # SQLite would make an empty one
    return connected(path)


def _require(path: Path) -> None:
    if not path.is_file():
        raise StoreError(f"There is no database {path}.")


def _set_aside(database: Path, now: datetime) -> Path | None:
    there = database.exists()
    if there:
        _refuse_if_used(database)
    kept = database.with_name(f"{database.stem}-replaced-{now.astimezone(UTC):{STAMP}}.db")
    # Those are there if the database is damaged, or gone: SQLite would put what they hold
    # into whatever lies beside them.
    for ending in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.replace(f"{database}{ending}", f"{kept}{ending}")
    if there:
        try:
            os.link(database, kept)  # so that there is a database at every moment
        except OSError:  # a disk without a second name for a file
            os.replace(database, kept)
    return kept if there else None


def _refuse_if_used(database: Path) -> None:
    try:
        with closing(sqlite3.connect(database, timeout=0)) as connection:
            # Leaving the journal needs the file to itself: whoever has it open prevents that.
            connection.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            raise StoreError(
                f"{database} is in use. Stop the server, then restore the backup."
            ) from error
    except sqlite3.DatabaseError:
        pass  # damaged, which may be why somebody restores a backup


@contextmanager
def _alone(part: Path) -> Iterator[None]:
    """Leave none of the files that SQLite puts beside a database it works on."""
    try:
        yield
    finally:
        for ending in ("-wal", "-shm"):
            Path(f"{part}{ending}").unlink(missing_ok=True)


class BackupSchedule:
    """A thread that backs an SQLite database up while a server runs.

    A backup is made `every_seconds`, earlier after `every_votes` unless the last one took so long
    that more would keep the server busy, see `REST`, and when the schedule stops.
    What goes wrong is logged as an error and tried again when the next one is due.
    """

    def __init__(
        self,
        store: Store,
        folder: Path,
        *,
        every_seconds: float = EVERY_SECONDS,
        every_votes: int = EVERY_VOTES,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._store, self._database, self._folder = store, file_of(store.url), folder
        self._every_seconds, self._every_votes = every_seconds, every_votes
        self._look_seconds = look_seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="backups", daemon=True)

    def start(self) -> None:
        """Begin to look after the database."""
        self._thread.start()

    def stop(self) -> None:
        """Make a last backup; returns when it is on disk."""
        self._stopping.set()
        self._thread.join()
        self._back_up()

    def _run(self) -> None:
        since, last, took = time.monotonic(), self._last_event(), 0.0
        while not self._stopping.wait(self._look_seconds):
            if self._is_due(time.monotonic() - since, self._votes_after(last), took):
                since, last = time.monotonic(), self._last_event()
                self._back_up()
                took = time.monotonic() - since

    def _is_due(self, waited: float, votes: int, took: float) -> bool:
        """Seconds and votes since the last backup began, and the seconds it took."""
        asked_for = votes >= self._every_votes and waited >= REST * took
        return asked_for or waited >= self._every_seconds

    def _back_up(self) -> None:
        try:
            back_up_into(self._database, self._folder, datetime.now(UTC))
        except (StoreError, OSError) as error:
            log.error("No backup was made. %s", error)

    def _last_event(self) -> int:
        return self._ask(lambda tx: tx.scalar(select(func.max(EventRow.id))))

    def _votes_after(self, event: int) -> int:
        votes = select(func.count()).where(EventRow.id > event, EventRow.kind == VOTED)
        return self._ask(lambda tx: tx.scalar(votes))

    def _ask(self, question: Callable[[Session], int | None]) -> int:
        try:
            return self._store.read(question) or 0
        except (StoreError, SQLAlchemyError) as error:
            log.error("It cannot be told whether a backup is due. %s", error)
            return 0  # the time still can


@contextmanager
def scheduled_backups(store: Store, folder: Path) -> Iterator[None]:
    """Back `store` up into `folder` while the block runs, and once more when it ends.

    It also ends, with that last backup, when the process is asked to terminate (SIGTERM); so it
    must be entered in the main thread. For PostgreSQL it only says what to use instead.
    """
    if sqlite_file(store.url) is None:
        log.warning(PG_DUMP)
        yield
        return
    schedule = BackupSchedule(store, folder)
    before = signal.signal(signal.SIGTERM, _end)
    schedule.start()
    try:
        yield
    finally:
        schedule.stop()
        signal.signal(signal.SIGTERM, before)


def _end(number: int, frame: FrameType | None) -> None:
    # Python's own way to die of SIGTERM runs no `finally`. The shell's status for it is 128 + 15.
    raise SystemExit(128 + number)
