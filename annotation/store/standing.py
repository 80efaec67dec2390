"""How a database stands, found without changing it."""

from dataclasses import dataclass

from sqlalchemy.exc import DatabaseError

from annotation.store import engine as engines
from annotation.store import migrate


@dataclass(frozen=True)
class Standing:
    """How a database stands.

    address: without its password. there: whether it has tables. version, newest: of its tables,
    and of this program's.
    """

    address: str
    there: bool
    version: str | None
    newest: str | None


def standing(url: str) -> Standing:
    """How the database at `url` stands; `StoreError` where it is none that can be used."""
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
