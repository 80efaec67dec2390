"""What all commands share: where the data lies, how a database is opened, how errors are told.

Exit codes: 0 all was done, 1 something was found wrong by a dry run, 2 an error (said on stderr,
after "Error:").
"""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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


class Parser(argparse.ArgumentParser):
    """The same for app.py."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        raise failed(message)


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
