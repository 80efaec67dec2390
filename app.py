"""SemSim Studio: open the store, make its context, list the pages, serve; and `semsim-studio`."""

import os
import sys
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import Any

import typer

from annotation.cli import main as human
from annotation.cli.serving import asked, open_studio
from semsim import __version__
from semsim.base.cli.commands import Late, command_line
from semsim.base.storage.places import PROGRAM
from semsim.cli import main as science
from semsim.device import few_heaps

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # before gradio is imported


def create_app(store: Any, options: Namespace, note: Callable[[], str] = str) -> Any:
    """The whole product as one ASGI application. note: what the page Studies says at its top."""
    from annotation.ui import StudyContext, mount  # these take seconds
    from annotation.web.frame import FrameContext
    from semsim.reporting.glossary import glossary
    from semsim.ui import ScienceContext, jobpanel, pages

    study = StudyContext.of(store, options, note)
    context = ScienceContext.of(options, study.lent)
    watched: dict[str, Any] = {"running": partial(jobpanel.running, options.data_dir / "jobs")}
    watched["changed"] = partial(jobpanel.changed, options.data_dir)
    bar = FrameContext(store=store, groups=pages.links(), words=glossary, **watched)
    drawn = [mount.Page(*page, context) for page in pages.PAGES]
    return mount.studio(study, options, drawn, *pages.routers(context), bar=bar)


def serve(words: typer.Context) -> None:
    """Open the studio, print its address, and serve until Ctrl-C."""
    few_heaps()
    open_studio(asked("serve", str(serve.__doc__), words.args), create_app)


def doctor(words: typer.Context) -> None:
    """Check whether the studio would start here, and say what to do."""
    from annotation.cli.doctor import diagnose
    from semsim.cli.doctor import machine

    options = asked("doctor", str(doctor.__doc__), words.args)
    raise SystemExit(diagnose(options, machine(options.checkpoints, options.device)))


OWN = {f.__name__: Late(__name__, f.__name__, str(f.__doc__), True) for f in (serve, doctor)}
STUDY = Late("annotation.cli.main", "study", human.ABOUT)
COMMANDS = {**OWN, "study": STUDY, **human.SERVER, **science.COMMANDS}
ABOUT = "Measure what a reconstruction attack reveals the way people see it."
front = command_line(__version__, ABOUT, COMMANDS, completes=True)


def main() -> None:
    """Do what `python app.py` asks: `semsim-studio serve`, or the command that it names."""
    if sys.argv[1:2] == [] or sys.argv[1] not in (*COMMANDS, "help"):
        sys.argv.insert(1, "serve")
    front(prog_name=PROGRAM)


if __name__ == "__main__":
    main()
