"""Jobs on a terminal: what is shown while one runs, and what is said where it is stopped."""

import shlex
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from semsim.base.cli.terminal import TerminalBar, say
from semsim.base.jobs.folders import Job, run_as_job, sweep_sockets
from semsim.base.progress import Report
from semsim.base.storage.atomic import sweep
from semsim.base.storage.places import PROGRAM


def carry_out(job: Job, work: Callable[[Report], dict[str, Any]]) -> dict[str, Any] | None:
    """Do `work` as `job`, showing how far it is; None where it was stopped as asked.

    Ctrl-C ends the command, which then says what goes on: `KeyboardInterrupt` has it. What killed
    writers have left in the data folder goes.
    """
    sweep(job.folder.parents[1])
    sweep_sockets(Path(tempfile.gettempdir()))
    try:
        with TerminalBar(job.title) as show:
            outcome = run_as_job(job.folder, work, also=show)
    except KeyboardInterrupt:
        again = shlex.join(job.command)
        raise KeyboardInterrupt(f"To go on: {PROGRAM} {again}") from None
    if outcome is None:
        say("Stopped as asked; it can be resumed.")
    return outcome
