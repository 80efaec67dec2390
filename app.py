"""SemSim Studio: open the store, mount the pages, serve. `python app.py --help` explains."""

import os
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from annotation.cli.console import ServerParser, check_port, told_errors
from annotation.web import proxies

if TYPE_CHECKING:
    from annotation.store import Store
    from annotation.web.guard import Guard

ROOT = Path(__file__).resolve().parent
DEMO = ROOT / "data/demo"
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # before gradio is imported


def create_app(store: "Store", options: Namespace, note: Callable[[], str] = str) -> "Guard":
    """The whole product as one ASGI application. note: what the page Studies says at its top."""
    from annotation.accounts.start import who_may_enter  # these take seconds, after a first word
    from annotation.errors import told_as
    from annotation.study import exports, labelling
    from annotation.ui import StudyContext, label, mount
    from annotation.web.guard import Guard
    from semsim.analysis.dawid_skene import dawid_skene
    from semsim.errors import DataError
    from semsim.sets.reader import set_choices
    from semsim.ui import ScienceContext, StudyChoice, pages

    who = who_may_enter(store, options.host, local=options.local)
    data, images = options.data_dir, options.data_dir / "images"
    sets = lambda: set_choices([DEMO, data / "runs"])  # noqa: E731
    told = told_as(DataError)  # the two halves know only errors of their own
    facts = lambda s: (s.id, s.name, s.spec.simulated, s.spec.headline.value)  # noqa: E731
    human = StudyContext(store=store, images=images, find_sets=sets, fit=dawid_skene, note=note)
    science = ScienceContext(
        data=data,
        checkpoints=options.checkpoints,
        studies=lambda: [StudyChoice(*facts(s)) for s in labelling.list_studies(store)],
        voted=lambda: labelling.voted(store),
        labels=told(lambda study: exports.export_labels(store, study, images)),
        votes=told(lambda study: exports.export_votes(store, study)),
        device=options.device,
    )
    app = mount.web_app(store, images, *pages.routers(science), who=who)
    mount.mount(app, "/label", [mount.Page("Label", "label", label, human)])
    shown = [mount.Page(*page, human) for page in mount.PAGES]
    mount.mount(app, "/studio", [*shown, *(mount.Page(*p, science) for p in pages.PAGES)], who)
    return Guard(app, who, lambda token: labelling.who(store, token))


def serve(options: Namespace) -> None:
    """Open everything, say where it is, and serve until stopped."""
    check_port(options.host, options.port)
    print("SemSim Studio: starting; to put the pages together takes seconds.", flush=True)
    from annotation.store import Store, backup
    from annotation.study.builtin import DemoInTheMaking
    from semsim.sets.reader import set_choices

    options.data_dir.mkdir(parents=True, exist_ok=True)
    with told_errors():
        store = Store(options.database or f"sqlite:///{options.data_dir.resolve() / 'studies.db'}")
        sets, pairs = ([one for _, one in set_choices([DEMO / n])] for n in ("sets", "pairs"))
        demo = DemoInTheMaking(store, sets, options.data_dir / "images", pairs)
        app = create_app(store, options, demo.note)
    print(f"SemSim Studio: http://{options.host}:{options.port}/studio/", flush=True)
    with backup.scheduled_backups(store, options.data_dir / "backups"):
        demo.start()
        proxies.serve(app, options.host, options.port, options.trusted_proxy)


if __name__ == "__main__":
    parser = ServerParser(description=__doc__)
    proxies.add_option(parser)
    parser.add_argument("--checkpoints", type=Path, default=ROOT / "checkpoints", help="weights")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps")
    serve(parser.parse_args())
