"""SemSim Studio: open the store, mount the pages, serve; and `semsim-studio`, the one command."""

import os
import sys
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import typer

from annotation.cli import main as human
from annotation.cli.serving import asked, open_studio
from semsim import __version__
from semsim.base.cli.commands import Late, command_line, told_stop
from semsim.base.storage.places import DEMO, PROGRAM
from semsim.cli import main as science
from semsim.device import few_heaps

if TYPE_CHECKING:
    from annotation.store import Store
    from annotation.web.guard import Guard

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # before gradio is imported


def create_app(store: "Store", options: Namespace, note: Callable[[], str] = str) -> "Guard":
    """The whole product as one ASGI application. note: what the page Studies says at its top."""
    from annotation.study import exports, labelling, sets  # these take seconds
    from annotation.ui import StudyContext, mount
    from annotation.web.frame import FrameContext, framed
    from semsim.reporting.glossary import glossary
    from semsim.ui import ScienceContext, StudyChoice, jobpanel, pages

    study = StudyContext.of(store, options, note)
    science = ScienceContext(
        data=options.data_dir,
        checkpoints=options.checkpoints,
        device=options.device,
        studies=lambda: [StudyChoice.of(one) for one in labelling.list_studies(store)],
        voted=partial(labelling.voted, store),
        labels=partial(exports.export_labels, store, images=study.images),
        votes=partial(exports.export_votes, store),
        used_by=partial(sets.users_of, store, study.images),
        in_hand=study.in_hand,
        chosen=study.chosen,
        framed=framed,
        built_in=(DEMO,),
    )
    drawn, routes = [mount.Page(*page, science) for page in pages.PAGES], pages.routers(science)
    running = partial(jobpanel.running, options.data_dir / "jobs")
    bar = FrameContext(store=store, running=running, groups=pages.links(), words=glossary)
    return mount.studio(study, options, drawn, *routes, bar=bar)


def serve(words: typer.Context) -> None:
    """Open the studio, print its address, and serve until Ctrl-C."""
    few_heaps()
    with told_stop():
        open_studio(asked("serve", str(serve.__doc__), words.args), create_app)


def doctor(words: typer.Context) -> None:
    """Check whether the studio would start here, and say what to do."""
    from annotation.cli.doctor import diagnose
    from semsim.cli.doctor import machine

    options = asked("doctor", str(doctor.__doc__), words.args)
    raise SystemExit(diagnose(options, machine(options.checkpoints, options.device)))


COMMANDS = {
    "serve": Late(__name__, "serve", str(serve.__doc__), passed_on=True),
    "doctor": Late(__name__, "doctor", str(doctor.__doc__), passed_on=True),
    "study": Late("annotation.cli.main", "study", human.ABOUT),
    **human.SERVER,
    **science.COMMANDS,
}
ABOUT = "Measure what a reconstruction attack reveals the way people see it."
front = command_line(__version__, ABOUT, COMMANDS, completes=True)


def main() -> None:
    """Do what `python app.py` asks: `semsim-studio serve`, or the command that it names."""
    if sys.argv[1:2] == [] or sys.argv[1] not in COMMANDS:
        sys.argv.insert(1, "serve")
    front(prog_name=PROGRAM)


if __name__ == "__main__":
    main()
