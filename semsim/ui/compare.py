"""The page Compare: does a metric rank models as people do?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from semsim.analysis.human import rules_of
from semsim.errors import SemsimError
from semsim.jobs import folders as jobs
from semsim.jobs.folders import Job, JobState
from semsim.learning.card_promoted import promoted
from semsim.metrics import MetricSpec
from semsim.reporting import figures, tables
from semsim.reporting.gallery import gallery
from semsim.ui import ScienceContext, compare_view, jobpanel
from semsim.ui.compare_data import (
    REFERENCES,
    Comparison,
    find_study,
    held,
    image_choices,
    model_choices,
    opened,
    studies_of,
)
from semsim.ui.compare_jobs import live_download, missing_weights, scoring_job, start_download
from semsim.ui.compare_parts import Page, lay_out
from semsim.ui.compare_plot import image_plot
from semsim.ui.jobpanel import QUIETLY, JobPanel, errors_shown
from semsim.ui.markup import joined
from semsim.weights import WeightFile

_TELLING: dict[str, Any] = {"api_visibility": "private"}  # queued: its errors come as a message
_ENDED = {JobState.DONE, JobState.FAILED, JobState.STOPPED, JobState.LOST}
_SOLID_TABLES = ("differences", "rules", "backbones")


@dataclass(frozen=True)
class Chosen:
    """What a person has chosen on the page; None where nothing."""

    study: str | None = None
    rule: str | None = None
    reference: str | None = None
    metric: str | None = None
    model: str | None = None
    image: str | None = None
    order: str | None = None
    several: Sequence[str] | None = None
    originals: str | None = None  # "" for all, else the name of the SemSim that has not seen them

    @property
    def view(self) -> tuple[str | None, str | None, str | None]:
        """How the study is looked at: rule, reference, and whose unseen originals count."""
        return self.rule, self.reference, self.originals


def render(context: ScienceContext) -> list[tuple[Callable[..., Any], list[Any]]]:
    """Lay the page out where the caller stands; returns what it does when it is loaded."""
    gr.HTML(compare_view.STYLE, apply_default_css=False)
    page, scoring, fetching = lay_out()
    refresh = _wire(context, page, scoring, fetching)

    def load(request: gr.Request) -> list[Any]:
        asked = dict(request.query_params)
        # The link from a finished training, else the SemSim of this workspace.
        learned = asked.get("semsim") or promoted(context.checkpoints)
        metric = f"semsim:{learned}" if learned else None
        return refresh(asked.get("study"), None, None, metric)

    return [(load, [*page.outputs, *scoring.outputs, *fetching.outputs])]


def page_values(context: ScienceContext, chosen: Chosen) -> tuple[dict[str, Any], Job | None]:
    """New values of the page's components by name, and the job that scores the study, if any.

    Starts that job where scores are missing and nobody has tried yet.
    """
    studies = studies_of(context)
    study = find_study(context, chosen.study)
    options = [(one.label, one.id) for one in studies]
    select = gr.Dropdown(options, value=study.id if study else None)
    if study is None:
        return {
            "study": select,
            "notice": compare_view.NO_STUDY,
            "body": gr.Column(visible=False),
        }, None
    comparison = opened(context, study.id, *chosen.view)
    job = scoring_job(context, comparison)
    missing = missing_weights(context)
    return {
        "study": select,
        "body": gr.Column(visible=True),
        "ranked": gr.Column(visible=comparison.n_votes > 0),
        "notice": compare_view.notice_html(comparison),
        **_view_values(comparison),
        **_study_values(comparison),
        **_metric_values(comparison, chosen),
        **_choice_values(comparison, chosen),
        "several": gr.Dropdown(options, value=[study.id], multiselect=True),
        "table1": _table1(context, [study.id], comparison.view.reference),
        "weights_row": gr.Row(visible=bool(missing)),
        "weights": gr.Dropdown(
            [(_weight_label(entry), entry.name) for entry in missing],
            value=missing[0].name if missing else None,
        ),
    }, job


def _view_values(comparison: Comparison) -> dict[str, Any]:
    protocol = comparison.study.headline
    # Not from the table of rules, which is empty while nothing is scored: the chosen one must stay.
    rules = rules_of(comparison.analysis.evidence)
    words = [
        (f"{rule} (fixed by the protocol)" if rule == protocol else rule, rule) for rule in rules
    ]
    return {
        "rule": gr.Dropdown(words, value=comparison.view.rule),
        "reference": gr.Dropdown(
            [(words, key) for key, words in REFERENCES.items()], value=comparison.view.reference
        ),
        "originals": gr.Dropdown(
            _originals(comparison),
            value=comparison.view.unseen_by,
            visible=bool(comparison.unseen or comparison.view.unseen_by),
        ),
    }


def _originals(comparison: Comparison) -> list[tuple[str, str]]:
    """All originals, or those that a SemSim has not learned from."""
    left = {
        name: f"The {n} that SemSim ({name}) has not seen" for name, n in comparison.unseen.items()
    }
    every = f"All {comparison.n_originals}, also what a SemSim learned from"
    return [(every, ""), *((words, name) for name, words in left.items())]


def _study_values(comparison: Comparison) -> dict[str, Any]:
    """What does not depend on a choice of metric, model or image."""
    analysis, view = comparison.analysis, comparison.view

    def figure(name: str) -> str:
        return compare_view.figure_html(figures.figure(analysis, name), view)

    def table(name: str) -> str:
        return compare_view.table_html(tables.table(analysis, name), view)

    def folded(name: str) -> str:
        return compare_view.folded_html(tables.table(analysis, name).title, table(name))

    return {
        "agreement": table("agreement"),
        "forest": figure("forest") + table("ceiling"),
        "auc": figure("auc") + folded("auc"),
        "solid": joined([figure("rules"), *map(folded, _SOLID_TABLES), figure("matrix")]),
        "models": table("models"),
        "files": compare_view.files_html(view),
        "unavailable": compare_view.unavailable_html(comparison),
    }


def _metric_values(comparison: Comparison, chosen: Chosen) -> dict[str, Any]:
    """What shows the chosen metric."""
    analysis, view = comparison.analysis, comparison.view
    spec = comparison.spec(chosen.metric)
    options = [(spec.title, spec.name) for spec in analysis.specs]
    if spec is None:
        drawn = {"scatter": "", "stability": "", "disagreement": ""}
        return {
            "metric": gr.Dropdown(options, value=None),
            **drawn,
            "images": image_plot(comparison, None),
        }
    of_images = spec if spec.per_image else None
    return {
        "metric": gr.Dropdown(options, value=spec.name),
        **{
            name: compare_view.figure_html(figures.figure(analysis, name, spec.name), view)
            for name in ("scatter", "stability")
        },
        "images": image_plot(comparison, of_images),
        "image_files": compare_view.links_html(view, "images", spec.name) if of_images else "",
        "disagreement": _disagreement(comparison, spec),
    }


def _disagreement(comparison: Comparison, spec: MetricSpec) -> str:
    if not spec.per_image:
        return compare_view.of_sets_html(spec)
    if not comparison.has_images:
        return compare_view.NO_IMAGES
    found = gallery(comparison.analysis, spec)
    leaks = f"{spec.title} says it leaks, people do not recognise it"
    safe = f"People recognise it, {spec.title} says it does not leak"
    return compare_view.disagreement_html(
        comparison, leaks, found.metric_only
    ) + compare_view.disagreement_html(comparison, safe, found.people_only)


def _choice_values(comparison: Comparison, chosen: Chosen) -> dict[str, Any]:
    """The lists of models and originals, and what is shown of the chosen ones."""
    models, images = model_choices(comparison.analysis), image_choices(comparison.images)
    model, image = _kept(chosen.model, models), _kept(chosen.image, images)
    order = comparison.spec(chosen.order)
    if image is None and images:
        image = images[0][1]
    return {
        "model": gr.Dropdown(models, value=model),
        "model_images": compare_view.model_images_html(comparison, model),
        "image": gr.Dropdown(images, value=image),
        "order": gr.Dropdown(
            [(spec.title, spec.name) for spec in comparison.analysis.specs],
            value=order.name if order else None,
        ),
        "gallery": compare_view.gallery_html(comparison, image, order),
        "pair": "",
    }


def _table1(context: ScienceContext, studies: Sequence[str], reference: str | None) -> str:
    """The paper's Table 1 of the chosen studies, each under the rule its protocol fixed."""
    if not studies:
        return compare_view.NO_CHOICE
    found = [held(context, study, reference=reference) for study in studies]
    bare = [one.study.name for one in found if not one.analysis.specs]
    table = tables.table1([one.analysis for one in found])
    return compare_view.bare_html(bare) + compare_view.table_html(table, found[0].view, studies)


def _wire(
    context: ScienceContext, page: Page, scoring: JobPanel, fetching: JobPanel
) -> Callable[..., list[Any]]:
    """Tie the components together; returns the handler that draws everything anew."""
    everything = [*page.outputs, *scoring.outputs, *fetching.outputs]

    def refresh(*choices: Any) -> list[Any]:
        try:
            values, job = page_values(context, Chosen(*choices))
        except SemsimError as error:
            notice = jobpanel.alert_html(error)
            values, job = {"notice": notice, "body": gr.Column(visible=False)}, None
        download = live_download(context)
        values |= {"job": job.id if job else "", "download": download.id if download else ""}
        return [*page.drawn(values), *jobpanel.show(job), *jobpanel.show(download)]

    def fetch(name: str | None) -> list[Any]:
        with errors_shown():
            job = start_download(context, name or "")
        return [job.id, *jobpanel.show(job)]

    page.study.input(lambda study: refresh(study), page.study, everything, **QUIETLY)
    for control in (page.rule, page.reference, page.originals):
        control.input(refresh, page.choices, everything, **QUIETLY)
    page.fetch.click(fetch, page.weights, [page.download, *fetching.outputs], **_TELLING)
    _wire_choices(context, page)
    _wire_clicks(context, page)
    for panel, job in ((scoring, page.job), (fetching, page.download)):
        _when_it_ends(context, panel, job).change(refresh, page.choices, everything, **QUIETLY)
    return refresh


def _wire_choices(context: ScienceContext, page: Page) -> None:
    """A choice of metric, model, original or studies draws what shows it."""

    def show_metric(*choices: Any) -> list[Any]:
        comparison, chosen = _read(context, choices)
        return page.drawn(_metric_values(comparison, chosen))

    def show_model(*choices: Any) -> str:
        comparison, chosen = _read(context, choices)
        return compare_view.model_images_html(comparison, chosen.model)

    def show_gallery(*choices: Any) -> str:
        comparison, chosen = _read(context, choices)
        spec = comparison.spec(chosen.order)
        return compare_view.gallery_html(comparison, chosen.image, spec)

    def show_several(*choices: Any) -> str:
        chosen = Chosen(*choices)
        with errors_shown():
            return _table1(context, chosen.several or [], chosen.reference)

    page.metric.input(show_metric, page.choices, page.outputs, **_TELLING)
    page.model.input(show_model, page.choices, page.model_images, **_TELLING)
    for control in (page.image, page.order):
        control.input(show_gallery, page.choices, page.gallery, **_TELLING)
    page.several.input(show_several, page.choices, page.table1, **_TELLING)


def _wire_clicks(context: ScienceContext, page: Page) -> None:
    """A click on a model's point shows its images; one on an image's point shows the pair."""

    def model_clicked(event: gr.EventData, *choices: Any) -> tuple[Any, str]:
        comparison, _ = _read(context, choices)
        return event.model, compare_view.model_images_html(comparison, str(event.model))

    def image_clicked(event: gr.EventData, *choices: Any) -> str:
        comparison, _ = _read(context, choices)
        return compare_view.pair_html(comparison, int(event.row))

    for drawing in (page.scatter, page.stability):
        shown = [page.model, page.model_images]
        drawing.point(model_clicked, page.choices, shown, **_TELLING)
    page.bridge.point(image_clicked, page.choices, page.pair, **_TELLING)


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


def _read(context: ScienceContext, choices: Sequence[Any]) -> tuple[Comparison, Chosen]:
    """The comparison as it is on the page; a message there where the study has gone."""
    chosen = Chosen(*choices)
    with errors_shown():
        return held(context, chosen.study or "", *chosen.view), chosen


def _kept(value: str | None, choices: Sequence[tuple[str, str]]) -> str | None:
    return value if value in {choice for _, choice in choices} else None


def _weight_label(entry: WeightFile) -> str:
    size = "" if entry.bytes is None else f", {entry.bytes / 1e6:.0f} MB"
    return f"{entry.file}{size}, for {entry.used_by}"
