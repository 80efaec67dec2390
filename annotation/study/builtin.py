"""The studies a fresh copy starts with: one for people, and one that simulated annotators answer.

The second exists so that training and comparing can be tried before anybody has labelled; it is
marked as simulated wherever it appears, and the first one starts empty.
"""

from collections.abc import Sequence
from pathlib import Path

from annotation.domain import USUAL_TASK, StudySpec
from annotation.store import Store
from annotation.study.labelling import create_study, list_studies, simulate

PEOPLE = "Demo: symbols"
SIMULATED = "Demo: symbols (simulated votes)"
ANNOTATORS = 5


def ensure_demo(store: Store, sets: Sequence[Path], images: Path) -> None:
    """Make the two demo studies where there is no study at all; finish a simulation cut short.

    Of several servers that start at once on one database one does so, and the others wait for it.
    """
    with store.alone():
        _ensure_demo(store, sets, images)


def _ensure_demo(store: Store, sets: Sequence[Path], images: Path) -> None:
    names = {study.name: study for study in list_studies(store)}
    if not names and sets:
        for name, simulated in ((SIMULATED, True), (PEOPLE, False)):
            spec = StudySpec(name=name, title="Symbols", task=USUAL_TASK, simulated=simulated)
            names[name] = create_study(store, spec, sets, images)
    unfinished = names.get(SIMULATED)
    if unfinished is not None and unfinished.spec.simulated:
        simulate(store, unfinished.id, ANNOTATORS)
