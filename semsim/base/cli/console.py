"""Print results, remarks and errors, the same for every command.

Exit codes: 0 all was done, 1 some of it, 2 an error, 3 none of it where a command tells that from
an error, and 130 after Ctrl-C. Errors go to standard error, after "Error:".
"""

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from semsim.base.errors import SemsimError
from semsim.base.storage.atomic import finite

ERROR = 2
STDOUT = Path("-")
DataOption = Annotated[Path, typer.Option("--data-dir", help="Data folder.")]
# Its parts, which `parts.toml` has by command, end its help.
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table")]
log = logging.getLogger("semsim")


def say(text: str, *, quiet: bool = False) -> None:
    """Print a remark, which is no result, on standard error; -q silences it.

    Args:
        quiet: Whether -q was given where the log, which goes to a file too, does not know it.
    """
    if not quiet and log.isEnabledFor(logging.WARNING):
        typer.echo(text, err=True)


def failed(why: object) -> SystemExit:
    """Print `why` after "Error:" and return what ends the program with `ERROR`."""
    plain = re.sub(r"\[Errno \d+\] ", "", str(why))  # numbers of the system help no reader
    typer.echo(f"Error: {plain}", err=True)
    return SystemExit(ERROR)


@contextmanager
def told_errors() -> Iterator[None]:
    """Print what goes wrong inside after "Error:", and exit with `ERROR`."""
    try:
        yield
    except (SemsimError, OSError) as error:
        log.info("Where the error below comes from", exc_info=error)
        raise failed(error) from error


def show(parts: Mapping[str, Any], text: str, as_json: bool) -> None:
    """Print what a command found: as one JSON object of its parts, else as `text`.

    In JSON a number that is not finite is null.

    Args:
        parts: Those that `parts.toml` has of the command: each the rows of a table, or one object.
    """
    if as_json:
        text = json.dumps(finite(parts), indent=2, ensure_ascii=False, default=str)
    if text:
        typer.echo(text)


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns in line, two spaces apart."""
    lines = [list(header), *[list(row) for row in rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def list_text(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a list as a table, or with -q its first column without a head."""
    if log.isEnabledFor(logging.WARNING):
        return text_table(header, rows)
    return "\n".join(row[0] for row in rows)
