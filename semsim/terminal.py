"""What all commands share: where the data lies, how errors, progress and tables are told.

Exit codes: 0 all was done, 1 some of it, 2 an error (said on stderr, after "Error:"), 3 none of it,
where a command tells that from an error, and 130 after Ctrl-C.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from semsim.errors import DataError, SemsimError, SettingsError
from semsim.progress import Progress, Report

if TYPE_CHECKING:
    import pandas as pd

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


def check_folder(out: Path) -> None:
    """`SettingsError` where results that are many files cannot go to `out`."""
    if out == STDOUT:
        raise SettingsError("--out is a folder here; give one, not -.")


def write_table(table: "pd.DataFrame", out: Path) -> None:
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


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns in line, two spaces apart."""
    lines = [list(header), *[list(row) for row in rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


class TerminalBar:
    """Shows reports on standard error: as a bar on a terminal, elsewhere a line a stage.

    title: what stands before the bar. unit: of its speed; "B" is written with k, M and G.
    A stage is what stands before the first colon of a note, such as an epoch; its line is the last
    note it had, with the share of the work that was done. So what puts a name before the notes of
    others sets it apart by a comma.
    """

    def __init__(self, title: str = "", unit: str = "it") -> None:
        self._title, self._unit = title, unit
        self._bar: Any = None
        self._last: Progress | None = None

    def __enter__(self) -> Report:
        return self._draw if sys.stderr.isatty() else self._log

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
        self._end_stage()

    def _draw(self, progress: Progress) -> None:
        if self._bar is None:  # what is resumed starts its bar, and its pace, where it is
            from tqdm import tqdm

            self._bar = tqdm(
                desc=self._title or None,
                total=progress.total,
                initial=progress.done,
                unit=self._unit,
                unit_scale=self._unit == "B",
                dynamic_ncols=True,
            )
        self._bar.total, self._bar.n = progress.total, progress.done
        self._bar.set_postfix_str(progress.note, refresh=True)

    def _log(self, progress: Progress) -> None:
        if self._last is not None and _stage(progress) != _stage(self._last):
            self._end_stage()
        self._last = progress

    def _end_stage(self) -> None:
        if self._last is not None and self._last.note:
            share = self._last.done / self._last.total if self._last.total else 1
            typer.echo(f"{share:.0%} {self._last.note}", err=True)
        self._last = None


def _stage(progress: Progress) -> str:
    return progress.note.partition(":")[0]
