"""What all commands share: where the data lies, how errors are told, and how a table is written.

Exit codes: 0 all was done, 1 some of it, 2 an error (said on stderr, after "Error:"), 3 none of it,
where a command tells that from an error, and 130 after Ctrl-C.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import typer
from typer.core import TyperGroup

from semsim.errors import DataError, SemsimError, SettingsError

SOME, ERROR, NONE = 1, 2, 3
DATA = Path(__file__).resolve().parents[1] / "data"  # the same folder as app.py's
STDOUT = Path("-")
_TABLES = (".parquet", ".csv")


class Commands(TyperGroup):
    """A group whose usage errors are told like all others, in a line that begins with "Error:"."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        self._help_mode, self.rich_markup_mode = self.rich_markup_mode, None
        return super().main(*args, **kwargs)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.rich_markup_mode = getattr(self, "_help_mode", self.rich_markup_mode)
        super().format_help(ctx, formatter)


@contextmanager
def told_errors() -> Iterator[None]:
    """Print what goes wrong inside after "Error:", and exit with `ERROR`."""
    try:
        yield
    except (SemsimError, OSError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(ERROR) from error


def check_table(out: Path | None) -> None:
    """`SettingsError` where a table cannot go to `out`; asked before the work is done."""
    if out is not None and out != STDOUT and out.suffix not in _TABLES:
        raise SettingsError(
            f"--out ends in {' or '.join(_TABLES)}, or is - for standard output (as CSV); "
            f"got {out.name!r}."
        )


def write_table(table: pd.DataFrame, out: Path) -> None:
    """Write `table` as what the ending of `out` says; "-" is CSV on standard output.

    Raises `SettingsError` for another ending, `DataError` where it cannot be written.
    """
    check_table(out)
    if out == STDOUT:
        table.to_csv(sys.stdout, index=False)
        return
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if out.suffix == ".csv":
            table.to_csv(out, index=False)
        else:
            table.to_parquet(out, index=False)
    except OSError as error:
        raise DataError(f"{out} cannot be written ({error}). Choose another --out.") from error
