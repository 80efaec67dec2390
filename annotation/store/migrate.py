"""Bringing a database up to the tables of this version, each time it is opened."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, inspect, text

from annotation.errors import StoreError
from annotation.kept.places import files_of
from annotation.store.engine import writer

SCRIPTS = files_of("annotation.store") / "migrations"
LOCK = 726_001  # any number, the same in every process: two servers must not migrate at once


def upgrade(engine: Engine) -> None:
    """Upgrade in one transaction.

    Raises `StoreError` if the database is newer than this program or does not say how old it is.
    """
    with engine.connect() as connection:
        if version_of(connection) == newest():
            return
    with _migrating(engine) as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))
        require_known_version(connection)
        try:
            command.upgrade(_config(connection), "head")
        except CommandError as error:
            raise StoreError(
                f"The database has version {version_of(connection)!r}, which this program does not "
                "know. It was made by a newer one: update the program, or use another database."
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


@contextmanager
def _migrating(engine: Engine) -> Iterator[Connection]:
    """A transaction; SQLite checks references only at its end, as tables may be remade in it."""
    with writer(engine).connect() as connection:
        if engine.dialect.name != "sqlite":
            with connection.begin():
                yield connection
            return
        # Only outside of a transaction can this be changed, so past SQLAlchemy, which begins one.
        raw = connection.connection.cursor()
        raw.execute("PRAGMA foreign_keys = OFF")
        try:
            with connection.begin():
                yield connection
                _check_references(connection)
        finally:
            raw.execute("PRAGMA foreign_keys = ON")


def _check_references(connection: Connection) -> None:
    broken = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
    if broken is not None:
        raise StoreError(
            f"A row of the table {broken[0]} refers to one of {broken[2]} that does not exist. "
            "The database was left as it was; restore a backup or have it repaired."
        )


def version_of(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def script() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


@cache
def newest() -> str | None:
    """The version of this program's tables; every file of the migrations is read for it."""
    return script().get_current_head()
