"""The pages of the attack lab, laid out from what their modules declare."""

from contextlib import nullcontext
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

from semsim.base.errors import JobError, SemsimError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job, JobState
from semsim.base.pages_library import BARE, UNSEEN, gr
from semsim.lab import Effort
from semsim.lab.markup import alert_html, pieces, rooted
from semsim.lab.page import FOLDER, FreePage, LabPage, Loads, PagedPictures
from semsim.lab.settings_form import Given
from semsim.ui import ScienceContext, jobpanel, lab
from semsim.ui.jobpanel import last_words, unreadable_html

_LAB = pieces("lab.html")
_READ = "async (answer, ...others) => (await import('{folder}/lab.js')).read('{name}', ...others)"
_PLAN, _RUN, _LOOK = "plan", "run", "look"
_SAME = "run with these settings"  # whose time is told before the next


@dataclass(frozen=True)
class Declared:
    """A page that the module of this dotted name declares, see `semsim.lab.page`."""

    module: str

    def page(self, context: ScienceContext) -> LabPage[Any] | FreePage:
        """Return what the module declares."""
        declared: LabPage[Any] | FreePage = resolve_name(f"{self.module}:page")(context)
        return declared

    def render(self, context: ScienceContext) -> Loads:
        """Lay the page out where the caller stands; returns what it does when it is loaded."""
        page = self.page(context)
        lab.head(page.title, page.intro)
        loads = page.body() if isinstance(page, FreePage) else _tabs(page)
        lab.not_run(*page.papers)
        return loads


def _tabs(page: LabPage[Any]) -> Loads:
    """Lay out the form, the job and what comes of it."""
    name, kind = page.form.name, page.form.kind
    with gr.Tabs(elem_id=f"{name}-tabs") as tabs:
        with gr.Tab("Plan", id=_PLAN):
            lab.bound(f"{name}-cards", page.form.cards_html(page.data))
            lab.bound(f"{name}-form", f'<div data-form="{name}">{page.html}</div>')
            answer = gr.Textbox(visible=False)  # by which it comes in, read by `Given.of`
            with gr.Row(elem_classes="lab-bar"):
                begin = gr.Button("Start", variant="primary", scale=0, elem_id=f"{name}-start")
                show = gr.Button("What it takes", scale=0, elem_id=f"{name}-plan")
                taken = gr.HTML(elem_id=f"{name}-outlook", **BARE)
            trouble = gr.HTML(elem_id=f"{name}-trouble")
        with gr.Tab("Running", id=_RUN, render_children=True):
            ran = jobpanel.Jobs(page.called, name, page.data / "jobs", kind)
            drawn = [_html(name, "strip", lab.reading()), _html(name, "sets")]
        with gr.Tab("Results", id=_LOOK, render_children=True):
            drawn += [_html(name, "verdict", lab.reading()), _html(name, "result")]
            for part, folded in page.parts.items():
                with gr.Accordion(folded, open=False) if folded else nullcontext():
                    drawn.append(_html(name, part))
            shown = {} if page.paged is None else _paged(name, page.paged, ran)
    outputs = ran.follow(lambda job: draw(page, job), drawn, **shown)

    def load() -> list[Any]:
        tab = gr.Tabs(selected=_RUN) if jobs.live_jobs(ran.root, kind) else gr.skip()
        return [tab, *ran.load()]

    js = _READ.format(folder=rooted(FOLDER), name=name)
    quiet: dict[str, Any] = {"js": js, **UNSEEN}
    said = [trouble, taken]
    told = show.click(lambda text: ["", plan_words(page, text)], answer, said, **quiet)
    if page.measured is not None:  # another order may be asked about while one is measured
        # Apart from the plan, which is there at once.
        told.then(
            lambda text: measured_words(page, text), answer, said, trigger_mode="multiple", **quiet
        )

    def start(text: str) -> Job:
        job = page.queued(Given.of(text))
        jobs.start(job)
        return job

    began = [(tabs, gr.update(selected=_RUN))]
    ran.begin_with(begin, [answer], trouble, start, js=js, begun=began)
    return [(load, [tabs, *outputs])]


def _html(name: str, part: str, value: str = "") -> gr.HTML:
    """Lay out a part of a job."""
    return gr.HTML(value, elem_id=f"{name}-{part}", **BARE)


def _paged(name: str, pictures: PagedPictures, ran: jobpanel.Jobs) -> dict[str, Any]:
    """Lay out pictures, with what chooses an attack and a page; returns how they are opened."""
    with gr.Row():
        small: dict[str, Any] = {"min_width": 140, "visible": False}
        attack = gr.Dropdown(
            [], label="Attack", allow_custom_value=True, elem_id=f"{name}-attack", **small
        )
        number = gr.Number(1, label="Page", precision=0, elem_id=f"{name}-page", **small)
    grid = gr.HTML(elem_id=f"{name}-grid", apply_default_css=False)

    def opened(found: Job | None) -> list[Any]:
        attacks, pages = pictures.offered(found)
        first = attacks[0] if attacks else None
        return [
            gr.Dropdown(choices=attacks, value=first, visible=len(attacks) > 1),
            gr.Number(1, visible=pages > 1),
            pictures.draw(found, first, 1),
        ]

    def redraw(job_id: str | None, attack: str | None, number: float | None) -> str:
        return pictures.draw(jobpanel.find(ran.root, job_id), attack, number)

    of_grid = [ran.chosen, attack, number]
    ran.timer.tick(redraw, of_grid, grid, **UNSEEN)
    for control in (attack, number):
        control.input(redraw, of_grid, grid, **UNSEEN)
    return {"opened": opened, "opened_outputs": [attack, number, grid]}


def draw(page: LabPage[Any], job: Job | None) -> list[Any]:
    """Draw a job; where there is none, say so on both tabs, with what to do."""
    more = [""] * len(page.parts)
    if job is None:
        empty = str(_LAB.nothing(page.nothing, page.form.name))
        return [empty, "", empty, "", *more]
    try:
        strip, sets, verdict, *others = page.draw(job)
        verdict = verdict or str(_LAB.note(_why_open(job)))
        return [strip, sets, verdict, *others]
    except JobError as error:
        said = unreadable_html(job, error)
    except SemsimError as error:
        said = alert_html(error)
    return [said, "", "", "", *more]


def _why_open(job: Job) -> str:
    """Return why a job has no answer yet, "" where it has none to give."""
    state = jobs.state(job)
    if state in jobs.LIVE:
        return "The answer appears here when this is done. Running shows the progress."
    if state is JobState.DONE:
        return ""
    return "This run did not finish, so there is no answer. Running shows why."


def plan_words(page: LabPage[Any], text: str) -> str:
    """Return what the form's order takes, as HTML; what is wrong with it, in its place."""
    try:
        order = page.order_of(Given.of(text))
        return _effort_html(page, order, page.effort(order))
    except SemsimError as error:
        return alert_html(error)


def measured_words(page: LabPage[Any], text: str) -> list[Any]:
    """Return what went wrong in measuring, and what `plan_words` says after it."""
    measure = page.measured or page.effort
    try:
        order = page.order_of(Given.of(text))
        return ["", _effort_html(page, order, measure(order))]
    except SemsimError as error:
        return [alert_html(error), gr.skip()]


def _effort_html(page: LabPage[Any], order: Any, effort: Effort) -> str:
    """Return an order's effort, and what the last one like it took, as HTML."""
    last = last_words(page.data / "jobs", page.form.kind, page.form.like(order), _SAME)
    notes = " ".join(filter(None, (effort.note, last)))
    return str(_LAB.outlook(effort, disk_words(effort.disk), notes))


def disk_words(size: int) -> str:
    """Bytes as people say them."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{max(size, 1e5) / 1e6:.1f} MB"
