"""Runs of a model over studies, begun on their pages: at most one a study, in this process.

The address and the key come from the environment of the server alone: who may open the page may
neither see the key nor send it elsewhere.
"""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Any

from annotation.domain import Study
from annotation.errors import ConflictError, StudyError
from annotation.images import Shelf
from annotation.store import Store
from annotation.study.endpoint import ADDRESS, KEY, Endpoint, key_of
from annotation.study.vlm import Budget, Run, State
from semsim.base.errors import MissingExtraError, SemsimError

log = logging.getLogger(__name__)
BROKEN = "The run broke in the studio itself. Its log says what it was."
# Fields of the form: name, what it is called, the step of its number.
FIELDS = (
    ("annotators", "Draws", "1"),
    ("calls", "Most calls (empty: any)", "1"),
    ("pictures", "Most pictures (empty: all)", "1"),
    ("money", "Most money (empty: any)", "any"),
    ("price_in", "Price of a million tokens read", "any"),
    ("price_out", "Price of a million tokens written", "any"),
)
_WHOLE = ("annotators", "calls", "pictures")


@dataclass(kw_only=True)
class _Job:
    run: Run
    state: State | None = None
    problem: str = ""
    thread: Thread = field(init=False)

    def begin(self) -> None:
        self.run.tell = self._heard
        self.thread = Thread(target=self._work, name="model", daemon=True)
        self.thread.start()

    def _heard(self, state: State) -> None:
        self.state = state

    def _work(self) -> None:
        try:
            self.state = self.run()
        except (SemsimError, OSError) as error:
            self.problem = str(error)
        except Exception:
            self.problem = BROKEN
            log.exception("A run of a model over a study broke")


@dataclass(frozen=True)
class ModelRuns:
    """The runs of this server, by study."""

    _jobs: dict[str, _Job] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def begin(self, store: Store, study: Study, images: Shelf, asked: Mapping[str, Any]) -> None:
        """Begin a run with the `FIELDS` of a form.

        Raises `ConflictError` where one goes on, `StudyError` for a field or a missing endpoint.
        """
        told = {name: _number(name, title, asked.get(name)) for name, title, _ in FIELDS}
        n = int(told.pop("annotators") or 1)
        budget = Budget(**{name: one for name, one in told.items() if one is not None})
        if not os.environ.get(ADDRESS):
            raise StudyError(
                f"This server knows no endpoint: set {ADDRESS}, and {KEY} where it asks for a "
                "key, then start the server anew."
            )
        try:
            endpoint = Endpoint(address=os.environ[ADDRESS], model=study.spec.voter, key=key_of())
        except MissingExtraError as error:
            raise StudyError(str(error)) from error
        run = Run(
            store=store, study=study, images=images, endpoint=endpoint, n_annotators=n,
            budget=budget,
        )  # fmt: skip
        run.check()
        with self._lock:
            if self.goes_on(study.id):
                raise ConflictError("The model answers already. Cancel that run first.")
            self._jobs[study.id] = _Job(run=run)
            self._jobs[study.id].begin()

    def cancel(self, study_id: str) -> None:
        """End a run after the calls that are under way; nothing to do where none goes on."""
        if study_id in self._jobs:
            self._jobs[study_id].run.stop.set()

    def goes_on(self, study_id: str) -> bool:
        """Return whether a run over the study is under way."""
        return study_id in self._jobs and self._jobs[study_id].thread.is_alive()

    def told(self, study_id: str) -> str:
        """Return how far the last run is, or why it failed; "" without any."""
        job = self._jobs.get(study_id)
        if job is None:
            return ""
        said = "" if job.state is None else job.state.text
        return job.problem or said or "Asking."


def _number(name: str, title: str, text: Any) -> Any:
    given = str(text or "").strip()
    if not given:
        return None
    try:
        found = int(given) if name in _WHOLE else float(given)
    except ValueError:
        found = -1
    if not (1 if name in _WHOLE else 0) <= found < float("inf"):
        raise StudyError(
            f"{title.partition(' (')[0]}: a number above 0 is expected; got {given!r}."
        )
    return found
