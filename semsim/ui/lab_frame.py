"""The frame of the pages that attack: cards and a form, what runs now, and what came back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from semsim.errors import JobError, SemsimError
from semsim.jobs import folders as jobs
from semsim.jobs.folders import Job, JobState
from semsim.ui import ScienceContext, jobpanel, lab
from semsim.ui.jobpanel import QUIETLY, alert_html, unreadable_html
from semsim.ui.markup import pieces
from semsim.ui.settings_form import Given

_LAB = pieces("lab.html")
_PLAN, _RUN, _LOOK = "plan", "run", "look"
RUNNING, RESULTS = ("strip", "sets"), ("verdict", "result")  # what is drawn of a job, by tab
SAME = "run with these settings"  # whose time is told before the next
Loads = list[tuple[Callable[..., Any], list[Any]]]


@dataclass(frozen=True, kw_only=True)
class More:
    """What else a page draws of the job that is looked at, and when it is chosen (`opened`)."""

    drawn: Sequence[Any] = ()
    opened: Callable[[Job | None], list[Any]] = lambda job: []
    opened_outputs: Sequence[Any] = ()


@dataclass(frozen=True, kw_only=True)
class Attacking:
    """A page that attacks. name: of its form; begins the ids of its parts. kind: of its jobs.

    called: what one run of it is. papers: what it is about, by the names of reproductions.
    form, cards: HTML, the cards as they are now. told: what the form's order takes, as HTML, at
    once; measured: the same after a few steps, of a page that measures them. begin: the job of that
    order, started. draw: a value for each of `RUNNING`, of `RESULTS` and of what `more` draws
    beside them; `nothing` in words where there is no job.
    """

    name: str
    title: str
    intro: str
    called: str
    papers: Sequence[str]
    kind: str
    form: str
    cards: Callable[[], str]
    told: Callable[[Given], str]
    begin: Callable[[Given], Job]
    draw: Callable[[Job], list[Any]]
    nothing: str
    measured: Callable[[Given], str] | None = None
    more: Callable[[jobpanel.Jobs], More] = lambda ran: More()


def render(context: ScienceContext, page: Attacking) -> Loads:
    """Lay the page out where the caller stands; returns what it does when it is loaded."""
    name = page.name
    lab.head(page.title, page.intro)
    with gr.Tabs(elem_id=f"{name}-tabs") as tabs:
        with gr.Tab("Plan", id=_PLAN):
            lab.bound(f"{name}-cards", page.cards())
            _, answer, js = lab.form(name, page.form)
            with gr.Row(elem_classes="lab-bar"):
                begin = gr.Button("Start", variant="primary", scale=0, elem_id=f"{name}-start")
                show = gr.Button("What it takes", scale=0, elem_id=f"{name}-plan")
                taken = gr.HTML(elem_id=f"{name}-outlook", apply_default_css=False, padding=False)
            trouble = gr.HTML(elem_id=f"{name}-trouble")
        with gr.Tab("Running", id=_RUN, render_children=True):
            ran = jobpanel.Jobs(page.called, name, context.data / "jobs", page.kind)
            drawn = [_html(name, part) for part in RUNNING]
        with gr.Tab("Results", id=_LOOK, render_children=True):
            drawn += [_html(name, part) for part in RESULTS]
            more = page.more(ran)
    lab.not_run(*page.papers)
    outputs = ran.follow(
        lambda job: draw(page, job, len(more.drawn)),
        [*drawn, *more.drawn],
        opened=more.opened,
        opened_outputs=more.opened_outputs,
    )

    def load() -> list[Any]:
        tab = gr.Tabs(selected=_RUN) if jobs.live_jobs(ran.root, page.kind) else gr.skip()
        return [tab, *ran.load()]

    def plan(text: str) -> list[Any]:
        return ["", plan_words(page, text)]

    def measured(text: str) -> list[Any]:
        return measured_words(page, text)  # apart from the plan, which is there at once

    quiet: dict[str, Any] = {"js": js, "show_progress": "hidden", **QUIETLY}
    shown = show.click(plan, answer, [trouble, taken], **quiet)
    if page.measured is not None:  # another order may be asked about while one is measured
        shown.then(measured, answer, [trouble, taken], trigger_mode="multiple", **quiet)
    ran.begin_with(
        begin,
        [answer],
        trouble,
        lambda text: page.begin(Given.of(text)),
        js=js,
        begun=[(tabs, gr.update(selected=_RUN))],
    )
    return [(load, [tabs, *outputs])]


def draw(page: Attacking, job: Job | None, more: int = 0) -> list[Any]:
    """What is drawn of a job; where there is none, on both tabs that and what to do."""
    if job is None:
        empty = str(_LAB.nothing(page.nothing, page.name))
        return [empty, "", empty, "", *[""] * more]
    try:
        strip, sets, verdict, *others = page.draw(job)
        verdict = verdict or str(_LAB.note(_why_open(job)))
        return [strip, sets, verdict, *others]
    except JobError as error:
        said = unreadable_html(job, error)
    except SemsimError as error:
        said = alert_html(error)
    return [said, "", "", "", *[""] * more]


def _why_open(job: Job) -> str:
    """Why a job has no answer yet, "" where it has none to give."""
    state = jobs.state(job)
    if state in jobs.LIVE:
        return "The answer stands here when this is done; how far it is stands under Running."
    if state is JobState.DONE:
        return ""
    return "This has not come to its end, so that there is no answer. Running says why."


def plan_words(page: Attacking, text: str) -> str:
    """Return what the form's order takes, as HTML; what is wrong with it, in its place."""
    try:
        return page.told(Given.of(text))
    except SemsimError as error:
        return alert_html(error)


def measured_words(page: Attacking, text: str) -> list[Any]:
    """Return what went wrong in measuring, and what `plan_words` says after it."""
    assert page.measured is not None
    try:
        return ["", page.measured(Given.of(text))]
    except SemsimError as error:
        return [alert_html(error), gr.skip()]


def _html(name: str, part: str) -> gr.HTML:
    """A part of a job, and that it is being read where it comes first on its tab."""
    first = lab.reading() if part in ("strip", "verdict") else ""
    return gr.HTML(first, elem_id=f"{name}-{part}", apply_default_css=False, padding=False)
