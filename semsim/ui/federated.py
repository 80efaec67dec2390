"""The page Federated: FedAvg against PBPFL, what it costs, and what each party can see."""

from typing import Any

import gradio as gr

from semsim.federated.arms import ARMS
from semsim.federated.comparison_job import KIND, FederatedJob, kept_training, like
from semsim.federated.settings import FederatedOrder
from semsim.grid.apart import apart
from semsim.jobs import folders as jobs
from semsim.jobs.folders import Job, JobState
from semsim.ui import (
    ScienceContext,
    federated_form,
    federated_view,
    jobpanel,
    lab_frame,
    lab_sets,
)
from semsim.ui.jobpanel import last_words
from semsim.ui.lab_frame import SAME, Attacking, Loads, More
from semsim.ui.settings_form import Given

_INTRO = (
    "Clients train together without sharing pictures. Does a [[masked model]] (PBPFL, "
    "arXiv:2002.09843) keep the pictures from a server, an eavesdropper, another client?"
)
_NOTHING = "Nothing has been compared here yet. Choose a card and press Start."


def render(context: ScienceContext) -> Loads:
    """Lay the page out where the caller stands; returns what it does when it is loaded."""
    return lab_frame.render(context, page(context))


def page(context: ScienceContext) -> Attacking:
    """What the page says and does, as `lab_frame` takes it."""
    return Attacking(
        name=federated_form.NAME,
        title="Federated",
        intro=_INTRO,
        called="Comparison",
        papers=("pbpfl",),
        kind=KIND,
        form=federated_form.form_html(),
        cards=lambda: federated_form.cards_html(context.data),
        told=lambda given: _told(context, federated_form.order_of(given)),
        begin=lambda given: begin_comparison(context, given),
        draw=draw,
        nothing=_NOTHING,
        more=_pictures,
    )


def _pictures(ran: jobpanel.Jobs) -> More:
    parts: dict[str, Any] = {"apply_default_css": False, "padding": False}
    grid = gr.HTML(elem_id="fed-grid", **parts)
    with gr.Accordion("Training and cost", open=False):
        training = gr.HTML(elem_id="fed-training", **parts)
    return More(drawn=[grid, training])


def _told(context: ScienceContext, order: FederatedOrder) -> str:
    found = apart("semsim.federated.comparison:outlook", order)
    return federated_view.outlook_html(
        order, found, last_words(context.data / "jobs", KIND, like(order), SAME)
    )


def begin_comparison(context: ScienceContext, given: Given) -> Job:
    """Start the form's comparison as a job; raises `SemsimError` where it cannot be."""
    order = federated_form.order_of(given)
    job: Job = apart("semsim.federated.comparison_job:queue_comparison", order, context.data)
    jobs.start(job)
    return job


def draw(job: Job) -> list[Any]:
    """What came back last, how far each party is, what that says, its pictures, the training."""
    asked, state = jobs.read_order(job, FederatedJob), jobs.state(job)
    leak = jobs.result(job)["leak"] if state is JobState.DONE else {}
    scores = {score["arm"]: score for score in leak.get("scores", [])}
    arms = federated_form.attacked(asked.order)
    steps = lab_sets.in_turn([(ARMS[arm].title, asked.out / "sets" / arm) for arm in arms], state)
    training = kept_training(asked.out)
    return [
        lab_sets.strip_html(steps),
        lab_sets.sets_html(steps) if steps else "",
        federated_view.verdict_html(leak, steps),
        federated_view.result_html(leak, steps),
        lab_sets.line_up_html(steps, [federated_view.figures(scores.get(arm)) for arm in arms]),
        "" if training is None else federated_view.training_html(training),
    ]
