"""What all commands share: where the data lies, how a database is opened, how errors are told.

Exit codes: 0 all was done, 1 something was found wrong by a dry run, 2 an error (said on stderr,
after "Error:").
"""

import argparse
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from annotation.errors import AnnotationError

if TYPE_CHECKING:
    from annotation.store import Store

ERROR = 2
DATA = Path(__file__).resolve().parents[2] / "data"  # the same folder as app.py's
STDOUT = Path("-")
DataDir = Annotated[Path, typer.Option("--data-dir", help="Folder of studies and their images.")]
Database = Annotated[
    str | None,
    typer.Option(
        "--database",
        help="sqlite:///FILE or postgresql+psycopg://…  [default: <data-dir>/studies.db]",
    ),
]


class Commands(TyperGroup):
    """A group whose usage errors are told like all others, in a line that begins with "Error:"."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        self._help_mode, self.rich_markup_mode = self.rich_markup_mode, None
        return super().main(*args, **kwargs)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.rich_markup_mode = getattr(self, "_help_mode", self.rich_markup_mode)
        super().format_help(ctx, formatter)


class ServerParser(argparse.ArgumentParser):
    """The same for app.py, with the options of this half."""

    def __init__(self, description: str | None) -> None:
        super().__init__(description=description)
        self.add_argument("--host", default="127.0.0.1", help="address to listen on")
        self.add_argument("--port", type=int, default=7860, help="port to listen on")
        self.add_argument("--local", action="store_true", help="no accounts, this machine only")
        self.add_argument("--data-dir", type=Path, default=DATA, help="where all data lies")
        self.add_argument("--database", help="SQLAlchemy URL; default: SQLite in the data folder")

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        raise failed(message)


def check_port(host: str, port: int) -> None:
    """End, saying so, where another server listens there already."""
    with suppress(OSError), socket.create_connection((host, port), timeout=1):
        raise failed(f"Port {port} is taken; choose another one with --port.")


@contextmanager
def told_errors() -> Iterator[None]:
    """Print what goes wrong inside after "Error:", and exit with `ERROR`."""
    try:
        yield
    except (AnnotationError, OSError) as error:
        raise failed(error) from error


def failed(why: object) -> SystemExit:
    """What to raise where something went wrong; `why` has been told."""
    typer.echo(f"Error: {why}", err=True)
    return SystemExit(ERROR)


@contextmanager
def opened(database: str | None, data_dir: Path, *, make: bool = False) -> "Iterator[Store]":
    """The database, errors told. make: whether to make one where there is none."""
    from annotation.store import Store  # sqlalchemy: half a second that --help does without

    with told_errors(), Store(address(database, data_dir), make=make) as store:
        yield store


def address(database: str | None, data_dir: Path) -> str:
    """Where the database is: the one that was named, else the SQLite file of the data folder."""
    return database or f"sqlite:///{data_dir / 'studies.db'}"
