"""The Results page: what the votes of a study say, how sure that is, and how far people agree."""

from collections.abc import Callable
from typing import Any

import gradio as gr

from annotation.errors import AnnotationError
from annotation.study import labelling as studies
from annotation.ui import (
    StudyContext,
    results_plots,
    results_quality,
    results_view,
    study_view,
)
from annotation.ui.results_data import Results, ResultsCache
from annotation.ui.study_form import html
from annotation.votes.agreement import Coding

Loads = list[tuple[Callable[..., Any], list[Any]]]
FEWEST_PEOPLE = 3  # from which a matrix of pairs says more than the table
# From top to bottom, as `_shown` fills them.
_PARTS = (
    "rate-plot",
    "rates",
    "agreement",
    "annotators",
    "kappa-plot",
    "quality",
    "carry-plot",
    "carry-over",
    "reliability",
    "detection",
    "confusion-plot",
    "confusions",
    "files",
)


def render(context: StudyContext) -> Loads:
    """Draw the page and tie it to the store; returns what to run when it opens.

    Nothing is computed by itself: results are looked at when the page opens, when another study is
    chosen and when Refresh is pressed, and computed only if something has happened since.
    """
    cache = ResultsCache(context.store, context.fit)
    gr.Markdown("# Results")
    with gr.Row(elem_classes="st-study"):
        study = gr.Dropdown(label="Study", elem_id="results-study", filterable=False)
        refresh = gr.Button("Refresh", scale=0, min_width=110, elem_id="results-refresh")
    head = html("results-head")
    with gr.Column(visible=False) as body:
        outputs = [study, head, body, *map(_part, _PARTS)]

    def look(chosen: str | None) -> list[Any]:
        return _look(context, cache, chosen or "")

    def open_page(request: gr.Request) -> list[Any]:
        return _look(context, cache, request.query_params.get("study", ""))

    gr.on(
        [study.input, refresh.click],
        look,
        study,
        outputs,
        api_visibility="private",
        show_progress_on=head,
        concurrency_limit=None,
    )
    return [(open_page, outputs)]


def _part(name: str) -> gr.HTML | gr.Plot:
    if name.endswith("plot"):
        return gr.Plot(show_label=False, elem_id=f"results-{name}")
    return html(f"results-{name}", container=True, padding=True)


def _look(context: StudyContext, cache: ResultsCache, chosen: str) -> list[Any]:
    known = studies.list_studies(context.store)
    current = study_view.current(known, chosen or next(iter(studies.voted(context.store)), ""))
    choices = [study_view.choice(study) for study in known]
    if current is None:
        return [gr.Dropdown(choices=[], value=None), *_nothing(results_view.NO_STUDY)]
    selector = gr.Dropdown(choices=choices, value=current.id)
    try:
        return [selector, *_shown(cache.get(current.id))]
    except AnnotationError as error:
        return [selector, *_nothing(study_view.problems(str(error)))]


def _nothing(head: str) -> list[Any]:
    return [head, gr.Column(visible=False), *[gr.skip()] * len(_PARTS)]


def _shown(results: Results) -> list[Any]:
    head = results_view.head(results)
    if not results.n_votes:
        return _nothing(head)
    recognised = results.pairs[results.pairs["coding"] == Coding.RECOGNISED.value]
    truth = results.study.kind.truth_words
    return [
        head,
        gr.Column(visible=True),
        results_plots.rate_figure(results.rates, results.study.kind.scale, results.lists),
        results_view.rates(results),
        results_view.agreement(results),
        results_view.annotators(results),
        gr.Plot(results_plots.kappa_figure(recognised), visible=results.n_people >= FEWEST_PEOPLE),
        results_quality.quality(results),
        gr.Plot(results_plots.view_figure(results.carry_over), visible=_seen_twice(results)),
        results_quality.carry_over(results),
        results_quality.models_of_votes(results),
        gr.HTML(results_view.detection(results), visible=results.detection is not None),
        results_plots.confusion_figure(results.confusion, truth),
        results_view.confusions(results),
        results_view.downloads(results),
    ]


def _seen_twice(results: Results) -> bool:
    return len(results.carry_over) > 1
