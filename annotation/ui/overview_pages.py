"""The overview of the study in hand: its link, how far it is, and what can be done to it."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request, Response
from fastapi.responses import HTMLResponse

from annotation.domain import Study, StudyProgress, StudyStatus
from annotation.errors import StudyError
from annotation.images import here
from annotation.spec import SETTINGS, Setting, value_of
from annotation.study import labelling, protocols
from annotation.study.exports import facts_of_lists
from annotation.study.study_file import written
from annotation.tasks.wording import USUAL
from annotation.texts import counted
from annotation.ui import StudyContext, study_view
from annotation.ui.model_runs import FIELDS, ModelRuns
from annotation.ui.new_pages import file_of
from annotation.web.api import routes
from annotation.web.downloads import file_name
from annotation.web.templates import fill, page

Asked = Annotated[dict[str, Any], Body()]


def router(context: StudyContext) -> APIRouter:
    """The routes below /studio/overview."""
    made = _Overview(context=context)
    one = "/studio/overview/{study}"
    return routes(
        get={
            "/studio/overview": made.page,
            "/studio/overview/now": made.now,
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
            versions=versions,
            table=study_view.versions_table(versions, lists.said if lists else ()),
            settings=_amendable(study),
            texts=dict(USUAL),
        )

    def now(self, request: Request, study: str) -> Response:
        return HTMLResponse(self._now(request, labelling.get_study(self.context.store, study)))

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
        f"somebody was last here {study_view.when(last, now)}."
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
