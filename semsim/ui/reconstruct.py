"""The page Reconstruct: choose targets and attacks, see what they take, run them, look."""

from typing import Any

import gradio as gr

from semsim.campaign.campaign_job import KIND, like, name_of
from semsim.campaign.plan import Campaign
from semsim.campaign.watch import read_campaign
from semsim.errors import SemsimError
from semsim.grid.apart import apart
from semsim.jobs import folders as jobs
from semsim.jobs.folders import Job, JobState
from semsim.ui import ScienceContext, jobpanel, lab_frame, reconstruct_form, reconstruct_view
from semsim.ui.jobpanel import QUIETLY, last_words
from semsim.ui.lab_cards import free_name
from semsim.ui.lab_frame import SAME, Attacking, Loads, More
from semsim.ui.reconstruct_data import SetView, kept_plan, set_views, under_attack
from semsim.ui.reconstruct_form import campaign_of
from semsim.ui.settings_form import Given

_INTRO = (
    "Train classifiers, attack pictures through the gradients they leak ([[gradient "
    "inversion]]), and see what comes back of each."
)
_DATA = "semsim.ui.reconstruct_data"


def render(context: ScienceContext) -> Loads:
    """Lay the page out where the caller stands; returns what it does when it is loaded."""
    return lab_frame.render(context, page(context))


def page(context: ScienceContext) -> Attacking:
    """What the page says and does, as `lab_frame` takes it."""
    return Attacking(
        name=reconstruct_form.NAME,
        title="Reconstruct",
        intro=_INTRO,
        called="Campaign",
        papers=("semsim", "deployed", "everything"),
        kind=KIND,
        form=reconstruct_form.form_html(context.checkpoints),
        cards=lambda: reconstruct_form.cards_html(context.data),
        told=lambda given: _outlook(context, given, measured=False),
        measured=lambda given: _outlook(context, given, measured=True),
        begin=lambda given: begin_campaign(context, given),
        draw=lambda job: draw(context, job),
        nothing=reconstruct_view.NOTHING,
        more=lambda ran: _grid(context, ran),
    )


def _grid(context: ScienceContext, ran: jobpanel.Jobs) -> More:
    """The grid of pictures, with what chooses an attack and a page of it."""
    with gr.Row():
        small: dict[str, Any] = {"min_width": 140, "visible": False}
        attack = gr.Dropdown(
            [], label="Attack", allow_custom_value=True, elem_id="rec-attack", **small
        )
        number = gr.Number(1, label="Page", precision=0, elem_id="rec-page", **small)
    grid = gr.HTML(elem_id="rec-grid", apply_default_css=False)

    def opened(found: Job | None) -> list[Any]:
        attacks = attacks_of(context, found)
        first = attacks[0] if attacks else None
        return [
            gr.Dropdown(choices=attacks, value=first, visible=len(attacks) > 1),
            gr.Number(1, visible=pages_of(context, found) > 1),
            grid_now(context, found, first, 1),
        ]

    def redraw(job_id: str | None, attack: str | None, number: float | None) -> str:
        return grid_now(context, jobpanel.find(ran.root, job_id), attack, number)

    of_grid = [ran.chosen, attack, number]
    ran.panel.timer.tick(redraw, of_grid, grid, show_progress="hidden", **QUIETLY)
    for control in (attack, number):
        control.input(redraw, of_grid, grid, show_progress="hidden", **QUIETLY)
    return More(opened=opened, opened_outputs=[attack, number, grid])


def _outlook(context: ScienceContext, given: Given, *, measured: bool) -> str:
    campaign = campaign_of(given, _free(context))
    view = apart(f"{_DATA}:told", campaign, context.data, measured)
    last = last_words(context.data / "jobs", KIND, like(campaign), SAME)
    return reconstruct_view.outlook_html(view, last, measuring=not measured)


def begin_campaign(context: ScienceContext, given: Given) -> Job:
    """Start the form's campaign as a job; raises `SemsimError` where it cannot be."""
    place = (context.data, str(context.device), context.checkpoints)
    campaign = campaign_of(given, _free(context))
    job: Job = apart(f"{_DATA}:queued", campaign, given.text("judge"), *place)
    jobs.start(job)
    return job


def draw(context: ScienceContext, job: Job) -> list[Any]:
    """Pictures now and of late, progress by set, the verdict and, when it is done, the result."""
    views = _views(context, job)
    state = jobs.state(job)
    now = ""
    if state in jobs.LIVE:
        now = reconstruct_view.steps_html(under_attack(context, _read(context, job), views))
    done = state is JobState.DONE
    result = jobs.result(job) if done else {}
    return [
        now + reconstruct_view.strip_html(views),
        reconstruct_view.sets_html(views),
        reconstruct_view.verdict_html(views, result.get("recognition")),
        reconstruct_view.result_html(result) if done else "",
    ]


def attacks_of(context: ScienceContext, job: Job | None) -> list[str]:
    """The attacks of a job's campaign by their labels."""
    if job is None:
        return []
    try:
        views = _views(context, job)
    except SemsimError:  # said by `draw`
        return []
    return list(dict.fromkeys(view.planned.attack_label for view in views))


def pages_of(context: ScienceContext, job: Job | None) -> int:
    """How many pages the grid of a job's campaign has."""
    if job is None:
        return 0
    try:
        return reconstruct_view.pages(kept_plan(_read(context, job)).pictures)
    except SemsimError:  # said by `draw`
        return 0


def grid_now(
    context: ScienceContext, job: Job | None, attack: str | None, page: float | None
) -> str:
    """Originals beside what one attack gave back, one page of them."""
    if job is None or attack is None:
        return ""
    try:
        views = [v for v in _views(context, job) if v.planned.attack_label == attack]
        images = kept_plan(_read(context, job)).pictures
    except SemsimError:  # said by `draw`
        return ""
    last = reconstruct_view.pages(images)
    place = min(max(1, int(page or 1)), last)
    where = f'<p class="st-note">Page {place} of {last}</p>' if last > 1 else ""
    return where + reconstruct_view.grid_html(views, images, place)


def _free(context: ScienceContext) -> str:
    """A name no campaign has."""
    return free_name(context.data / "runs", "campaign")


def _views(context: ScienceContext, job: Job) -> list[SetView]:
    return set_views(context, _read(context, job))


def _read(context: ScienceContext, job: Job) -> Campaign:
    return read_campaign(context.data, name_of(job))
