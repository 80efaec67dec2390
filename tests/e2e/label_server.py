"""The human study alone, served for browser tests: `python label_server.py DATA_DIR PORT`."""

import sys
from functools import partial
from pathlib import Path

from studio import Server


class LabelServer(Server):
    """The labelling page and the pages about studies, Home too, on the studies in `data`."""

    def __init__(self, data: Path) -> None:
        super().__init__(data, [__file__, str(data), "{port}"])


def main(data: Path, port: int) -> None:
    """Serve the studies in `data`; reconstruction sets are the folders below `data/sets`."""
    import uvicorn
    from made_results import NO_IMPORTS

    from annotation.store import Store
    from annotation.study.labelling import who as find_annotator
    from annotation.ui import StudyContext, home
    from annotation.ui.mount import study_routers, web_app
    from annotation.web.frame import FrameContext
    from annotation.web.guard import Guard
    from semsim.reporting.glossary import glossary

    def sets() -> list[tuple[str, Path]]:
        return [(path.parent.name, path.parent) for path in sorted(data.glob("sets/*/run.json"))]

    store, images = Store(f"sqlite:///{data / 'studies.db'}"), data / "images"
    context = StudyContext(store=store, images=images, find_sets=sets, imports=NO_IMPORTS)
    nothing = {"cases": [], "rows": []}
    lab = home.Lab(cases=lambda: nothing, people=lambda: nothing, semsims=list, running=list)
    start = home.router(context, lab)
    app = web_app(FrameContext(store=store, words=glossary), images, start, *study_routers(context))
    guarded = Guard(app, None, partial(find_annotator, store))
    uvicorn.run(guarded, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
