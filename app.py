"""SemSim Studio: open the store, mount the pages, serve; and `semsim-studio`, the one command."""

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from annotation.cli import main as human
from annotation.cli.console import ServerParser, check_port, pictures, say, told_errors
from semsim import __version__
from semsim.base.cli.commands import Late, command_line, told_stop
from semsim.base.storage.places import CHECKPOINTS, DEMO, PROGRAM, settle
from semsim.cli import main as science
from semsim.device import few_heaps

if TYPE_CHECKING:
    from annotation.store import Store
    from annotation.web.guard import Guard

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # before gradio is imported


def create_app(store: "Store", options: Namespace, note: Callable[[], str] = str) -> "Guard":
    """The whole product as one ASGI application. note: what the page Studies says at its top."""
    from annotation.accounts.access import who_may_enter  # these take seconds, after a first word
    from annotation.errors import told_as
    from annotation.study import exports, imported, labelling
    from annotation.study.sets import users_of
    from annotation.ui import StudyContext, home, mount
    from annotation.votes.science import Science
    from annotation.web import frame
    from annotation.web.guard import Guard
    from semsim.base.errors import DataError
    from semsim.base.storage.records import CASES, read_record
    from semsim.metrics.provenance import semsims
    from semsim.reporting.glossary import glossary
    from semsim.sets.reader import set_choices
    from semsim.ui import ScienceContext, StudyChoice, pages
    from semsim.ui.jobpanel import running
    from semsim.ui.lent import lent

    who = who_may_enter(store, options.host, local=options.local)
    data, images, weights = options.data_dir, options.images, options.checkpoints
    sets = lambda: set_choices([DEMO, data / "runs"])  # noqa: E731
    told = told_as(DataError)  # the two halves know only errors of their own
    facts = lambda s: (s.id, s.name, s.spec.simulated, s.spec.headline.value)  # noqa: E731
    of = Science(**lent(data))
    human = StudyContext(store=store, images=images, find_sets=sets, science=of, note=note)
    science = ScienceContext(
        data=data,
        checkpoints=weights,
        studies=lambda: [StudyChoice(*facts(s)) for s in labelling.list_studies(store)],
        voted=lambda: labelling.voted(store),
        labels=told(lambda study: exports.export_labels(store, study, images)),
        votes=told(lambda study: exports.export_votes(store, study)),
        device=options.device,
        in_hand=frame.in_hand(store),
        framed=frame.framed,
        built_in=(DEMO,),
        used_by=told(lambda folder: users_of(store, images, folder)),
    )
    jobs = lambda: running(data / "jobs")  # noqa: E731
    cases = lambda: read_record(DEMO / "cases.json", CASES, DataError)  # noqa: E731
    lab = home.Lab(cases=cases, semsims=lambda: semsims(weights), running=jobs)
    routes = (home.router(human, lab), *mount.study_routers(human, who), *pages.routers(science))
    imports = lambda: imported.choices(of)  # noqa: E731
    app = mount.web_app(
        store, images, *routes, who=who, running=jobs, imports=imports, words=glossary
    )
    mount.mount(app, "/studio", [mount.Page(*page, science) for page in pages.PAGES], who)
    return Guard(app, who, lambda token: labelling.who(store, token))


def open_studio(options: Namespace) -> None:
    """Open everything, say where it is, and serve until stopped."""
    from annotation.web import logs, proxies, root_path

    few_heaps()
    with told_errors():
        logs.begin(options)
    check_port(options.host, options.port)
    say("SemSim Studio: starting; this takes some seconds.", quiet=options.quiet)
    os.environ[root_path.ROOT_PATH] = options.root_path
    from annotation.store import Store, backup
    from annotation.study.builtin import DemoInTheMaking
    from semsim.sets.reader import set_choices

    settle()
    with told_errors():
        options.images = pictures(options.images, options.data_dir, write=True)
        store = Store(options.database or f"sqlite:///{options.data_dir.resolve() / 'studies.db'}")
        sets, pairs = ([one for _, one in set_choices([DEMO / n])] for n in ("sets", "pairs"))
        demo = DemoInTheMaking(store, sets, options.images, pairs)
        app = create_app(store, options, demo.note)
    with backup.scheduled_backups(store, options.data_dir / "backups"):
        demo.start()
        proxies.serve(logs.Accessed(app), options.host, options.port, options.trusted_proxy)


def asked(command: str, words: Sequence[str]) -> Namespace:
    """Return the options that follow `semsim-studio serve` or `doctor`."""
    from annotation.web import logs, proxies

    parser = ServerParser(command, COMMANDS[command].help)
    proxies.add_options(parser)
    logs.add_options(parser)
    parser.add_argument("--checkpoints", type=Path, default=CHECKPOINTS, help="weights")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps")
    return parser.parse_args(words)


def serve(words: typer.Context) -> None:
    """Open the studio, print its address, and serve until Ctrl-C."""
    with told_stop():
        open_studio(asked("serve", words.args))


def doctor(words: typer.Context) -> None:
    """Check whether the studio would start here, and say what to do."""
    options = asked("doctor", words.args)
    from annotation.cli.doctor import diagnose
    from semsim.cli.doctor import machine

    raise SystemExit(diagnose(options, machine(options.checkpoints, options.device)))


COMMANDS = {
    "serve": Late(__name__, "serve", str(serve.__doc__), passed_on=True),
    "doctor": Late(__name__, "doctor", str(doctor.__doc__), passed_on=True),
    "study": Late("annotation.cli.main", "study", human.ABOUT),
    **human.SERVER,
    **{name: Late(*one) for name, one in science.COMMANDS.items()},
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
