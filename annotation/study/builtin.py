"""The studies a fresh copy starts with: one for people, and one that simulated annotators answer.

The second exists so that training and comparing can be tried before anybody has labelled; it is
marked as simulated wherever it appears, and the first one starts empty.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from threading import Thread

from annotation.domain import USUAL_TASK, Study, StudySpec
from annotation.errors import AnnotationError
from annotation.store import Store
from annotation.study.labelling import create_study, list_studies, progress, simulate

PEOPLE = "Demo: symbols"
SIMULATED = "Demo: symbols (simulated votes)"
ANNOTATORS = 5

log = logging.getLogger(__name__)


class DemoInTheMaking:
    """The demo studies, made while others are served already; it takes seconds.

    Whether there is any study at all is looked up when this is created. Nothing is lost where the
    process ends in between: the next start goes on.
    """

    def __init__(self, store: Store, sets: Sequence[Path], images: Path) -> None:
        self._given = (store, sets, images, _is_fresh(store))
        self._problem = ""
        self._thread = Thread(target=self._make, name="demo", daemon=True)

    def start(self) -> None:
        """Begin; comes back at once."""
        self._thread.start()

    def wait(self) -> None:
        """Until all is made."""
        self._thread.join()

    def note(self) -> str:
        """What to tell people: that the studies are being made, or why they could not be."""
        if self._problem:
            return f"The demo studies are not whole: {self._problem}"
        if self._thread.is_alive():
            return "The demo studies are being made, with simulated votes. It takes seconds."
        return ""

    def _make(self) -> None:
        try:
            ensure_demo(*self._given)
        except (AnnotationError, OSError) as error:
            self._problem = str(error)
            log.error(self.note())


def ensure_demo(
    store: Store, sets: Sequence[Path], images: Path, fresh: bool | None = None
) -> None:
    """Make the two demo studies where there is no study at all; finish what was cut short.

    fresh: whether there was no study, where that was looked up before.
    Of several servers that start at once on one database one does so, and the others wait for it.
    """
    with store.alone():
        _ensure_demo(store, sets, images, _is_fresh(store) if fresh is None else fresh)


def _is_fresh(store: Store) -> bool:
    return not list_studies(store)


def _ensure_demo(store: Store, sets: Sequence[Path], images: Path, fresh: bool) -> None:
    names = {study.name: study for study in list_studies(store)}
    begun = names.get(SIMULATED)
    if begun is not None and (not begun.spec.simulated or _is_whole(store, begun)):
        return
    if sets and (fresh or begun is not None):
        for name, simulated in ((SIMULATED, True), (PEOPLE, False)):
            spec = StudySpec(name=name, title="Symbols", task=USUAL_TASK, simulated=simulated)
            names[name] = names.get(name) or create_study(store, spec, sets, images)
    if SIMULATED in names:
        simulate(store, names[SIMULATED].id, ANNOTATORS)


def _is_whole(store: Store, study: Study) -> bool:
    """Whether every simulated vote is there, which come last."""
    now = progress(store, study.id)
    return sum(now.coverage[ANNOTATORS:]) == now.n_items
