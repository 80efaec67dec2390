"""The People page: who takes part in the study in hand, whose votes count, and erasing somebody."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from annotation.domain import AnnotatorRow, Study
from annotation.errors import ConflictError, NotFoundError
from annotation.study import imported
from annotation.study import participants as persons
from annotation.study.labelling import get_study
from annotation.tasks.wording import PLAIN
from annotation.ui import StudyContext, people_view
from annotation.ui.study_view import when
from annotation.web.api import routes
from annotation.web.page_api import Fields, link_of
from annotation.web.root_path import rooted
from annotation.web.templates import page

PAGE = "/studio/people"
ROWS = 15  # of a page of the list
STEPS: dict[str, Callable[..., Any]] = {
    "pause": persons.pause,
    "resume": persons.resume,
    "exclude": persons.exclude,
    "include": persons.include,
    "let-in": persons.let_in,
}


def router(context: StudyContext, account: Callable[[Request], str | None]) -> APIRouter:
    """The routes below /studio/people. account: whose name a request carries, if any."""
    made = _People(context=context, account=account)
    handlers = {step: made.step(step) for step in STEPS}
    handlers |= {"erase": made.erase, "link": made.link}
    post = {f"{PAGE}/{{study}}/{name}": handler for name, handler in handlers.items()}
    return routes(get={PAGE: made.page}, post=post)


@dataclass(frozen=True, kw_only=True)
class _People:
    context: StudyContext
    account: Callable[[Request], str | None]

    def page(self, request: Request, person: str = "", ask: str = "", at: int = 1) -> Response:
        """A page of the list, and somebody in it. ask: a question about them, exclude or erase."""
        found = self._found(request)
        if found is None:
            return page("people.html", study=None)
        study, people = found
        chosen = next((one for one in people if one.name == person), None)
        n_pages = max(1, -(-len(people) // ROWS))
        at = min(max(1, at), n_pages)
        values: dict[str, Any] = {"effect": None, "ask": ask if chosen else "", "chosen": chosen}
        if chosen and ask == "exclude":
            effect = persons.preview_exclusion(
                self.context.store, study.id, chosen.name, self.context.images
            )
            values["effect"] = people_view.effect(effect)
        now = datetime.now(UTC)
        return page(
            "people.html",
            study=study,
            lead=people_view.lead(study, people),
            people=people[(at - 1) * ROWS : at * ROWS],
            at=at,
            n_pages=n_pages,
            imported=study.id.startswith(imported.PREFIX),
            may=people_view.may(chosen) if chosen else (),
            facts=people_view.person_facts(chosen) if chosen else (),
            backups=people_view.BACKUPS,
            failed=people_view.caught,
            when=lambda then: when(then, now),
            link=lambda **to: "?" + urlencode({"study": study.id, "at": at, **to}),
            **values,
        )

    def _found(self, request: Request) -> tuple[Study, list[AnnotatorRow]] | None:
        wanted = request.query_params.get("study", "")
        if wanted.startswith(imported.PREFIX):
            brought = imported.find(self.context.science, wanted)
            return imported.study_of(wanted, brought), imported.people_of(brought)
        chosen = self.context.in_hand(request)
        if not chosen:
            return None
        store = self.context.store
        return get_study(store, chosen), persons.list_people(store, chosen)

    def step(self, name: str) -> Callable[..., Response]:
        """What a press does that needs no more than a name."""

        def handler(request: Request, study: str, form: Fields) -> Response:
            store, person = self.context.store.by(self.account(request)), _named(form)
            STEPS[name](store, study, person, datetime.now(UTC))
            return _back(study, person, form)

        return handler

    def link(self, request: Request, study: str, form: Fields) -> Response:
        """A new personal link for somebody who has lost theirs, told this once."""
        store, person = self.context.store.by(self.account(request)), _named(form)
        secret = persons.new_link(store, study, person, datetime.now(UTC))
        address = str(request.base_url).rstrip("/") + link_of(secret)
        back = _address(study, person, form)
        told: dict[str, Any] = {"person": person, "link": address, "back": back, "say": PLAIN}
        told["left_out"] = self.account(request) is not None
        return page("person_link.html", **told)

    def erase(self, request: Request, study: str, form: Fields) -> Response:
        """Take somebody's name out for good; the form says it once more in `typed`."""
        store, person = self.context.store.by(self.account(request)), _named(form)
        if form.get("typed", "").strip() != person:
            raise ConflictError(f"To erase {person}, type exactly that name.")
        keep = form.get("votes") == "keep"
        erased = persons.erase(store, study, person, datetime.now(UTC), keep_votes=keep)
        return _back(study, erased.name, form)


def _named(form: Fields) -> str:
    if not form.get("person"):
        raise NotFoundError("This needs the name of somebody in the study.")
    return form["person"]


def _back(study: str, person: str, form: Fields) -> Response:
    return RedirectResponse(_address(study, person, form), 303)


def _address(study: str, person: str, form: Fields) -> str:
    to = {"study": study, "at": form.get("at", "1"), "person": person}
    return rooted(f"{PAGE}?{urlencode(to)}")
