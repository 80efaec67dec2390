"""SemSim Studio: open the store, mount the pages, serve. `python app.py --help` explains."""

import argparse
import os
import socket
from contextlib import suppress
from operator import attrgetter
from pathlib import Path

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # before gradio is imported

from annotation.accounts.start import who_may_enter
from annotation.cli.terminal import DATA, Parser, failed, told_errors
from annotation.errors import told_as
from annotation.store import Store
from annotation.store.backup import scheduled_backups
from annotation.study.builtin import ensure_demo
from annotation.study.labelling import annotator_lookup, export_labels, export_votes, list_studies
from annotation.ui import StudyContext, label, people, results, studies
from annotation.ui.mount import Page, mount, web_app
from annotation.web import proxies
from annotation.web.guard import Guard
from semsim.errors import DataError
from semsim.sets.reader import set_choices
from semsim.ui import ScienceContext, StudyChoice
from semsim.ui.pages import PAGES, routers

ROOT = Path(__file__).resolve().parent


def create_app(store: Store, options: argparse.Namespace) -> Guard:
    """The whole product as one ASGI application."""
    who = who_may_enter(store, options.host, local=options.local)
    data, images = options.data_dir, options.data_dir / "images"
    roots = [ROOT / "data/demo/sets", data / "runs"]
    told = told_as(DataError)  # the two halves know only errors of their own
    facts = attrgetter("id", "name", "spec.simulated", "spec.headline.value")
    human = StudyContext(store=store, images=images, find_sets=lambda: set_choices(roots))
    science = ScienceContext(
        data=data,
        checkpoints=options.checkpoints,
        studies=lambda: [StudyChoice(*facts(s)) for s in list_studies(store)],
        labels=told(lambda study: export_labels(store, study, images)),
        votes=told(lambda study: export_votes(store, study)),
        device=options.device,
    )
    ensure_demo(store, [folder for _, folder in set_choices(roots[:1])], images)
    app = web_app(store, images, *routers(science), who=who)
    mount(app, "/label", [Page("Label", "label", label, human)])
    pages = [Page("Studies", "studies", studies, human), Page("People", "people", people, human)]
    pages += [Page("Results", "results", results, human)]
    mount(app, "/studio", [*pages, *(Page(*page, science) for page in PAGES)], who)
    return Guard(app, who, annotator_lookup(store))


def serve(options: argparse.Namespace) -> None:
    """Open everything, say where it is, and serve until stopped."""
    with suppress(OSError), socket.create_connection((options.host, options.port), timeout=1):
        raise failed(f"Port {options.port} is taken; choose another one with --port.")
    options.data_dir.mkdir(parents=True, exist_ok=True)
    with told_errors():
        store = Store(options.database or f"sqlite:///{options.data_dir.resolve() / 'studies.db'}")
        app = create_app(store, options)
    print(f"SemSim Studio: http://{options.host}:{options.port}/studio/", flush=True)
    with scheduled_backups(store, options.data_dir / "backups"):
        proxies.serve(app, options.host, options.port, options.trusted_proxy)


if __name__ == "__main__":
    parser = Parser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=7860, help="port to listen on")
    proxies.add_option(parser)
    parser.add_argument("--local", action="store_true", help="no accounts, this machine only")
    parser.add_argument("--data-dir", type=Path, default=DATA, help="where all data lies")
    parser.add_argument("--database", help="SQLAlchemy URL; default: SQLite in the data folder")
    parser.add_argument("--checkpoints", type=Path, default=ROOT / "checkpoints", help="weights")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps")
    serve(parser.parse_args())
