"""The page Compare: does a metric rank models as people do?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import gradio as gr

from semsim import jobs
from semsim.errors import DataError, SemsimError
from semsim.jobs import Job, JobState
from semsim.ui import ScienceContext, StudyChoice, compare_view, jobpanel
from semsim.ui.compare_data import (
    Comparison,
    image_choices,
    live_download,
    missing_weights,
    model_choices,
    read_comparison,
    scoring_job,
    start_download,
)
from semsim.ui.compare_plot import scatter
from semsim.ui.jobpanel import JobPanel, errors_shown
from semsim.weights import WeightFile

# Plotly tells its own clicks only to JavaScript; this hands the clicked model on to a handler.
_BRIDGE = """
function attach() {
  const plot = document.querySelector('#compare-plot .js-plotly-plot');
  if (plot && plot.on && !plot.__semsim) {
    plot.__semsim = true;
    plot.on('plotly_click', (data) => trigger('point', {model: data.points[0].customdata}));
  }
}
new MutationObserver(attach).observe(document.body, {childList: true, subtree: true});
attach();
"""
_QUIET: dict[str, Any] = {"queue": False, "api_visibility": "private"}
_TELLING: dict[str, Any] = {"api_visibility": "private"}  # queued: its errors come as a message
_ENDED = {JobState.DONE, JobState.FAILED, JobState.STOPPED, JobState.LOST}


@dataclass(frozen=True, kw_only=True)
class _Page:
    """The components that change, in the order their new values come in."""

    study: gr.Dropdown
    notice: gr.HTML
    body: gr.Column
    agreement: gr.HTML
    metric: gr.Dropdown
    plot: gr.Plot
    model: gr.Dropdown
    model_images: gr.HTML
    image: gr.Dropdown
    order: gr.Dropdown
    gallery: gr.HTML
    models: gr.HTML
    unavailable: gr.HTML
    weights_row: gr.Row
    weights: gr.Dropdown
    fetch: gr.Button
    job: gr.Textbox
    download: gr.Textbox

    @property
    def outputs(self) -> list[Any]:
        return [getattr(self, field.name) for field in fields(self)]

    @property
    def choices(self) -> list[Any]:
        """What a person has chosen: the inputs of every handler, as `Chosen` takes them."""
        return [self.study, self.metric, self.model, self.image, self.order]


@dataclass(frozen=True)
class Chosen:
    """What a person has chosen on the page; None where nothing."""

    study: str | None = None
    metric: str | None = None
    model: str | None = None
    image: str | None = None
    order: str | None = None


def render(context: ScienceContext) -> list[tuple[Callable[..., Any], list[Any]]]:
    """Lay the page out where the caller stands; returns what it does when it is loaded."""
    gr.HTML(compare_view.STYLE, apply_default_css=False)
    gr.Markdown("# Compare\nDoes a metric rank models the way people do?")
    study = gr.Dropdown([], label="Study", elem_id="compare-study")
    notice = _html("notice")
    scoring = jobpanel.build("compare-job")
    with gr.Column(visible=False) as body:
        parts = {**_ranking_section(), **_gallery_section(), **_models_section()}
        weights, fetching = _weights_section()
    page = _Page(study=study, notice=notice, body=body, **parts, **weights, **_hidden())
    refresh = _wire(context, page, scoring, fetching)

    def load(request: gr.Request) -> list[Any]:
        asked = dict(request.query_params)
        learned = asked.get("semsim")  # the link from a finished training
        return refresh(asked.get("study"), f"semsim:{learned}" if learned else None)

    return [(load, [*page.outputs, *scoring.outputs, *fetching.outputs])]


def page_values(context: ScienceContext, chosen: Chosen) -> tuple[dict[str, Any], Job | None]:
    """New values of the page's components by name, and the job that scores the study, if any.

    Starts that job where scores are missing and nobody has tried yet.
    """
    studies = context.studies()
    study = _pick(studies, chosen.study)
    options = [(_study_label(one), one.id) for one in studies]
    select = gr.Dropdown(options, value=study.id if study else None)
    if study is None:
        return {
            "study": select,
            "notice": compare_view.NO_STUDY,
            "body": gr.Column(visible=False),
        }, None
    comparison = read_comparison(context, study)
    job = scoring_job(context, comparison)
    missing = missing_weights(context)
    return {
        "study": select,
        "body": gr.Column(visible=True),
        **_study_values(comparison, chosen),
        "weights_row": gr.Row(visible=bool(missing)),
        "weights": gr.Dropdown(
            [(_weight_label(entry), entry.name) for entry in missing],
            value=missing[0].name if missing else None,
        ),
    }, job


def _study_values(comparison: Comparison, chosen: Chosen) -> dict[str, Any]:
    metric, order = comparison.spec(chosen.metric), comparison.spec(chosen.order)
    metrics = [(spec.title, spec.name) for spec in comparison.specs]
    models, images = model_choices(comparison.models), image_choices(comparison.labels)
    model, image = _kept(chosen.model, models), _kept(chosen.image, images)
    if image is None and images:
        image = images[0][1]
    return {
        "notice": compare_view.notice_html(comparison),
        "agreement": compare_view.agreement_html(comparison),
        "metric": gr.Dropdown(metrics, value=metric.name if metric else None),
        "plot": scatter(comparison, metric),
        "model": gr.Dropdown(models, value=model),
        "model_images": compare_view.model_images_html(comparison, model),
        "image": gr.Dropdown(images, value=image),
        "order": gr.Dropdown(metrics, value=order.name if order else None),
        "gallery": compare_view.gallery_html(comparison, image, order),
        "models": compare_view.models_html(comparison),
        "unavailable": compare_view.unavailable_html(comparison),
    }


def _wire(
    context: ScienceContext, page: _Page, scoring: JobPanel, fetching: JobPanel
) -> Callable[..., list[Any]]:
    """Tie the components together; returns the handler that draws everything anew."""
    everything = [*page.outputs, *scoring.outputs, *fetching.outputs]

    def refresh(*choices: str | None) -> list[Any]:
        try:
            values, job = page_values(context, Chosen(*choices))
        except SemsimError as error:
            notice = jobpanel.alert_html(error)
            values, job = {"notice": notice, "body": gr.Column(visible=False)}, None
        download = live_download(context)
        values |= {"job": job.id if job else "", "download": download.id if download else ""}
        drawn = [values.get(field.name, gr.skip()) for field in fields(page)]
        return [*drawn, *jobpanel.show(job), *jobpanel.show(download)]

    def show_metric(*choices: str | None) -> Any:
        comparison, chosen = _read(context, choices)
        return scatter(comparison, comparison.spec(chosen.metric))

    def show_model(*choices: str | None) -> str:
        comparison, chosen = _read(context, choices)
        return compare_view.model_images_html(comparison, chosen.model)

    def show_gallery(*choices: str | None) -> str:
        comparison, chosen = _read(context, choices)
        return compare_view.gallery_html(comparison, chosen.image, comparison.spec(chosen.order))

    def fetch(name: str | None) -> list[Any]:
        with errors_shown():
            job = start_download(context, name or "")
        return [job.id, *jobpanel.show(job)]

    page.study.input(refresh, page.study, everything, **_QUIET)
    page.metric.input(show_metric, page.choices, page.plot, **_TELLING)
    page.model.input(show_model, page.choices, page.model_images, **_TELLING)
    page.image.input(show_gallery, page.choices, page.gallery, **_TELLING)
    page.order.input(show_gallery, page.choices, page.gallery, **_TELLING)
    page.fetch.click(fetch, page.weights, [page.download, *fetching.outputs], **_TELLING)
    _wire_clicks(context, page)
    for panel, job in ((scoring, page.job), (fetching, page.download)):
        _when_it_ends(context, panel, job).change(refresh, page.choices, everything, **_QUIET)
    return refresh


def _wire_clicks(context: ScienceContext, page: _Page) -> None:
    """A click on a point of the plot chooses its model."""
    bridge = gr.HTML("", html_template="<span></span>", js_on_load=_BRIDGE)

    def clicked(study: str | None, event: gr.EventData) -> tuple[Any, str]:
        comparison, chosen = _read(context, (study, None, str(event.model)))
        return chosen.model, compare_view.model_images_html(comparison, chosen.model)

    bridge.point(clicked, page.study, [page.model, page.model_images], **_TELLING)


def _when_it_ends(context: ScienceContext, panel: JobPanel, job: gr.Textbox) -> gr.Textbox:
    """A hidden text that changes when the panel's job ends."""
    ended = gr.Textbox("", visible="hidden", show_label=False)
    jobpanel.wire(
        panel,
        job,
        context.data / "jobs",
        also=lambda live: [_ending(live)],
        also_outputs=[ended],
    )
    return ended


def _ending(job: Job | None) -> str:
    if job is None or jobs.state(job) not in _ENDED:
        return ""
    return f"{job.id} {jobs.state(job).value}"


def _ranking_section() -> dict[str, Any]:
    agreement = _html("agreement")
    gr.Markdown("## One metric against people\nA point is a model; click it to see its images.")
    with gr.Row():
        metric = gr.Dropdown([], label="Metric", elem_id="compare-metric")
        model = gr.Dropdown([], label="Images of model", elem_id="compare-model")
    plot = gr.Plot(show_label=False, elem_id="compare-plot")
    images = _html("model-images")
    return {
        "agreement": agreement,
        "metric": metric,
        "model": model,
        "plot": plot,
        "model_images": images,
    }


def _gallery_section() -> dict[str, Any]:
    gr.Markdown("## One original, all its reconstructions\nMost leaking first by the metric.")
    with gr.Row():
        image = gr.Dropdown([], label="Original", elem_id="compare-image")
        order = gr.Dropdown([], label="Sorted by", elem_id="compare-order")
    return {"image": image, "order": order, "gallery": _html("gallery")}


def _models_section() -> dict[str, Any]:
    gr.Markdown("## Model by model")
    return {"models": _html("models")}


def _weights_section() -> tuple[dict[str, Any], JobPanel]:
    """Metrics without a number, and the button that fetches a weight file."""
    unavailable = _html("unavailable")
    with gr.Row(visible=False, equal_height=True) as row:
        weights = gr.Dropdown([], label="Weight file", elem_id="compare-weights", scale=3)
        fetch = gr.Button("Download", elem_id="compare-download", scale=1)
    return {
        "unavailable": unavailable,
        "weights_row": row,
        "weights": weights,
        "fetch": fetch,
    }, jobpanel.build("compare-fetch")


def _html(name: str) -> gr.HTML:
    # Gradio's own style for HTML would repaint the tables and the verdicts.
    return gr.HTML(elem_id=f"compare-{name}", elem_classes="cmp", apply_default_css=False)


def _hidden() -> dict[str, gr.Textbox]:
    """Ids of the jobs the panels watch."""
    names = ("job", "download")
    return {name: gr.Textbox("", visible="hidden", show_label=False) for name in names}


def _read(context: ScienceContext, choices: Sequence[str | None]) -> tuple[Comparison, Chosen]:
    """The comparison of the chosen study; a message on the page where it has gone."""
    chosen = Chosen(*choices)
    with errors_shown():
        study = _pick(context.studies(), chosen.study)
        if study is None:
            raise DataError("This study is gone. Load the page again.")
        return read_comparison(context, study), chosen


def _pick(studies: Sequence[StudyChoice], wanted: str | None) -> StudyChoice | None:
    """The study with this id or, as in links from a training, this name; else the first."""
    for study in studies:
        if wanted in (study.id, study.name):
            return study
    return studies[0] if studies else None


def _study_label(study: StudyChoice) -> str:
    told = "simulated" in study.name.lower()
    return study.name if told or not study.simulated else f"{study.name} (simulated)"


def _kept(value: str | None, choices: Sequence[tuple[str, str]]) -> str | None:
    return value if value in {choice for _, choice in choices} else None


def _weight_label(entry: WeightFile) -> str:
    size = "" if entry.bytes is None else f", {entry.bytes / 1e6:.0f} MB"
    return f"{entry.file}{size}, for {entry.used_by}"
