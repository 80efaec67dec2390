"""Give a database the tables of this version, each time it is opened; tell which it has."""

from dataclasses import dataclass
from functools import cache

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import Session

from annotation.store.engine import open_engine, sqlite_file, unusable, writer
from semsim.base.errors import StoreError
from semsim.base.storage.places import files_of

SCRIPTS = files_of("annotation.store") / "migrations"
LOCK = 726_001  # any number, the same in every process: two servers must not migrate at once


def upgrade(engine: Engine) -> None:
    """Make what tables are missing, in one transaction.

    Raises `StoreError` if the database is newer than this program or does not say its version.
    """
    with engine.connect() as connection:
        if version_of(connection) == newest():
            return
    with writer(engine).begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))
        require_known_version(connection)
        try:
            command.upgrade(_config(connection), "head")
        except CommandError as error:
            raise StoreError(
                f"The database has version {version_of(connection)!r}, which this program does not "
                "know. It was made by a newer one, or by one before the first release: update the "
                "program, or use another database."
            ) from error


def require_known_version(connection: Connection) -> None:
    if version_of(connection) is None and inspect(connection).has_table("study"):
        raise StoreError(
            "The database has studies, but no row in the table alembic_version, which says of what "
            "version its tables are; it was left as it is. Restore a backup. If nothing else is "
            "missing and this program wrote it last, give it its version back: CREATE TABLE IF NOT "
            "EXISTS alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY); INSERT INTO "
            f"alembic_version VALUES ('{newest()}');"
        )


def version_of(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


@cache
def newest() -> str | None:
    """The version of this program's tables; every file of the migrations is read for it."""
    return ScriptDirectory.from_config(_config()).get_current_head()


def is_current(tx: Session) -> bool:
    """Tell whether the tables are those of this program."""
    return version_of(tx.connection()) == newest()


@dataclass(frozen=True)
class DatabaseState:
    """State of a database.

    Attributes:
        address: Without its password.
        there: Whether it has tables.
        version, newest: Of its tables, and of this program's.
    """

    address: str
    there: bool
    version: str | None
    newest: str | None


def standing(url: str) -> DatabaseState:
    """Return the state of the database at `url`; raises `StoreError` if it cannot be used."""
    engine, file = open_engine(url), sqlite_file(url)
    if file is not None and not file.is_file():
        return DatabaseState(str(file), False, None, newest())
    try:
        with engine.connect() as connection:
            require_known_version(connection)
            version = version_of(connection)
    except DatabaseError as error:
        raise unusable(engine, error) from error
    finally:
        engine.dispose()
    where = str(file or engine.url.render_as_string(hide_password=True))
    return DatabaseState(where, version is not None, version, newest())
