"""A page of the science alone, for browser tests: `science_server.py ADDRESS DATA PORT`."""

import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from studio import Server

if TYPE_CHECKING:
    from semsim.ui import ScienceContext


class ScienceServer(Server):
    """The page with that address below /studio, on what lies in `data`."""

    def __init__(self, address: str, data: Path) -> None:
        super().__init__(data, [__file__, address, str(data), "{port}"], has_jobs=True)


def main(address: str, data: Path, port: int) -> None:
    """Serve the page as the product does, without the other pages.

    Compare has a made study with votes and scores, the others have none.
    """
    import uvicorn

    from annotation.store import Store
    from annotation.study.labelling import who as find_annotator
    from annotation.ui.mount import Page, mount, web_app
    from annotation.web.frame import FrameContext
    from annotation.web.guard import Guard
    from semsim.ui.pages import PAGES, links, routers

    context = compared(data) if address == "compare" else without_studies(data)
    store = Store(f"sqlite:///{data / 'studies.db'}")
    bar = FrameContext(store=store, groups=links())
    app = web_app(bar, data / "images", *routers(context))
    if drawn := [Page(*page, context) for page in PAGES if page[1] == address]:
        mount(app, "/studio", drawn)
    guarded = Guard(app, None, partial(find_annotator, store))
    with one_process() if address == "reconstruct" else nullcontext():
        uvicorn.run(guarded, host="127.0.0.1", port=port, log_level="warning")


def one_process() -> AbstractContextManager[None]:
    """No processes for a campaign: tests/e2e/test_whole_path.py has those that a job starts."""
    from made_campaign import grid_in_this_process  # distributed, which no other page needs

    return grid_in_this_process()


def without_studies(data: Path) -> "ScienceContext":
    """What a page gets where nobody has made a study."""
    from annotation.web.frame import framed
    from semsim.ui import ScienceContext

    return ScienceContext(
        data=data,
        checkpoints=data / "checkpoints",
        studies=list,
        labels=lambda study: (_ for _ in ()).throw(KeyError(study)),
        votes=lambda study: (_ for _ in ()).throw(KeyError(study)),
        device="cpu",
        framed=framed,
    )


def compared(data: Path) -> "ScienceContext":
    """What a page gets with one study in which people have voted and every metric has judged.

    On what the better models leak people and metrics differ, so that there is something to look at.
    """
    from made_study import make_labels, make_votes

    from semsim.metrics import Resources, all_metrics
    from semsim.metrics.scoring import pair_sets_of_labels, score_sets
    from semsim.ui import StudyChoice

    models = tuple(f"net{n // 7}/way{n % 7}" for n in range(14))
    labels = make_labels(data / "made", models=models, n_images=12, simulated=False)
    differing = [
        (3 * n) % 6 if n % 4 == 0 else count for n, count in labels["n_recognised"].items()
    ]
    labels = labels.assign(n_recognised=differing)
    votes, context = make_votes(labels), without_studies(data)
    resources = Resources(checkpoints=context.checkpoints)
    names = list(all_metrics(resources))
    score_sets(pair_sets_of_labels(labels), names, resources, data / "scores")
    return replace(
        context,
        studies=lambda: [StudyChoice("1", "Made", False)],
        labels=lambda study: labels,
        votes=lambda study: votes,
        in_hand=lambda request: "1",
    )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
