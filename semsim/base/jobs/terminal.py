"""Jobs on a terminal: what is shown while one runs, and what is said where it is stopped."""

import shlex
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from semsim.base.cli.terminal import TerminalBar, say, show_told
from semsim.base.jobs.folders import Job, read_order, run_as_job, sweep_sockets
from semsim.base.progress import Report
from semsim.base.storage.atomic import require_room, sweep
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


@dataclass(frozen=True)
class JobKind:
    """One kind of job, whose parts are imported where such a job is carried out.

    Attributes:
        module: Has `order`, the dataclass of what was asked, and `work`: (order, folder, report) →
            what it found; `work` may name a module of its own: "module:function".
        teller: Has `told`: that → text; `parts`: that → the parts of its JSON, where it has some;
            and `exit_code`: of that, or None where it was stopped, where it is not 0.
        state: The file in its folder that is of no use once there is a result.
        writes: Folders it writes to besides its own: a field of its order, or below one, as
            data/runs.
    """

    module: str
    order: str
    work: str
    teller: str
    told: str
    parts: str = ""
    exit_code: str = ""
    state: str = ""
    writes: tuple[str, ...] = ()

    def done(self, name: str) -> Any:
        """Return `order` or `work` itself, by its name."""
        return resolve_name(name if ":" in name else f"{self.module}:{name}")

    def said(self, name: str) -> Any:
        """Return `told`, `parts` or `exit_code` itself, by its name."""
        return resolve_name(f"{self.teller}:{name}")


def do(
    kind: JobKind, asked: Job, change: Callable[[Any], Any] | None = None, as_json: bool = False
) -> dict[str, Any] | None:
    """Do the work of a job of this kind and print what it found; None where it was stopped.

    Args:
        change: Of its order, for this time.
        as_json: Print its parts, of a kind that has some.
    """
    order: Any = read_order(asked, kind.done(kind.order))
    if change is not None:
        order = change(order)
    outcome = carry_out(asked, partial(_work, kind, order, asked.folder))
    if outcome is not None:
        if kind.state:
            (asked.folder / kind.state).unlink(missing_ok=True)
        parts = kind.said(kind.parts)(outcome) if as_json else {}
        show_told(parts, kind.said(kind.told)(outcome), as_json)
    return outcome


def _work(kind: JobKind, order: Any, folder: Path, report: Report) -> dict[str, Any]:
    """Do the work of a job, once all that it writes to is found to have rights and room."""
    parts = (name.partition("/") for name in kind.writes)
    require_room(folder, *(Path(attrgetter(name)(order), below) for name, _, below in parts))
    done: dict[str, Any] = kind.done(kind.work)(order, folder, report)
    return done
