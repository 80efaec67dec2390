"""Results of a study for the Results page, computed once for each state of its votes."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from annotation.domain import Study
from annotation.store import Store
from annotation.study import imported
from annotation.study.exports import read_items
from annotation.study.labelling import events_so_far, get_study, studies_beside
from annotation.study.results import Apart, Results, read_results, results_of
from annotation.votes.beside import PICTURE, together

KEPT = 8  # studies whose results stay in memory
FEW = 5000  # votes wanted: up to so many, computing takes less than starting a process does
PATIENCE = 0.75  # seconds for which each of two computations of a large study is waited for
State = tuple[int, int]  # of `events_so_far`, or of an import and 0


def _is_large(study: Study) -> bool:
    return study.n_items * study.spec.votes_per_item > FEW


@dataclass
class _Kept:
    """Results of one study, the state they are of, and the work that looks for newer ones."""

    state: State = (-1, 0)
    results: Results | None = None
    work: Future[Results] | None = None
    apart: Apart | None = None


class ResultsCache:
    """Results of studies, computed anew only after something has happened in a study.

    One computation of a study runs at a time, and no other study waits for it. A large study has a
    process of its own, which reads what changed since its last look: Python runs one thread at a
    time, so in the server's every vote would wait for it. Reading takes one read transaction, which
    makes no vote wait.

    Attributes:
        imports: The folders of imported votes.
    """

    def __init__(self, store: Store, imports: Sequence[Path]) -> None:
        self._store, self._imports = store, imports
        self._lock = threading.Lock()
        self._known: OrderedDict[str, _Kept] = OrderedDict()
        self._pool = ThreadPoolExecutor(KEPT, "results")

    def get(self, study_id: str, *, now: bool = False) -> Results:
        """The results, also of votes that were imported; raises `NotFoundError`.

        Of a large study those known so far, where newer ones take longer than `PATIENCE`; these are
        computed meanwhile.

        Args:
            now: Wait for the newest, however long they take.
        """
        with self._lock:
            kept = self._known.setdefault(study_id, _Kept())
            self._known.move_to_end(study_id)
            while len(self._known) > KEPT:
                _, old = self._known.popitem(last=False)
                if old.apart is not None:
                    old.apart.close()
            begun = kept.work
        known = None if now else kept.results
        wait = PATIENCE if known and _is_large(known.study) else None
        if begun is not None:  # by another page, maybe before the last vote
            futures.wait([begun], wait)
        try:
            return self._work(study_id, kept).result(wait)
        except TimeoutError:
            if kept.results is None:
                raise
            return kept.results

    def _work(self, study_id: str, kept: _Kept) -> Future[Results]:
        """The computation of a study that is under way, or else a new one."""
        with self._lock:
            if kept.work is None or kept.work.done():
                kept.work = self._pool.submit(self._look, study_id, kept)
            return kept.work

    def _look(self, study_id: str, kept: _Kept) -> Results:
        look = self._of_import if study_id.startswith(imported.PREFIX) else self._of_study
        kept.state, found = look(study_id, kept)
        kept.results = found
        return found

    def beside(self, results: Results) -> list[tuple[Results, pd.DataFrame]]:
        """Return each study of the other kind that shares pictures: of people, or of a model.

        Returns:
            The results of each, and `votes.beside.together` of both.
        """
        if results.study.id.startswith(imported.PREFIX):  # its pictures have no checksums
            return []
        of_model, here = bool(results.study.spec.voter), self._said(results)
        others = [self.get(one) for one in studies_beside(self._store, results.study)]
        both = [(other, self._said(other)) for other in others]
        pairs = [(other, (said, here) if of_model else (here, said)) for other, said in both]
        return [(other, together(*sides)) for other, sides in pairs]

    def _said(self, results: Results) -> pd.DataFrame:
        """Summary of each picture, with the checksums of what it shows."""
        shown = pd.DataFrame(read_items(self._store, results.study.id))
        shown = shown.rename(columns={"shown": "reconstruction"})
        return results.items.merge(shown[["item", *PICTURE]], on="item")

    def _of_study(self, study_id: str, kept: _Kept) -> tuple[State, Results]:
        now = events_so_far(self._store, study_id)
        if kept.results is not None and kept.state == now:
            return now, kept.results
        # Votes that come after `now` was read may be in it; then the next look is anew.
        study = get_study(self._store, study_id)
        if not _is_large(study):
            return now, read_results(self._store, study_id)
        kept.apart = kept.apart or Apart(self._store.url, study_id)
        return now, kept.apart.read()

    def _of_import(self, study_id: str, kept: _Kept) -> tuple[State, Results]:
        found = imported.find(self._imports, study_id)
        now = (found.state, 0)
        if kept.results is not None and kept.state == now:
            return now, kept.results
        study = imported.study_of(study_id, found)
        return now, results_of(study, found.votes)
