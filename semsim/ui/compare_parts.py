"""The parts of the Compare page: what stands where, under which name."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import gradio as gr

from semsim.ui import jobpanel
from semsim.ui.jobpanel import JobPanel
from semsim.ui.markup import pieces

# A drawing's points carry their model; a press on one reaches Python as the event "point".
_POINTS = """element.addEventListener('click', (event) => {
  const point = event.target.closest('[data-key]');
  if (point) trigger('point', {model: point.dataset.key});
});"""
# Plotly tells its own clicks only to JavaScript; this hands the clicked image on to a handler.
_BRIDGE = """
function attach() {
  const plot = document.querySelector('#compare-images .js-plotly-plot');
  if (plot && plot.on && !plot.__semsim) {
    plot.__semsim = true;
    plot.on('plotly_click', (data) => trigger('point', {row: data.points[0].customdata}));
  }
}
new MutationObserver(attach).observe(document.body, {childList: true, subtree: true});
attach();
"""
_HTML = pieces("compare.html")


@dataclass(frozen=True, kw_only=True)
class Page:
    """The components that change, in the order their new values come in."""

    study: gr.Dropdown
    rule: gr.Dropdown
    reference: gr.Dropdown
    originals: gr.Dropdown
    notice: gr.HTML
    body: gr.Column
    ranked: gr.Column
    forest: gr.HTML
    agreement: gr.HTML
    metric: gr.Dropdown
    scatter: gr.HTML
    model: gr.Dropdown
    model_images: gr.HTML
    stability: gr.HTML
    auc: gr.HTML
    images: gr.Plot
    image_files: gr.HTML
    bridge: gr.HTML
    pair: gr.HTML
    disagreement: gr.HTML
    solid: gr.HTML
    models: gr.HTML
    several: gr.Dropdown
    table1: gr.HTML
    files: gr.HTML
    image: gr.Dropdown
    order: gr.Dropdown
    gallery: gr.HTML
    unavailable: gr.HTML
    weights_row: gr.Row
    weights: gr.Dropdown
    fetch: gr.Button
    job: gr.Textbox
    download: gr.Textbox

    @property
    def outputs(self) -> list[Any]:
        """Every component, in order."""
        return [getattr(self, field.name) for field in fields(self)]

    @property
    def choices(self) -> list[Any]:
        """What a person has chosen: the inputs of every handler, as `Chosen` takes them."""
        return [
            *(self.study, self.rule, self.reference, self.metric, self.model),
            *(self.image, self.order, self.several, self.originals),
        ]

    def drawn(self, values: Mapping[str, Any]) -> list[Any]:
        """`values` by name as values of `outputs`; the others stay as they are."""
        return [values.get(field.name, gr.skip()) for field in fields(self)]


def lay_out() -> tuple[Page, JobPanel, JobPanel]:
    """Draw the page where the caller stands; returns it, and the panels of scoring and fetching."""
    parts: dict[str, Any] = {}
    gr.Markdown("# Compare\nDoes a metric rank models the way people do?")
    with gr.Row():
        parts["study"] = gr.Dropdown([], label="Study", elem_id="compare-study", scale=2)
        parts["rule"] = gr.Dropdown([], label="People, summed up by", elem_id="compare-rule")
        parts["reference"] = gr.Dropdown([], label="Reference image", elem_id="compare-reference")
        parts["originals"] = gr.Dropdown(
            [], label="Originals", elem_id="compare-originals", visible=False
        )
    parts["notice"] = _html("notice")
    scoring = jobpanel.build("compare-job")
    with gr.Column(visible=False) as body:
        with gr.Column() as ranked:
            gr.HTML(_HTML.contents(), apply_default_css=False)
            parts |= {**_ranking(), **_one_metric(), **_single_images(), **_the_rest()}
        parts |= _originals()
        weights, fetching = _weights()
    hidden = {
        name: gr.Textbox("", visible="hidden", show_label=False) for name in ("job", "download")
    }
    return Page(body=body, ranked=ranked, **parts, **weights, **hidden), scoring, fetching


def _ranking() -> dict[str, Any]:
    _section("ranking", "Which metric agrees with people?")
    return {name: _html(name) for name in ("forest", "agreement")}


def _one_metric() -> dict[str, Any]:
    _section(
        "metric", "One metric against people", "A point is a model; press it to see its images."
    )
    metric = gr.Dropdown([], label="Metric", elem_id="compare-metric")
    scatter = _html("scatter", js_on_load=_POINTS)
    model = gr.Dropdown([], label="Images of model", elem_id="compare-model")
    return {
        "metric": metric,
        "scatter": scatter,
        "model": model,
        "model_images": _html("model-images"),
        "stability": _html("stability", js_on_load=_POINTS),
    }


def _single_images() -> dict[str, Any]:
    _section("single", "Single images")
    auc = _html("auc")
    gr.Markdown(
        "### The metric against votes, image by image\n"
        "A point is a reconstruction; press it to see the pair."
    )
    images = gr.Plot(show_label=False, elem_id="compare-images")
    found = {
        "auc": auc,
        "images": images,
        "image_files": _html("image-files"),
        "bridge": gr.HTML("", html_template="<span></span>", js_on_load=_BRIDGE),
        "pair": _html("pair"),
    }
    gr.Markdown("### Where the metric and people differ most")
    found["disagreement"] = _html("disagreement")
    return found


def _the_rest() -> dict[str, Any]:
    _section("solid", "How solid is it?")
    solid = _html("solid")
    _section("models", "Models")
    models = _html("models")
    _section("several", "Several studies")
    several = gr.Dropdown([], label="Studies", multiselect=True, elem_id="compare-several")
    table1 = _html("table1")
    _section("files", "Report and files")
    return {
        "solid": solid,
        "models": models,
        "several": several,
        "table1": table1,
        "files": _html("files"),
    }


def _originals() -> dict[str, Any]:
    _section("originals", "One original, all its reconstructions", "Most leaking first.")
    with gr.Row():
        image = gr.Dropdown([], label="Original", elem_id="compare-image")
        order = gr.Dropdown([], label="Sorted by", elem_id="compare-order")
    return {"image": image, "order": order, "gallery": _html("gallery")}


def _weights() -> tuple[dict[str, Any], JobPanel]:
    """Metrics without a number, and the button that fetches a weight file."""
    unavailable = _html("unavailable")
    with gr.Row(visible=False, equal_height=True) as row:
        weights = gr.Dropdown([], label="Weight file", elem_id="compare-weights", scale=3)
        fetch = gr.Button("Download", elem_id="compare-download", scale=1)
    panel = jobpanel.build("compare-fetch")
    shown = {"unavailable": unavailable, "weights_row": row}
    return {**shown, "weights": weights, "fetch": fetch}, panel


def _section(name: str, title: str, words: str = "") -> None:
    gr.HTML(_HTML.section(name, title, words), elem_classes="cmp", apply_default_css=False)


def _html(name: str, **settings: Any) -> gr.HTML:
    # Gradio's own style for HTML would repaint the tables and the verdicts.
    return gr.HTML(
        elem_id=f"compare-{name}", elem_classes="cmp", apply_default_css=False, **settings
    )
