"""A page of the science alone, for browser tests: `science_server.py ADDRESS DATA PORT`."""

import sys
from functools import partial
from pathlib import Path

from studio import Server


class ScienceServer(Server):
    """The page with that address below /studio, on what lies in `data`."""

    def __init__(self, address: str, data: Path) -> None:
        super().__init__(data, [__file__, address, str(data), "{port}"])


def main(address: str, data: Path, port: int) -> None:
    """Serve the page as the product does, without the other pages and without studies."""
    import uvicorn

    from annotation.store import Store
    from annotation.study.labelling import who as find_annotator
    from annotation.ui.mount import Page, mount, web_app
    from annotation.web.guard import Guard
    from semsim.ui import ScienceContext
    from semsim.ui.pages import PAGES, routers

    context = ScienceContext(
        data=data,
        checkpoints=data / "checkpoints",
        studies=list,
        labels=lambda study: (_ for _ in ()).throw(KeyError(study)),
        votes=lambda study: (_ for _ in ()).throw(KeyError(study)),
        device="cpu",
    )
    store = Store(f"sqlite:///{data / 'studies.db'}")
    app = web_app(store, data / "images", *routers(context), who=None)
    (page,) = (page for page in PAGES if page[1] == address)
    mount(app, "/studio", [Page(*page, context)])
    guarded = Guard(app, None, partial(find_annotator, store))
    uvicorn.run(guarded, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
