"""semsim-studio backup and restore: the whole database as a file."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from annotation.cli.console import DATA, Database, DataDir, address, told_errors
from annotation.store import backup


def back_up(
    out: Annotated[
        Path | None,
        typer.Option("--out", help="File to write.  [default: a new one in <data-dir>/backups]"),
    ] = None,
    data_dir: DataDir = DATA,
    database: Database = None,
) -> None:
    """Copy the database to a file, checked; people can go on labelling meanwhile."""
    with told_errors():
        source = backup.file_of(address(database, data_dir))
        if out is None:
            out = backup.back_up_into(source, data_dir / "backups", datetime.now(UTC))
        else:
            backup.back_up(source, out)
        typer.echo(f"{out} holds all of {source}")


def restore(
    file: Annotated[Path, typer.Argument(help="A backup.")],
    data_dir: DataDir = DATA,
    database: Database = None,
) -> None:
    """Put a backup in the place of the database; stop the server first."""
    with told_errors():
        target = backup.file_of(address(database, data_dir))
        kept = backup.restore(file, target, datetime.now(UTC))
        typer.echo(f"{target} is as it was in {file}")
        if kept is not None:
            typer.echo(f"What it replaced is {kept}")
