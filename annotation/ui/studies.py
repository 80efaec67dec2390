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
        return [
            self.chosen,
            self.seen,
            self.table,
            self.details,
            self.head,
            self.link,
            self.start,
            self.pause,
            self.close,
            self.coverage,
            self.people,
            self.files,
        ]


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
    chosen = gr.Textbox(visible=False, elem_id="study-chosen")
    seen = gr.Textbox(visible=False)
    table = html("studies-table", js_on_load=PICK, container=True, padding=True)
    with gr.Column(visible=False) as details:
        with gr.Row(elem_classes="st-study"):
            head = html("study-head", min_width=320)
            start = gr.Button("Start", variant="primary", elem_id="study-start", **_SMALL)
            pause = gr.Button("Pause", elem_id="study-pause", **_SMALL)
            close = gr.Button("Close", variant="stop", elem_id="study-close", **_SMALL)
        link = gr.Textbox(
            label="Link for annotators",
            interactive=False,
            buttons=["copy"],
            elem_id="study-link",
        )
        with gr.Row():
            with gr.Column(min_width=320):
                coverage = gr.Plot(show_label=False, elem_id="study-coverage")
            with gr.Column(min_width=320):
                people = html("study-people", container=True, padding=True)
                files = html("study-files", container=True, padding=True)
        protocol = protocol_panel.draw()
    return _Panel(
        chosen=chosen,
        seen=seen,
        table=table,
        details=details,
        head=head,
        link=link,
        start=start,
        pause=pause,
        close=close,
        coverage=coverage,
        people=people,
        files=files,
        protocol=protocol,
    )


def _wire_panel(context: StudyContext, panel: _Panel) -> None:
    def pick(event: gr.EventData, request: gr.Request) -> list[Any]:
        return _look(context, event.study, "", request)

    def tick(chosen: str, seen: str, request: gr.Request) -> list[Any]:
        return _look(context, chosen, seen, request)

    def put(status: StudyStatus) -> Callable[..., list[Any]]:
        def handler(chosen: str, request: gr.Request) -> list[Any]:
            try:
                studies.set_status(context.store, chosen, status, by=request.username)
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
        filled, by = form.named(values), request.username
        try:
            folders = study_form.known_folders(context, filled.sets)
            spec = study_form.spec_of(filled.settings)
            made = studies.create_study(
                context.store, spec, folders, context.images, gold=filled.gold, by=by
            )
        except AnnotationError as error:
            return [study_view.problems(str(error)), gr.skip(), *_unchanged(panel)]
        return ["", "", *_look(context, made.id, "", request)]

    def look_ahead(*values: Any) -> str:
        filled = form.named(values)
        try:
            folders = study_form.known_folders(context, filled.sets)
            return study_form.preview_of(folders, filled.people, filled.settings)
        except AnnotationError as error:
            return study_view.problems(str(error))

    settings = form.settings
    settings["task"].change(study_form.by_task, settings["task"], form.of_one_task, **QUIETLY)
    deciding = [form.sets, form.people, *(settings[name] for name in study_form.DECIDING)]
    gr.on([field.change for field in deciding], look_ahead, form.inputs, form.preview, **QUIETLY)
    form.create.click(
        create,
        form.inputs,
        [form.problems, settings["name"], *panel.outputs],
        api_visibility="private",
        concurrency_limit=1,
    )


def _look(context: StudyContext, chosen: str, seen: str, request: gr.Request) -> list[Any]:
    """New values for `_Panel.outputs`; none where what is on screen (`seen`) still holds."""
    rows = [(one, studies.progress(context.store, one.id)) for one in _all(context)]
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


def _all(context: StudyContext) -> list[Study]:
    return studies.list_studies(context.store)


def _unchanged(panel: _Panel) -> list[Any]:
    return [gr.skip()] * len(panel.outputs)


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
