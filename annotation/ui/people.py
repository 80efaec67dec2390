"""The People page: who takes part in a study, whose votes count, and erasing somebody."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from typing import Any

import gradio as gr

from annotation.domain import AnnotatorRow, AnnotatorStatus, Step
from annotation.errors import AnnotationError, ConflictError
from annotation.study import labelling as studies
from annotation.study import participants as persons
from annotation.ui import StudyContext, people_view, study_view
from annotation.ui.study_form import html

TICK = 5.0  # seconds between two looks
GONE = "gone"  # what is on screen is somebody whom the last look did not find any more
QUIETLY: dict[str, Any] = {"queue": False, "api_visibility": "private", "show_progress": "hidden"}
# Queued, since only then does an error come as a message.
TELLING: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
# Rows of the table are buttons; a press reaches Python as the event "pick".
PICK = """element.addEventListener('click', (event) => {
  const button = event.target.closest('[data-person]');
  if (button) trigger('pick', {person: button.dataset.person});
});"""
KEEP, REMOVE = "keep", "remove"
VOTES = [("Keep their votes under the pseudonym", KEEP), ("Remove their votes", REMOVE)]

Loads = list[tuple[Callable[..., Any], list[Any]]]
Change = Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class _Panel:
    """The components that show people; `chosen` holds a name, `seen` what is on screen.

    The order is that of the values `_look` and `_asked` return.
    """

    study: gr.Dropdown
    chosen: gr.Textbox
    seen: gr.Textbox
    table: gr.HTML
    details: gr.Column
    head: gr.HTML
    pause: gr.Button
    resume: gr.Button
    exclude: gr.Button
    include: gr.Button
    let_in: gr.Button
    erase: gr.Button
    exclude_box: gr.Column
    effect: gr.HTML
    erase_box: gr.Column
    typed: gr.Textbox
    exclude_now: gr.Button
    exclude_not: gr.Button
    votes: gr.Radio
    erase_now: gr.Button
    erase_not: gr.Button

    @property
    def outputs(self) -> list[Any]:
        """What changes by itself."""
        return list(vars(self).values())[:12]

    @property
    def boxes(self) -> list[Any]:
        """What opens when a question is asked."""
        return [self.exclude_box, self.effect, self.erase_box, self.typed]


def render(context: StudyContext) -> Loads:
    """Draw the page and tie it to the store; returns what to run when it opens."""
    gr.Markdown("# People")
    panel = _draw()
    _wire_table(context, panel)
    _wire_steps(context, panel)
    _wire_exclusion(context, panel)
    _wire_erasure(context, panel)

    def open_page(request: gr.Request) -> list[Any]:
        return _look(context, request.query_params.get("study", ""), "", "")

    return [(open_page, panel.outputs)]


_SMALL: dict[str, Any] = {"scale": 0, "min_width": 110}
_WIDE: dict[str, Any] = {"scale": 0, "min_width": 190}


def _draw() -> _Panel:
    parts: dict[str, Any] = {
        "study": gr.Dropdown(label="Study", elem_id="people-study", filterable=False),
        "chosen": gr.Textbox(visible=False),
        "seen": gr.Textbox(visible=False),
        "table": html("people-table", js_on_load=PICK, container=True, padding=True),
    }
    with gr.Column(visible=False, elem_id="people-details") as parts["details"]:
        with gr.Row(elem_classes="st-study"):
            parts["head"] = html("person-head", min_width=320)
            parts |= {
                name: gr.Button(label, variant=variant, elem_id=f"person-{name}", **_SMALL)
                for name, label, variant in (
                    ("pause", "Pause", "secondary"),
                    ("resume", "Resume", "primary"),
                    ("exclude", "Exclude…", "secondary"),
                    ("include", "Include", "primary"),
                    ("let_in", "Let in", "primary"),
                    ("erase", "Erase…", "stop"),
                )
            }
        parts |= _draw_exclusion()
        parts |= _draw_erasure()
    return _Panel(**parts)


def _draw_exclusion() -> dict[str, Any]:
    with gr.Column(visible=False) as box:
        effect = html("person-effect", container=True, padding=True)
        with gr.Row():
            now = gr.Button("Exclude now", variant="stop", elem_id="person-exclude-now", **_WIDE)
            cancel = gr.Button("Cancel", elem_id="person-exclude-not", **_SMALL)
    return {"exclude_box": box, "effect": effect, "exclude_now": now, "exclude_not": cancel}


def _draw_erasure() -> dict[str, Any]:
    with gr.Column(visible=False) as box:
        gr.Markdown(people_view.BACKUPS)
        votes = gr.Radio(VOTES, value=REMOVE, label="Their votes", elem_id="person-votes")
        typed = gr.Textbox(
            label="Type the name to confirm", max_lines=1, elem_id="person-typed-name"
        )
        with gr.Row():
            now = gr.Button("Erase for good", variant="stop", elem_id="person-erase-now", **_WIDE)
            cancel = gr.Button("Cancel", elem_id="person-erase-not", **_SMALL)
    parts = {"erase_box": box, "typed": typed, "votes": votes}
    return {**parts, "erase_now": now, "erase_not": cancel}


def _wire_table(context: StudyContext, panel: _Panel) -> None:
    def choose(study: str | None) -> list[Any]:
        return [*_look(context, study or "", "", ""), *_asked()]

    def pick(event: gr.EventData, study: str) -> list[Any]:
        return [*_look(context, study, event.person, ""), *_asked()]

    def tick(study: str | None, chosen: str, seen: str) -> list[Any]:
        return _look(context, study or "", chosen, seen, patient=seen != GONE)

    shown = [*panel.outputs, *panel.boxes]
    panel.study.input(choose, panel.study, shown, **QUIETLY)
    panel.table.pick(pick, panel.study, shown, **QUIETLY)
    place = [panel.study, panel.chosen, panel.seen]
    gr.Timer(TICK).tick(tick, place, panel.outputs, **QUIETLY)


def _wire_steps(context: StudyContext, panel: _Panel) -> None:
    def step(change: Change) -> Callable[..., list[Any]]:
        def handler(study: str, chosen: str, request: gr.Request) -> list[Any]:
            _told(change, context.store.by(request.username), study, chosen, datetime.now(UTC))
            return [*_look(context, study, chosen, ""), *_asked()]

        return handler

    for button, change in (
        (panel.pause, persons.pause),
        (panel.resume, persons.resume),
        (panel.exclude_now, persons.exclude),
        (panel.include, persons.include),
        (panel.let_in, persons.let_in),
    ):
        shown = [*panel.outputs, *panel.boxes]
        button.click(step(change), [panel.study, panel.chosen], shown, **TELLING)


def _wire_exclusion(context: StudyContext, panel: _Panel) -> None:
    def ask(study: str, chosen: str) -> list[Any]:
        effect = _told(persons.preview_exclusion, context.store, study, chosen, context.images)
        return _asked(effect=people_view.effect(effect))

    panel.exclude.click(ask, [panel.study, panel.chosen], panel.boxes, **TELLING)
    panel.exclude_not.click(_asked, None, panel.boxes, **QUIETLY)


def _wire_erasure(context: StudyContext, panel: _Panel) -> None:
    def ask(study: str, chosen: str) -> list[Any]:
        person = _person(context, study, chosen)
        agreed = person.keep_votes if person else None
        choices = VOTES if agreed is not False else VOTES[1:]
        return [*_asked(erase=True), gr.Radio(choices, value=KEEP if agreed else REMOVE)]

    def erase(study: str, chosen: str, typed: str, votes: str, request: gr.Request) -> list[Any]:
        _told(_require_same, typed, chosen)
        store, now = context.store.by(request.username), datetime.now(UTC)
        erased = _told(persons.erase, store, study, chosen, now, keep_votes=votes == KEEP)
        return [*_look(context, study, erased.name, ""), *_asked()]

    shown = [*panel.outputs, *panel.boxes]
    asked = [*panel.boxes, panel.votes]
    panel.erase.click(ask, [panel.study, panel.chosen], asked, **QUIETLY)
    panel.erase_not.click(_asked, None, panel.boxes, **QUIETLY)
    place = [panel.study, panel.chosen, panel.typed, panel.votes]
    panel.erase_now.click(erase, place, shown, **TELLING)


def _require_same(typed: str, name: str) -> None:
    if typed.strip() != name:
        raise ConflictError(f"To erase {name}, type exactly that name; got {typed.strip()!r}.")


def _told(do: Change, *arguments: Any, **settings: Any) -> Any:
    """What `do` returns; an error of ours becomes a message on the page."""
    try:
        return do(*arguments, **settings)
    except AnnotationError as error:
        raise gr.Error(escape(str(error)), print_exception=False) from error


def _asked(*, effect: str = "", erase: bool = False) -> list[Any]:
    """New values for `_Panel.boxes`: at most one of the two questions is open."""
    return [gr.Column(visible=bool(effect)), effect, gr.Column(visible=erase), ""]


def _look(
    context: StudyContext, study_id: str, name: str, seen: str, *, patient: bool = False
) -> list[Any]:
    """New values for `_Panel.outputs`; none where what is on screen (`seen`) still holds.

    patient: leave somebody who is not found on screen until the next look, since a press that
        erases them may be on its way back with their pseudonym.
    """
    known = studies.list_studies(context.store)
    study = study_view.current(known, study_id)
    if study is None:
        nothing = [gr.Dropdown(choices=[], value=None), "", "", people_view.NO_STUDY]
        return [*nothing, gr.Column(visible=False), *[gr.skip()] * 7]
    people = persons.list_people(context.store, study.id)
    person = _named(people, name)
    if patient and name and person is None:
        return [gr.skip(), gr.skip(), GONE, *[gr.skip()] * 9]
    table = people_view.people_table(study, people, name, datetime.now(UTC))
    head = people_view.person_head(person) if person else ""
    choices = [study_view.choice(one) for one in known]
    digest = sha256("\n".join([str(choices), study.id, table, head]).encode()).hexdigest()
    if digest == seen:
        return [gr.skip()] * 12
    selector = gr.Dropdown(choices=choices, value=study.id)
    shown = [selector, person.name if person else "", digest, table]
    return [*shown, gr.Column(visible=person is not None), head, *_buttons(person)]


def _person(context: StudyContext, study: str, name: str) -> AnnotatorRow | None:
    return _named(persons.list_people(context.store, study), name)


def _named(people: list[AnnotatorRow], name: str) -> AnnotatorRow | None:
    return next((one for one in people if one.name == name), None)


def _buttons(person: AnnotatorRow | None) -> list[Any]:
    """Pause, Resume, Exclude, Include, Let in, Erase: those that make sense for `person`."""
    status = person.status if person else AnnotatorStatus.ERASED
    taking_part = (AnnotatorStatus.ACTIVE, AnnotatorStatus.PAUSED)
    visible = [
        status is AnnotatorStatus.ACTIVE,
        status is AnnotatorStatus.PAUSED,
        status in taking_part,
        status is AnnotatorStatus.EXCLUDED,
        person is not None and person.step is Step.FAILED and status in taking_part,
        status is not AnnotatorStatus.ERASED or bool(person and person.done),
    ]
    return [gr.Button(visible=one) for one in visible]
