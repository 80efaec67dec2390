"""Jobs on a terminal: the bar that is drawn, and what is said where one is stopped."""

import shlex
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import typer
from tqdm import tqdm

from semsim.jobs.folders import Job, run_as_job
from semsim.progress import Progress, Report


def carry_out(
    job: Job, work: Callable[[Report], dict[str, Any]], shown: AbstractContextManager[Report]
) -> dict[str, Any] | None:
    """Do `work` as `job`, telling `shown` how far it is; None where it was stopped as asked.

    Ctrl-C ends the command with 130, after the command that goes on has been printed.
    """
    try:
        with shown as show:
            outcome = run_as_job(job.folder, work, also=show)
    except KeyboardInterrupt:
        again = shlex.join([*job.argv, "--job", str(job.folder)])
        typer.echo(f"\nStopped. To go on: python -m semsim {again}", err=True)
        raise typer.Exit(130) from None
    if outcome is None:
        typer.echo("Stopped as asked; it can be resumed.", err=True)
    return outcome


class TerminalBar:
    """Shows reports as a bar on a terminal; what goes to a log instead is up to who inherits."""

    def __init__(self, title: str) -> None:
        self._title, self._wrote = title, ""
        self._bar: Any = None

    def __enter__(self) -> Report:
        return self._draw if sys.stderr.isatty() else self.log

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def _draw(self, progress: Progress) -> None:
        if self._bar is None:  # what is resumed starts its bar, and its pace, where it is
            self._bar = tqdm(
                desc=self._title, total=progress.total, initial=progress.done, dynamic_ncols=True
            )
        self._bar.n = progress.done
        self._bar.set_postfix_str(progress.note, refresh=True)

    def log(self, progress: Progress) -> None:
        """A line for each new note."""
        if progress.note != self._wrote:
            typer.echo(progress.note, err=True)
            self._wrote = progress.note
