"""The overview of the study in hand: its link, how far it is, and what can be done to it."""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from threading import Lock, Thread
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request, Response

from annotation.domain import Study, StudyProgress, StudyStatus
from annotation.errors import ConflictError, StudyError
from annotation.images import Shelf, here
from annotation.spec import SETTINGS, Setting, value_of
from annotation.store import Store
from annotation.study import activity, labelling, protocols
from annotation.study.endpoint import ADDRESS, KEY, Endpoint, key_of
from annotation.study.exports import facts_of_lists
from annotation.study.study_file import written
from annotation.study.vlm import Budget, Run, State
from annotation.tasks.wording import USUAL
from annotation.texts import counted
from annotation.ui import StudyContext, study_view
from annotation.ui.new_pages import file_of
from annotation.web.api import routes
from annotation.web.downloads import file_name
from annotation.web.templates import fill, page
from semsim.base.errors import MissingExtraError, SemsimError, SettingsError

log = logging.getLogger(__name__)
BROKEN = "The run broke in the studio itself. See the log of the studio."
_WHOLE = ("annotators", "calls", "pictures")
# Fields of the form: name, what it is called, the step of its number.
FIELDS = tuple(
    (name, title, "1" if name in _WHOLE else "any")
    for name, title in (
        ("annotators", "Draws"),
        *((one.name, f"{one.metadata['label']} (empty: any)") for one in fields(Budget)),
    )
)


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
    """The runs of a model over studies of this server, at most one a study.

    The address and the key come from the environment of the server alone: who may open the page may
    neither see the key nor send it elsewhere.
    """

    _jobs: dict[str, _Job] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def begin(self, store: Store, study: Study, images: Shelf, asked: Mapping[str, Any]) -> None:
        """Begin a run with the `FIELDS` of a form.

        Raises `ConflictError` where one goes on, `StudyError` for a field or a missing endpoint.
        """
        told = {
            name: _number(name, title, given)
            for name, title, _ in FIELDS
            if (given := str(asked.get(name) or "").strip())
        }
        n = told.pop("annotators", 1)
        if not os.environ.get(ADDRESS):
            raise StudyError(
                f"This server knows no endpoint: set {ADDRESS}, and {KEY} where it asks for a "
                "key, then start the server anew."
            )
        try:
            budget = Budget(**told)
            endpoint = Endpoint(address=os.environ[ADDRESS], model=study.spec.voter, key=key_of())
        except (MissingExtraError, SettingsError) as error:
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


def _number(name: str, title: str, given: str) -> Any:
    try:
        return int(given) if name in _WHOLE else float(given)
    except ValueError:
        head = title.partition(" (")[0]
        raise StudyError(f"{head}: a number is expected; got {given!r}.") from None


Asked = Annotated[dict[str, Any], Body()]


def router(context: StudyContext) -> APIRouter:
    """The routes below /studio/overview."""
    made = _Overview(context=context)
    one = "/studio/overview/{study}"
    return routes(
        get={
            "/studio/overview": made.page,
            "/studio/activity": made.activity,
            f"{one}/file": made.file,
        },
        post={
            f"{one}/status": made.status,
            f"{one}/rename": made.rename,
            f"{one}/delete": made.delete,
            f"{one}/amend": made.amend,
            f"{one}/model": made.model,
            f"{one}/cancel": made.cancel,
        },
    )


@dataclass(frozen=True, kw_only=True)
class _Overview:
    context: StudyContext
    runs: ModelRuns = field(default_factory=ModelRuns)

    def page(self, request: Request) -> Response:
        store, chosen = self.context.store, self.context.in_hand(request)
        if not chosen:
            note = self.context.note()
            return page("overview.html", study=None, note=note, title="Overview")
        study = labelling.get_study(store, chosen)
        versions = protocols.protocol_versions(store, chosen)
        lists = facts_of_lists(store, chosen)
        return page(
            "overview.html",
            title="Overview",
            study=study,
            now=self._now(request, study),
            facts=study_view.facts(study),
            whose=study_view.whose(study, self.context.account(request)),
            versions=versions,
            table=study_view.versions_table(versions, lists.said if lists else ()),
            settings=_amendable(study),
            texts=dict(USUAL),
        )

    def activity(self, study: str) -> Response:
        about = labelling.get_study(self.context.store, study)
        acts = activity.activity(self.context.store, study)
        return page("activity.html", title="Activity", study=about, acts=acts, most=activity.MOST)

    def file(self, study: str) -> Response:
        about = labelling.get_study(self.context.store, study)
        name = f"{file_name(about.name)}.yaml"
        kept, lacking = file_of(self.context, about)
        said = " ".join(lacking.split())
        text = written(kept) + (f"# {said}\n" if said else "")
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(text, media_type="application/yaml", headers=headers)

    def status(self, request: Request, study: str, asked: Asked) -> dict[str, Any]:
        wanted = str(asked.get("status", ""))
        if wanted not in list(StudyStatus):
            raise StudyError(f"A study is {', '.join(StudyStatus)}; got {wanted!r}.")
        made = labelling.set_status(self.context.store_for(request), study, StudyStatus(wanted))
        return {"status": made.status.value}

    def rename(self, request: Request, study: str, asked: Asked) -> dict[str, Any]:
        made = labelling.rename(self.context.store_for(request), study, str(asked.get("name", "")))
        return {"name": made.name}

    def delete(self, request: Request, study: str, asked: Asked) -> dict[str, Any]:
        backups = here(self.context.images).parent / "backups"
        made = labelling.delete(
            self.context.store_for(request), study, str(asked.get("name", "")), backups
        )
        return {"backup": made.name if made else ""}

    def amend(self, request: Request, study: str, asked: Asked) -> dict[str, Any]:
        name, value = str(asked.get("setting", "")), str(asked.get("value", "")).strip()
        if not name:
            raise StudyError("Choose the setting that changes.")
        changes = {name: value_of(name, value)}
        why = str(asked.get("why", ""))
        made = protocols.amend(self.context.store_for(request), study, changes, why)
        return {"version": made.version}

    def model(self, request: Request, study: str, asked: Asked) -> dict[str, Any]:
        found = labelling.get_study(self.context.store, study)
        self.runs.begin(self.context.store_for(request), found, self.context.images, asked)
        return {}

    def cancel(self, study: str) -> dict[str, Any]:
        self.runs.cancel(study)
        return {}

    def _now(self, request: Request, study: Study) -> str:
        progress = labelling.progress(self.context.store, study.id)
        mark = "model" if study.spec.voter else "simulated" if study.spec.simulated else ""
        return fill(
            "overview_now.html",
            study=study,
            note=self.context.note(),
            lead=lead(study, progress, datetime.now(UTC)),
            link=f"{request.base_url}join/{study.token}",
            link_note=study_view.link_note(study),
            coverage=coverage(progress),
            whole=0 < progress.votes_wanted <= progress.votes_done,
            people=study_view.people_table(progress.annotators, datetime.now(UTC), mark),
            fields=FIELDS,
            told=self.runs.told(study.id),
            goes_on=self.runs.goes_on(study.id),
            exports=study_view.exports_of(study.id),
        )


def lead(study: Study, progress: StudyProgress, now: datetime) -> str:
    """Return a sentence on the progress of a study."""
    done, wanted = progress.votes_done, progress.votes_wanted
    if not progress.annotators:
        return f"Nobody has joined yet; {counted(wanted, 'vote')} are wanted."
    who = f"draw{{}} of {study.spec.voter}" if study.spec.voter else "simulated annotator{}"
    programs = who.format(""), who.format("s")
    words = programs if study.spec.simulated else ("person", "people")
    voted = sum(one.done > 0 for one in progress.annotators)
    joined = len(progress.annotators)
    people = counted(voted, *words) + (f" ({joined:,} have joined)" if joined > voted else "")
    last = max(one.last_seen for one in progress.annotators)
    share = f"{done / wanted:.0%}" if wanted else "none"
    return (
        f"{done:,} of {counted(wanted, 'vote')} are there ({share}), by {people}; "
        f"last activity {study_view.when(last, now)}."
    )


def coverage(progress: StudyProgress) -> list[tuple[str, int, int]]:
    """Rows of items by how many votes they have: words, items, their share in percent."""
    last = len(progress.coverage) - 1
    return [
        (
            counted(votes, "vote") if votes else "no vote yet",
            items,
            round(100 * items / max(1, progress.n_items)),
        )
        for votes, items in enumerate(progress.coverage)
        if items or votes in (0, last)
    ]


def _amendable(study: Study) -> list[Setting]:
    """The settings that may change, which begin with what they are now."""
    if study.status is StudyStatus.CLOSED:
        return []
    found = (one for one in SETTINGS.values() if one.amendable and one.at)
    return [replace(one, start=getattr(study.spec, one.name)) for one in found]
