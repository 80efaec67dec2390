"""Options, progress bars and tables that commands share."""

import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from semsim.base.cli.console import STDOUT as STDOUT
from semsim.base.cli.console import DataOption as DataOption
from semsim.base.cli.console import Json as Json
from semsim.base.cli.console import list_text as list_text
from semsim.base.cli.console import say as say
from semsim.base.cli.console import show as show
from semsim.base.cli.console import text_table as text_table
from semsim.base.cli.console import told_errors as told_errors
from semsim.base.errors import DataError, SettingsError
from semsim.base.progress import Progress, Report, silent
from semsim.base.storage.atomic import whole
from semsim.base.storage.optional import arrow
from semsim.base.storage.places import DATA as DATA

if TYPE_CHECKING:
    import pandas as pd

# Options that many commands have.
CheckpointsOption = Annotated[Path, typer.Option(help="Folder of weights.")]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
WorkersOption = Annotated[
    int, typer.Option(min=0, help="Processes on this machine; 0: one a core.")
]
SchedulerOption = Annotated[str, typer.Option(help="Dask scheduler, as tcp://10.0.0.1:8786.")]
_TABLES = (".parquet", ".csv")


def show_told(parts: Mapping[str, Any], text: str, as_json: bool) -> None:
    """`show` for a text with more than its tables; with JSON it goes to standard error."""
    if as_json:
        say(text)
    show(parts, text, as_json)


def rows_of(table: "pd.DataFrame", /, **more: Any) -> list[dict[str, Any]]:
    """Return the rows of a table, for `show`; `more` precedes the columns of each."""
    return [{**more, **{str(k): v for k, v in row.items()}} for row in table.to_dict("records")]


def check_table(out: Path | None) -> None:
    """`SettingsError` where a table cannot go to `out`; asked before the work is done."""
    if out is not None and out != STDOUT and out.suffix not in _TABLES:
        raise SettingsError(
            f"--out ends in {' or '.join(_TABLES)}, or is - for standard output (as CSV); "
            f"got {out.name!r}."
        )
    if out is not None and out.suffix == ".parquet":
        arrow()


def check_folder(out: Path) -> None:
    """`SettingsError` where results that are many files cannot go to `out`."""
    if out == STDOUT:
        raise SettingsError("--out is a folder here; give one, not -.")


def write_table(table: "pd.DataFrame", out: Path) -> None:
    """Write `table` in the format of the ending of `out`; "-" is CSV on standard output.

    Raises `SettingsError` for another ending, `DataError` where it cannot be written.
    """
    check_table(out)
    if out == STDOUT:
        table.to_csv(sys.stdout, index=False)
        return
    try:
        with whole(out) as part:  # on a full disk nothing, or the older one, is there
            if out.suffix == ".csv":
                table.to_csv(part, index=False)
            else:
                table.to_parquet(part, index=False)
    except OSError as error:
        raise DataError(f"{out} cannot be written ({error}). Choose another --out.") from error


class TerminalBar:
    """Shows reports on standard error: as a bar on a terminal, elsewhere a line a stage.

    Attributes:
        title: What stands before the bar.
        unit: Of its speed; "B" is written with k, M and G. A stage is what stands before the first
            colon of a note, such as an epoch; its line is the last note it had, with the share of
            the work that was done. So what puts a name before the notes of others sets it apart by
            a comma. With -q nothing is shown.
    """

    def __init__(self, title: str = "", unit: str = "it") -> None:
        self._title, self._unit = title, unit
        self._bar: Any = None
        self._last: Progress | None = None

    def __enter__(self) -> Report:
        if not logging.getLogger("semsim").isEnabledFor(logging.WARNING):
            return silent
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
            say(f"{share:.0%} {self._last.note}")
        self._last = None


def _stage(progress: Progress) -> str:
    return progress.note.partition(":")[0]
