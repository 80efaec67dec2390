"""People page: who takes part in the study in hand, whose votes count, and erasing a person."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from annotation.domain import AnnotatorRow, AnnotatorStatus, Step, Study
from annotation.errors import ConflictError, NotFoundError
from annotation.study import imported
from annotation.study import participants as persons
from annotation.study.labelling import get_study
from annotation.tasks.wording import PLAIN
from annotation.texts import counted
from annotation.ui import StudyContext
from annotation.ui.study_view import when, whose
from annotation.votes.exclusion import Effect
from annotation.web.api import routes
from annotation.web.page_api import Fields, link_of
from annotation.web.root_path import rooted
from annotation.web.templates import fill, page

PAGE = "/studio/people"
ROWS = 15  # of a page of the list
STEPS: dict[str, Callable[..., Any]] = {
    "pause": persons.pause,
    "resume": persons.resume,
    "exclude": persons.exclude,
    "include": persons.include,
    "let-in": persons.let_in,
}
BACKUPS = (
    "The name is replaced by a pseudonym and taken out of the database for good. Backups, files "
    "that were downloaded before and the votes that trainings and reports were made of still hold "
    "it."
)
_NOTES = {
    AnnotatorStatus.ACTIVE: "Gets items and may vote.",
    AnnotatorStatus.PAUSED: "Gets no items and may not vote for now. The votes so far count.",
    AnnotatorStatus.EXCLUDED: (
        "Gets no items and may not vote. No vote counts; others are asked in their place."
    ),
    AnnotatorStatus.ERASED: "The name is erased. The rest is kept under this pseudonym.",
}
_BY_ITSELF = (
    "Nobody paused them: too many catch trials were failed. Resume lets them go on and fail as "
    "many again."
)
_BY_LINK = (
    "Votes are left out since a personal link made by {} was opened: everybody with this link can "
    "answer in this name. Include counts them, where there is still room, and those to come."
)
_STEPS = {
    Step.CONSENT: "Has not agreed yet.",
    Step.INSTRUCTIONS: "Is reading the instructions.",
    Step.PRACTICE: "Is practising.",
    Step.CHECK: "Is answering the questions on the instructions.",
    Step.DONE: "Is done.",
    Step.DECLINED: "Did not consent.",
    Step.FAILED: "Did not pass the questions on the instructions; you can let them in.",
}
_TAKING_PART = (AnnotatorStatus.ACTIVE, AnnotatorStatus.PAUSED)


def router(context: StudyContext) -> APIRouter:
    """The routes below /studio/people."""
    made = _People(context=context)
    handlers = {step: made.step(step) for step in STEPS}
    handlers |= {"erase": made.erase, "link": made.link}
    post = {f"{PAGE}/{{study}}/{name}": handler for name, handler in handlers.items()}
    return routes(get={PAGE: made.page}, post=post)


@dataclass(frozen=True, kw_only=True)
class _People:
    context: StudyContext

    def page(self, request: Request, person: str = "", ask: str = "", at: int = 1) -> Response:
        """Return a page of the list and one person in it.

        Args:
            ask: About them, exclude or erase.
        """
        found = self._found(request)
        if found is None:
            return page("people.html", study=None)
        study, people = found
        chosen = next((one for one in people if one.name == person), None)
        n_pages = max(1, -(-len(people) // ROWS))
        at = min(max(1, at), n_pages)
        values: dict[str, Any] = {"effect": None, "ask": ask if chosen else "", "chosen": chosen}
        if chosen and ask == "exclude":
            values["effect"] = effect(
                persons.preview_exclusion(
                    self.context.store, study.id, chosen.name, self.context.images
                )
            )
        now = datetime.now(UTC)
        return page(
            "people.html",
            study=study,
            lead=lead(study, people),
            people=people[(at - 1) * ROWS : at * ROWS],
            at=at,
            n_pages=n_pages,
            imported=study.id.startswith(imported.PREFIX),
            may=may(chosen) if chosen else (),
            facts=person_facts(chosen) if chosen else (),
            backups=BACKUPS,
            whose=whose(study, self.context.account(request)),
            failed=caught,
            when=lambda then: when(then, now),
            link=lambda **to: "?" + urlencode({"study": study.id, "at": at, **to}),
            **values,
        )

    def _found(self, request: Request) -> tuple[Study, list[AnnotatorRow]] | None:
        wanted = request.query_params.get("study", "")
        if wanted.startswith(imported.PREFIX):
            brought = imported.find(self.context.imports, wanted)
            return imported.study_of(wanted, brought), imported.people_of(brought)
        chosen = self.context.in_hand(request)
        if not chosen:
            return None
        store = self.context.store
        return get_study(store, chosen), persons.list_people(store, chosen)

    def step(self, name: str) -> Callable[..., Response]:
        """Return the handler of a button that needs no more than a name."""

        def handler(request: Request, study: str, form: Fields) -> Response:
            store, person = self.context.store_for(request), _named(form)
            STEPS[name](store, study, person, datetime.now(UTC))
            return _back(study, person, form)

        return handler

    def link(self, request: Request, study: str, form: Fields) -> Response:
        """Return the page with a new link for an annotator who lost theirs; it is shown once."""
        store, person = self.context.store_for(request), _named(form)
        secret = persons.new_link(store, study, person, datetime.now(UTC))
        address = str(request.base_url).rstrip("/") + link_of(secret)
        back = _address(study, person, form)
        told: dict[str, Any] = {"person": person, "link": address, "back": back, "say": PLAIN}
        told["left_out"] = self.context.account(request) is not None
        return page("person_link.html", **told)

    def erase(self, request: Request, study: str, form: Fields) -> Response:
        """Take an annotator's name out for good; the form repeats it in `typed`."""
        store, person = self.context.store_for(request), _named(form)
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


# ------------------------------------------------------------------ what is said of people


def lead(study: Study, people: Sequence[AnnotatorRow]) -> str:
    """Return how many take part, how much they have done, and who needs a look."""
    if not people:
        return ""
    votes, done = sum(one.done for one in people), sum(one.step is Step.DONE for one in people)
    by_programs = "draw of the model" if study.spec.voter else "simulated annotator"
    who = by_programs if study.spec.simulated else "annotator"
    several = who.replace("draw", "draws") if study.spec.voter else f"{who}s"
    said = f"{counted(len(people), who, several)}, {counted(votes, 'vote')}"
    said += f", {done:,} done" if done else ""
    warned = sum(one.warned for one in people)
    failing = f" {warned:,} of them failed catch trials and should be looked at." if warned else ""
    return f"{said}.{failing}"


def caught(person: AnnotatorRow) -> str:
    """Return how many catch trials an annotator failed."""
    return f"failed {person.catch_failed:,} of {counted(person.catch_answered, 'catch trial')}"


def person_facts(person: AnnotatorRow) -> list[str]:
    """Explain the status of one person, and list what else is known of them."""
    facts = [_NOTES[person.status], _STEPS.get(person.step, "")]
    if person.link_by is not None:
        facts.append(_BY_LINK.format(person.link_by))
    if person.paused_by_itself:
        facts.append(_BY_ITSELF)
    if person.catch_answered:
        facts.append(f"{caught(person).capitalize()}.")
    if person.completion_code:
        facts.append(f"Completion code: {person.completion_code}.")
    if person.keep_votes is not None:
        agreed = "agreed" if person.keep_votes else "did not agree"
        facts.append(f"They {agreed} that their answers are kept if they are erased.")
    return [fact for fact in facts if fact]


def may(person: AnnotatorRow) -> tuple[str, ...]:
    """List the acts on an annotator: pause, resume, exclude, include, let-in, link, erase."""
    status = person.status
    makes_sense = {
        "pause": status is AnnotatorStatus.ACTIVE,
        "resume": status is AnnotatorStatus.PAUSED,
        "include": status is AnnotatorStatus.EXCLUDED
        or (status is AnnotatorStatus.ACTIVE and person.link_by is not None),
        "let-in": person.step is Step.FAILED and status in _TAKING_PART,
        "exclude": status in _TAKING_PART,
        "link": status is not AnnotatorStatus.ERASED and not person.simulated,
        "erase": True,  # again: of votes that were kept, or of traces in the files
    }
    return tuple(name for name, one in makes_sense.items() if one)


def effect(effect: Effect) -> str:
    """Return what an exclusion would do, in sentences and as rates before and after."""
    facts = [
        f"{counted(effect.n_votes, 'vote')} would count no more.",
        f"{counted(effect.n_short, 'item')} would no longer have all votes and be given to others.",
        f"{counted(effect.n_undecided, 'majority label')} would become undecided, "
        f"{effect.n_flipped:,} would become the opposite.",
        effect.ranking or "The ranking of the models would stay as it is.",
    ]
    return fill("effect.html", effect=effect, facts=facts)
