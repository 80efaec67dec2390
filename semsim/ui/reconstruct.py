"""The page Reconstruct: choose targets and attacks, see what they take, run them, look."""

from collections.abc import Callable
from typing import Any

import gradio as gr

from semsim.campaign.campaign_job import KIND, name_of
from semsim.campaign.plan import Campaign
from semsim.campaign.watch import read_campaign
from semsim.errors import SemsimError
from semsim.grid.apart import apart
from semsim.jobs import folders as jobs
from semsim.jobs.folders import Job, JobState
from semsim.ui import ScienceContext, jobpanel, lab, reconstruct_form, reconstruct_view
from semsim.ui.jobpanel import QUIETLY, alert_html
from semsim.ui.reconstruct_data import SetView, kept_plan, set_views, under_attack
from semsim.ui.reconstruct_form import CARDS, campaign_of
from semsim.ui.settings_form import Given

_INTRO = (
    "Train classifiers, attack pictures through the gradients they leak ([[gradient "
    "inversion]]), and see what comes back of each."
)
_NAME = reconstruct_form.NAME
_PLAN, _RUN, _LOOK = "plan", "run", "look"
_DATA = "semsim.ui.reconstruct_data"


def render(context: ScienceContext) -> list[tuple[Callable[..., Any], list[Any]]]:
    """Lay the page out where the caller stands; returns what it does when it is loaded."""
    lab.head("Reconstruct", _INTRO)
    with gr.Tabs(elem_id="rec-tabs") as tabs:
        with gr.Tab("Plan", id=_PLAN):
            cards = lab.bound("rec-cards", reconstruct_form.cards_html(context.data))
            _, answer, js = lab.form(_NAME, reconstruct_form.form_html(context.checkpoints))
            with gr.Row(elem_classes="lab-bar"):
                begin = gr.Button("Start", variant="primary", scale=0, elem_id="rec-start")
                show = gr.Button("What it takes", scale=0, elem_id="rec-plan")
                cost = gr.Button(
                    "Measure the cards", scale=0, min_width=200, size="md", elem_id="rec-measure"
                )
                taken = gr.HTML(elem_id="rec-outlook", apply_default_css=False, padding=False)
            trouble = gr.HTML(elem_id="rec-trouble")
        with gr.Tab("Running", id=_RUN, render_children=True):
            ran = jobpanel.Jobs("Campaign", "rec", context.data / "jobs", KIND)
            drawn = [_html("strip"), _html("sets")]
        with gr.Tab("Results", id=_LOOK, render_children=True):
            drawn += [_html("verdict"), _html("result")]
            with gr.Row():
                small: dict[str, Any] = {"min_width": 140, "visible": False}
                attack = gr.Dropdown(
                    [], label="Attack", allow_custom_value=True, elem_id="rec-attack", **small
                )
                page = gr.Number(1, label="Page", precision=0, elem_id="rec-page", **small)
            grid = _html("grid")

    def opened(found: Job | None) -> list[Any]:
        attacks = attacks_of(context, found)
        first = attacks[0] if attacks else None
        return [
            gr.Dropdown(choices=attacks, value=first, visible=len(attacks) > 1),
            gr.Number(1, visible=pages_of(context, found) > 1),
            grid_now(context, found, first, 1),
        ]

    outputs = ran.follow(
        lambda job: draw(context, job),
        drawn,
        opened=opened,
        opened_outputs=[attack, page, grid],
    )

    def load() -> list[Any]:
        live = jobs.live_jobs(ran.root, KIND)
        tab = gr.Tabs(selected=_RUN) if live else gr.skip()
        return [tab, *ran.load()]

    def redraw(job_id: str | None, attack: str | None, page: float | None) -> str:
        return grid_now(context, jobpanel.find(ran.root, job_id), attack, page)

    def plan(text: str) -> list[Any]:
        return ["", plan_words(context, text)]

    def measured(text: str) -> list[Any]:
        return measured_words(context, text)  # apart from the plan, which is there at once

    def measure_cards() -> list[Any]:
        return cards_measured(context)

    show.click(plan, answer, [trouble, taken], js=js, show_progress="hidden", **QUIETLY).then(
        measured, answer, [trouble, taken, cards], js=js, show_progress="hidden", **QUIETLY
    )
    cost.click(measure_cards, None, [trouble, cards], show_progress="hidden", **QUIETLY)
    ran.begin_with(
        begin,
        [answer],
        trouble,
        lambda text: begin_campaign(context, text),
        js=js,
        begun=[(tabs, gr.update(selected=_RUN))],
    )
    of_grid = [ran.chosen, attack, page]
    ran.panel.timer.tick(redraw, of_grid, grid, show_progress="hidden", **QUIETLY)
    for control in (attack, page):
        control.input(redraw, of_grid, grid, show_progress="hidden", **QUIETLY)
    return [(load, [tabs, *outputs])]


def plan_words(context: ScienceContext, text: str) -> str:
    """What the form's campaign takes, as HTML; what is wrong with it, in its place."""
    try:
        return _outlook(context, campaign_of(Given.of(text), free_name(context)), measured=False)
    except SemsimError as error:
        return alert_html(error)


def measured_words(context: ScienceContext, text: str) -> list[Any]:
    """What went wrong in measuring, what `plan_words` says after it, and the cards."""
    try:
        told = _outlook(context, campaign_of(Given.of(text), free_name(context)), measured=True)
    except SemsimError as error:
        return [alert_html(error), gr.skip(), gr.skip()]
    return ["", told, reconstruct_form.cards_html(context.data)]


def cards_measured(context: ScienceContext) -> list[Any]:
    """What went wrong, and the cards anew with what each takes on this machine."""
    absent = lab.absent()
    wanted = [one for _, _, one in CARDS if not set(one.datasets) & set(absent)]
    try:
        for campaign in wanted:
            _outlook(context, campaign, measured=True)
    except SemsimError as error:
        return [alert_html(error), gr.skip()]
    return ["", reconstruct_form.cards_html(context.data)]


def _outlook(context: ScienceContext, campaign: Campaign, measured: bool) -> str:
    view = apart(f"{_DATA}:told", campaign, context.data, measured)
    return reconstruct_view.outlook_html(view, measuring=not measured)


def begin_campaign(context: ScienceContext, text: str) -> Job:
    """Start the form's campaign as a job; raises `SemsimError` where it cannot be."""
    given = Given.of(text)
    place = (context.data, str(context.device), context.checkpoints)
    job: Job = apart(
        f"{_DATA}:queued", campaign_of(given, free_name(context)), given.text("judge"), *place
    )
    jobs.start(job)
    return job


def draw(context: ScienceContext, job: Job | None) -> list[Any]:
    """Pictures now and of late, progress by set, the verdict and, when it is done, the result."""
    if job is None:
        empty = reconstruct_view.nothing_html()
        return [empty, "", empty, ""]
    try:
        views = _views(context, job)
    except SemsimError as error:
        return [alert_html(error), "", "", ""]
    state = jobs.state(job)
    now = ""
    if state in jobs.LIVE:
        now = reconstruct_view.steps_html(under_attack(context, _read(context, job), views))
    done = state is JobState.DONE
    return [
        now + reconstruct_view.strip_html(views),
        reconstruct_view.sets_html(views),
        reconstruct_view.verdict_html(views),
        reconstruct_view.result_html(jobs.result(job)) if done else "",
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


def free_name(context: ScienceContext) -> str:
    """A name no campaign has."""
    runs = context.data / "runs"
    number = 1
    while (runs / f"campaign-{number}").exists():
        number += 1
    return f"campaign-{number}"


def _views(context: ScienceContext, job: Job) -> list[SetView]:
    return set_views(context, _read(context, job))


def _read(context: ScienceContext, job: Job) -> Campaign:
    return read_campaign(context.data, name_of(job))


def _html(name: str) -> gr.HTML:
    return gr.HTML(elem_id=f"rec-{name}", apply_default_css=False)
