"""The Studies page: make a study, follow it, start and stop it, take the votes out."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from typing import Any

import gradio as gr

from annotation.domain import Study, StudyStatus
from annotation.errors import AnnotationError
from annotation.study import labelling as studies
from annotation.study.create import examine, keep_study
from annotation.ui import StudyContext, protocol_panel, study_form, study_view
from annotation.ui.protocol_panel import ProtocolPanel
from annotation.ui.study_form import StudyForm, html

TICK = 5.0  # seconds between two looks
QUIETLY: dict[str, Any] = {"queue": False, "api_visibility": "private", "show_progress": "hidden"}
# Queued, since only then does an error come as a message.
TELLING: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
# Rows of the table are buttons; a press reaches Python as the event "pick".
PICK = """element.addEventListener('click', (event) => {
  const button = event.target.closest('[data-study]');
  if (button) trigger('pick', {study: button.dataset.study});
});"""

Loads = list[tuple[Callable[..., Any], list[Any]]]


@dataclass(frozen=True, kw_only=True)
class _Panel:
    """The components that show studies; `chosen` holds a study's id, `seen` what is on screen."""

    chosen: gr.Textbox
    seen: gr.Textbox
    table: gr.HTML
    details: gr.Column
    head: gr.HTML
    link: gr.Textbox
    start: gr.Button
    pause: gr.Button
    close: gr.Button
    coverage: gr.Plot
    people: gr.HTML
    files: gr.HTML
    protocol: ProtocolPanel

    @property
    def outputs(self) -> list[Any]:
        """What `_look` returns a value for, in that order."""
        return list(vars(self).values())[:-1]


def render(context: StudyContext) -> Loads:
    """Draw the page and tie it to the store; returns what to run when it opens."""
    gr.Markdown("# Studies")
    panel = _draw_panel()
    with gr.Accordion("New study", open=False, elem_id="new-study"):
        form = study_form.draw()
    _wire_panel(context, panel)
    protocol_panel.wire(context, panel.chosen, panel.protocol)
    _wire_form(context, panel, form)

    def open_page(request: gr.Request) -> list[Any]:
        return _look(context, request.query_params.get("study", ""), "", request)

    def open_form() -> Any:
        choices = [(label, str(folder)) for label, folder in context.find_sets()]
        return gr.CheckboxGroup(choices=choices, info=None if choices else _NO_SETS)

    return [(open_page, panel.outputs), (open_form, [form.sets])]


_NO_SETS = "There is no reconstruction set in the data folder yet; make one first."


_SMALL: dict[str, Any] = {"scale": 0, "min_width": 110}


def _draw_panel() -> _Panel:
    parts: dict[str, Any] = {
        "chosen": gr.Textbox(visible=False, elem_id="study-chosen"),
        "seen": gr.Textbox(visible=False),
        "table": html("studies-table", js_on_load=PICK, container=True, padding=True),
    }
    with gr.Column(visible=False) as parts["details"]:
        with gr.Row(elem_classes="st-study"):
            parts["head"] = html("study-head", min_width=320)
            parts |= {
                name: gr.Button(name.title(), variant=variant, elem_id=f"study-{name}", **_SMALL)
                for name, variant in (
                    ("start", "primary"),
                    ("pause", "secondary"),
                    ("close", "stop"),
                )
            }
        parts["link"] = gr.Textbox(
            label="Link for annotators", interactive=False, buttons=["copy"], elem_id="study-link"
        )
        with gr.Row():
            with gr.Column(min_width=320):
                parts["coverage"] = gr.Plot(show_label=False, elem_id="study-coverage")
            with gr.Column(min_width=320):
                parts["people"] = html("study-people", container=True, padding=True)
                parts["files"] = html("study-files", container=True, padding=True)
        parts["protocol"] = protocol_panel.draw()
    return _Panel(**parts)


def _wire_panel(context: StudyContext, panel: _Panel) -> None:
    def pick(event: gr.EventData, request: gr.Request) -> list[Any]:
        return _look(context, event.study, "", request)

    def tick(chosen: str, seen: str, request: gr.Request) -> list[Any]:
        return _look(context, chosen, seen, request)

    def put(status: StudyStatus) -> Callable[..., list[Any]]:
        def handler(chosen: str, request: gr.Request) -> list[Any]:
            try:
                studies.set_status(context.store.by(request.username), chosen, status)
            except AnnotationError as error:
                raise gr.Error(escape(str(error)), print_exception=False) from error
            return _look(context, chosen, "", request)

        return handler

    panel.table.pick(pick, None, panel.outputs, **QUIETLY)
    gr.Timer(TICK).tick(tick, [panel.chosen, panel.seen], panel.outputs, **QUIETLY)
    panel.start.click(put(StudyStatus.RUNNING), panel.chosen, panel.outputs, **TELLING)
    panel.pause.click(put(StudyStatus.PAUSED), panel.chosen, panel.outputs, **TELLING)
    panel.close.click(put(StudyStatus.CLOSED), panel.chosen, panel.outputs, **TELLING)


def _wire_form(context: StudyContext, panel: _Panel, form: StudyForm) -> None:
    def create(request: gr.Request, *values: Any) -> list[Any]:
        filled, store = form.named(values), context.store.by(request.username)
        try:
            folders = study_form.known_folders(context, filled.sets)
            spec = study_form.spec_of(filled.settings)
            found = examine(spec, folders, gold=filled.gold)
            made = keep_study(store, found, context.images)
        except AnnotationError as error:
            same = [gr.skip()] * (2 + len(panel.outputs))
            return [study_view.problems(str(error)), *same]
        said = study_view.made(made.name, found.notes, found.people_needed)
        return ["", said, "", *_look(context, made.id, "", request)]

    def look_ahead(*values: Any) -> str:
        filled = form.named(values)
        try:
            folders = study_form.known_folders(context, filled.sets)
            settings = filled.settings
            return study_form.preview_of(context.store, folders, filled.people, settings)
        except AnnotationError as error:
            return study_view.problems(str(error))

    settings = form.settings
    chosen = [settings["task"], settings["headline"]]
    settings["task"].change(study_form.by_task, chosen, form.of_one_task, **QUIETLY)
    deciding = [form.sets, form.people, *(settings[name] for name in study_form.DECIDING)]
    gr.on([field.change for field in deciding], look_ahead, form.inputs, form.preview, **QUIETLY)
    form.create.click(
        create,
        form.inputs,
        [form.problems, form.preview, settings["name"], *panel.outputs],
        api_visibility="private",
        concurrency_limit=1,
    )


def _look(context: StudyContext, chosen: str, seen: str, request: gr.Request) -> list[Any]:
    """New values for `_Panel.outputs`; none where what is on screen (`seen`) still holds."""
    rows = [
        (one, studies.progress(context.store, one.id))
        for one in studies.list_studies(context.store)
    ]
    now, note = datetime.now(UTC), context.note()
    study = study_view.current([one for one, _ in rows], chosen)
    if study is None:
        return [
            "",
            "",
            study_view.studies_table([], "", note),
            gr.Column(visible=False),
            *[gr.skip()] * 8,
        ]
    progress = next(how_far for one, how_far in rows if one.id == study.id)
    texts = [
        study_view.studies_table(rows, study.id, note),
        study_view.study_head(study),
        study_view.people_table(progress.annotators, now),
    ]
    digest = sha256("\n".join(texts).encode()).hexdigest()
    if digest == seen:
        return [gr.skip()] * 12
    table, head, people = texts
    shown = [study.id, digest, table, gr.Column(visible=True), head]
    shown += [_link(study, context.base_url or _base_url(request)), *_buttons(study)]
    return [*shown, study_view.coverage_figure(progress), people, study_view.downloads(study.id)]


def _base_url(request: gr.Request) -> str:
    host = request.headers.get("host", "")
    scheme = request.headers.get("x-forwarded-proto", request.request.url.scheme)
    return f"{scheme}://{host}"


def _link(study: Study, base_url: str) -> Any:
    joinable = not study.spec.simulated
    return gr.Textbox(
        value=f"{base_url.rstrip('/')}/join/{study.token}" if joinable else "–",
        info=study_view.link_note(study),
    )


def _buttons(study: Study) -> list[Any]:
    status = study.status
    return [
        gr.Button(
            "Reopen" if status is StudyStatus.CLOSED else "Start",
            visible=status is not StudyStatus.RUNNING,
        ),
        gr.Button(visible=status is StudyStatus.RUNNING),
        gr.Button(visible=status is not StudyStatus.CLOSED),
    ]
