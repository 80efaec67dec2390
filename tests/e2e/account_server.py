"""A studio of one page that asks for accounts: `python account_server.py DATA_DIR PORT`."""

import sys
from functools import partial
from pathlib import Path

from studio import Server


class AccountServer(Server):
    """The page Studies, its downloads and the pages of accounts, on the database in `data`."""

    def __init__(self, data: Path) -> None:
        super().__init__(data, [__file__, str(data), "{port}"])


def main(data: Path, port: int) -> None:
    """Serve the studies in `data` to people with an account there."""
    import uvicorn
    from made_results import NO_IMPORTS

    from annotation.accounts.access import who_may_enter
    from annotation.store import Store
    from annotation.study.labelling import who as find_annotator
    from annotation.ui import StudyContext
    from annotation.ui.mount import study_routers, web_app
    from annotation.web.frame import FrameContext
    from annotation.web.guard import Guard

    store, images = Store(f"sqlite:///{data / 'studies.db'}"), data / "images"
    who = who_may_enter(store, "0.0.0.0", local=False)
    context = StudyContext(store=store, images=images, find_sets=lambda: [], imports=NO_IMPORTS)
    app = web_app(FrameContext(store=store, who=who), images, *study_routers(context, who))
    guarded = Guard(app, who, partial(find_annotator, store))
    uvicorn.run(guarded, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
