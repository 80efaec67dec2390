"""The studies a fresh copy starts with: one a task for people, and one for simulated annotators.

The last one exists so that training and comparing can be tried before any annotator has labelled.
It is marked as simulated wherever it appears, and the others start empty.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

from annotation.domain import Study
from annotation.images import Shelf
from annotation.spec import USUAL_TASK, Lists, StudySpec, Task
from annotation.store import Store
from annotation.study.create import create_study
from annotation.study.labelling import list_studies, progress
from annotation.study.simulate import simulate
from annotation.tasks.wording import USUAL
from semsim.base.errors import SemsimError

PEOPLE = "Demo: symbols"
SIMULATED = "Demo: symbols (simulated votes)"
PAIRS = "Demo: faces"
ANNOTATORS = 5
# Faces are of persons, and what annotators read says so.
_OF_PERSONS = {
    name: text.replace("subject", "person")
    for name, text in USUAL.items()
    if name.startswith("pair.") and "subject" in text
}
# A person meets an original under every model: lists drawn anew tell least (`told_by_lists`).
_FOR_PEOPLE: dict[str, Any] = {"lists": Lists.ITEM, "set_aside": 1, "practice": 2}
_DECOYS = 0.5  # one decoy to two pairs of the same person, as in the paper

log = logging.getLogger(__name__)


class DemoInTheMaking:
    """The demo studies, made while others are served already; it takes seconds.

    Whether there is any study at all is looked up when this is created. Nothing is lost where the
    process ends in between: the next start goes on.
    """

    def __init__(
        self, store: Store, sets: Sequence[Path], images: Shelf, pairs: Sequence[Path] = ()
    ) -> None:
        self._given = (store, sets, images, pairs, not list_studies(store))
        self._problem = ""
        self._thread = Thread(target=self._make, name="demo", daemon=True)

    def start(self) -> None:
        """Begin; comes back at once."""
        self._thread.start()

    def wait(self) -> None:
        """Until all is made."""
        self._thread.join()

    def note(self) -> str:
        """Return a note for people: that the studies are being made, or why they could not be."""
        if self._problem:
            return f"The demo studies are not whole: {self._problem}"
        if self._thread.is_alive():
            return "The demo studies are being made, with simulated votes."
        return ""

    def _make(self) -> None:
        try:
            ensure_demo(*self._given)
        except (SemsimError, OSError) as error:
            self._problem = str(error)
            log.error(self.note())


def ensure_demo(
    store: Store,
    sets: Sequence[Path],
    images: Shelf,
    pairs: Sequence[Path] = (),
    fresh: bool | None = None,
) -> None:
    """Make the demo studies where there is no study at all; finish what was cut short.

    Args:
        sets: Of things to be named.
        pairs: Of people to be told apart.
        fresh: Whether there was no study, where that was looked up before. Of several servers that
            start at once on one database one does so, and the others wait for it.
    """
    with store.alone():
        names = {study.name: study for study in list_studies(store)}
        begun = names.get(SIMULATED)
        if begun is not None and (not begun.spec.simulated or _is_whole(store, begun)):
            return
        makes = begun is not None or (not names if fresh is None else fresh)
        for spec, of in _wanted(sets, pairs) if makes else ():
            names[spec.name] = names.get(spec.name) or create_study(store, spec, of, images)
        if SIMULATED in names:
            simulate(store, names[SIMULATED].id, ANNOTATORS)


def _wanted(sets: Sequence[Path], pairs: Sequence[Path]) -> list[tuple[StudySpec, Sequence[Path]]]:
    """Return the settings and the sets of each study; the one for people at naming comes last."""
    spec = StudySpec(name=SIMULATED, title="Symbols", task=USUAL_TASK, simulated=True)
    faces = StudySpec(
        name=PAIRS,
        title="Faces",
        task=Task("pair"),
        decoy_rate=_DECOYS,
        texts=_OF_PERSONS,
        set_aside=2,  # persons, of whom practice shows pairs that differ
        practice=2,
    )
    people = replace(spec, name=PEOPLE, simulated=False, **_FOR_PEOPLE)
    return [one for one in ((spec, sets), (faces, pairs), (people, sets)) if one[1]]


def _is_whole(store: Store, study: Study) -> bool:
    """Return whether every simulated vote is there, which come last."""
    now = progress(store, study.id)
    return sum(now.coverage[ANNOTATORS:]) == now.n_items
