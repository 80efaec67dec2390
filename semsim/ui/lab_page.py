"""A page of the attack lab: cards and a form, its job, what runs and what came back."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from semsim.base.errors import JobError, SemsimError, SettingsError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job, JobState
from semsim.base.pages_library import gr
from semsim.base.words import counted
from semsim.ui import jobpanel, lab
from semsim.ui.answers import GoneError, worded
from semsim.ui.jobpanel import QUIETLY, alert_html, last_words, unreadable_html, words_for_seconds
from semsim.ui.markup import pieces, rooted, study_address
from semsim.ui.plain_words import Choice
from semsim.ui.settings_form import Given

_LAB = pieces("lab.html")
_NOW = f"{lab.FOLDER}/drawn"
_READ = "async (answer, ...others) => (await import('{folder}/lab.js')).read('{name}', ...others)"
_PLAN, _RUN, _LOOK = "plan", "run", "look"
RUNNING, RESULTS = ("strip", "sets"), ("verdict", "result")  # what is drawn of a job, by tab
SAME = "run with these settings"  # whose time is told before the next
T = TypeVar("T")  # the order that a form means
Loads = list[tuple[Callable[..., Any], list[Any]]]


class Card(NamedTuple):
    """One of the cards a page begins with: an order that fills the form.

    facts: what the last run of it took here, or "". state: what it puts into the form, as JSON.
    why: the reason it cannot be chosen, or "".
    """

    title: str
    line: str
    facts: str
    state: str
    why: str


@dataclass(frozen=True, kw_only=True)
class LabForm(Generic[T]):
    """The form of a page.

    name: begins the ids of the page's parts. kind: of the jobs that carry orders out. offered:
    title, line and order of each card. lists: what can be chosen in each. texts: what an order
    has of each list. fields: what it has in the fields. like: what jobs have that carry out the
    same order.
    """

    name: str
    kind: str
    offered: Sequence[tuple[str, str, T]]
    lists: Mapping[str, Sequence[Choice]]
    texts: Callable[[T], Mapping[str, Sequence[str]]]
    fields: Callable[[T], Mapping[str, str]]
    like: Callable[[T], Mapping[str, Any]]

    def chosen(self, order: T) -> dict[str, tuple[str, ...]]:
        """Return the items of each list that an order has; settings are an item's or the form's.

        Raises `SettingsError` for one that is not offered.
        """
        return {name: self._items(name, texts) for name, texts in self.texts(order).items()}

    def choices(self, name: str, called: str, one: bool = False) -> str:
        """Return a list with the first card's chosen, of data sets those that are not here off."""
        chosen = self.chosen(self.offered[0][2])[name]
        off = lab.reasons() if name == "datasets" else {}
        return _LAB.choices(name, called, self.lists[name], chosen, off, one)

    def crossed(
        self, caption: str, across: tuple[str, str], down: tuple[str, str], **more: Any
    ) -> str:
        """Return two lists crossed, each its name and what its items are called."""
        chosen = self.chosen(self.offered[0][2])
        sides = [(name, self.lists[name], chosen[name]) for name, _ in (across, down)]
        counts = [f"{len(self.lists[name])} {called}" for name, called in (across, down)]
        return _LAB.crossed(caption, *sides, f"All {' and '.join(counts)}", **more)

    def _items(self, listed: str, texts: Sequence[str]) -> tuple[str, ...]:
        items = [choice.item for choice in self.lists[listed]]
        found = [text if text in items else text.partition(":")[0] for text in texts]
        unknown = [item for item in found if item not in items]
        if unknown:
            raise SettingsError(f"The form has no {unknown[0]!r} among its {listed}.")
        return tuple(found)

    def state(self, order: T) -> str:
        """Return what a card puts into the form: items of its lists, and values of its fields."""
        filled = {"lists": self.chosen(order), "fields": self.fields(order)}
        return json.dumps({**filled, "form": self.name, "then": f"{self.name}-plan"})

    def cards(self, data: Path, absent: Mapping[str, str]) -> list[Card]:
        """Return the cards; absent: why data sets cannot be chosen, by name."""
        return [
            Card(
                title=title,
                line=line,
                facts=self._took_here(data, order),
                state=self.state(order),
                why=next((absent[s] for s in self.texts(order)["datasets"] if s in absent), ""),
            )
            for title, line, order in self.offered
        ]

    def _took_here(self, data: Path, order: T) -> str:
        seconds = jobs.last_seconds(data / "jobs", self.kind, self.like(order))
        return "" if seconds is None else f"took {words_for_seconds(seconds)} here"

    def cards_html(self, data: Path) -> str:
        """Return the cards with what the last run of each took on this machine."""
        return str(_LAB.cards(self.cards(data, lab.absent()), now_at(self.name)))


@dataclass(frozen=True, kw_only=True)
class More:
    """Further parts that a page draws of the shown job, and when it is chosen (`opened`)."""

    drawn: Sequence[Any] = ()
    opened: Callable[[Job | None], list[Any]] = lambda job: []
    opened_outputs: Sequence[Any] = ()


@dataclass(frozen=True, kw_only=True)
class LabPage(Generic[T]):
    """A page that attacks.

    called: what one run of it is. papers: what it is about, by the names of reproductions. data:
    the data folder. html: of the form. order_of: what the form means. told: what an order takes and
    what the last one like it took, as HTML, at once; measured: the same after a few steps, of a
    page that measures them. queued: the job of the form's order, not yet started. draw: a value for
    each of `RUNNING`, of `RESULTS` and of what `more` draws beside them; `nothing` in words where
    there is no job.
    """

    form: LabForm[T]
    title: str
    intro: str
    called: str
    papers: Sequence[str]
    data: Path
    html: str
    order_of: Callable[[Given], T]
    told: Callable[[T, str], str]
    queued: Callable[[Given], Job]
    draw: Callable[[Job], list[Any]]
    nothing: str
    measured: Callable[[T, str], str] | None = None
    more: Callable[[jobpanel.Jobs], More] = lambda ran: More()

    def plan(self, text: str, told: Callable[[T, str], str]) -> str:
        """Return what the order in `text`, a form's answer, takes; `SemsimError` what is wrong."""
        order = self.order_of(Given.of(text))
        last = last_words(self.data / "jobs", self.form.kind, self.form.like(order), SAME)
        return told(order, last)

    def begin(self, given: Given) -> Job:
        """Start the form's order as a job; raises `SemsimError` where it cannot be."""
        job = self.queued(given)
        jobs.start(job)
        return job


def render(page: LabPage[Any]) -> Loads:
    """Lay the page out where the caller stands; returns what it does when it is loaded."""
    name, kind = page.form.name, page.form.kind
    lab.head(page.title, page.intro)
    with gr.Tabs(elem_id=f"{name}-tabs") as tabs:
        with gr.Tab("Plan", id=_PLAN):
            lab.bound(f"{name}-cards", page.form.cards_html(page.data))
            lab.bound(f"{name}-form", f'<div data-form="{name}">{page.html}</div>')
            answer = gr.Textbox(visible=False)  # by which it comes in, read by `Given.of`
            with gr.Row(elem_classes="lab-bar"):
                begin = gr.Button("Start", variant="primary", scale=0, elem_id=f"{name}-start")
                show = gr.Button("What it takes", scale=0, elem_id=f"{name}-plan")
                taken = gr.HTML(elem_id=f"{name}-outlook", apply_default_css=False, padding=False)
            trouble = gr.HTML(elem_id=f"{name}-trouble")
        with gr.Tab("Running", id=_RUN, render_children=True):
            ran = jobpanel.Jobs(page.called, name, page.data / "jobs", kind)
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
        tab = gr.Tabs(selected=_RUN) if jobs.live_jobs(ran.root, kind) else gr.skip()
        return [tab, *ran.load()]

    js = _READ.format(folder=rooted(lab.FOLDER), name=name)
    quiet: dict[str, Any] = {"js": js, "show_progress": "hidden", **QUIETLY}
    said = [trouble, taken]
    shown = show.click(lambda text: ["", plan_words(page, text)], answer, said, **quiet)
    if page.measured is not None:  # another order may be asked about while one is measured
        # Apart from the plan, which is there at once.
        shown.then(
            lambda text: measured_words(page, text), answer, said, trigger_mode="multiple", **quiet
        )
    ran.begin_with(
        begin,
        [answer],
        trouble,
        lambda text: page.begin(Given.of(text)),
        js=js,
        begun=[(tabs, gr.update(selected=_RUN))],
    )
    return [(load, [tabs, *outputs])]


def draw(page: LabPage[Any], job: Job | None, more: int = 0) -> list[Any]:
    """Draw a job; where there is none, say so on both tabs, with what to do."""
    if job is None:
        empty = str(_LAB.nothing(page.nothing, page.form.name))
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
    """Return why a job has no answer yet, "" where it has none to give."""
    state = jobs.state(job)
    if state in jobs.LIVE:
        return "The answer stands here when this is done; how far it is stands under Running."
    if state is JobState.DONE:
        return ""
    return "This has not come to its end, so that there is no answer. Running says why."


def plan_words(page: LabPage[Any], text: str) -> str:
    """Return what the form's order takes, as HTML; what is wrong with it, in its place."""
    try:
        return page.plan(text, page.told)
    except SemsimError as error:
        return alert_html(error)


def measured_words(page: LabPage[Any], text: str) -> list[Any]:
    """Return what went wrong in measuring, and what `plan_words` says after it."""
    assert page.measured is not None
    try:
        return ["", page.plan(text, page.measured)]
    except SemsimError as error:
        return [alert_html(error), gr.skip()]


def _html(name: str, part: str) -> gr.HTML:
    """A part of a job, and that it is being read where it comes first on its tab."""
    first = lab.reading() if part in ("strip", "verdict") else ""
    return gr.HTML(first, elem_id=f"{name}-{part}", apply_default_css=False, padding=False)


def now_at(name: str) -> str:
    """Return the address of the part of a page that is called so, as it is now."""
    return rooted(f"{_NOW}/{name}")


def router(drawn: Mapping[str, Callable[[], str]]) -> APIRouter:
    """The parts of pages that are drawn anew when a page is loaded, cards by their form's name."""
    routes = APIRouter()

    @routes.get(_NOW + "/{name}")
    @worded
    def now(name: str) -> Response:
        if name not in drawn:
            raise GoneError("No such part.")
        return HTMLResponse(drawn[name]())

    return routes


def disk_words(size: int) -> str:
    """Bytes as people say them."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{max(size, 1e5) / 1e6:.1f} MB"


def outlook_html(
    made: str, more: str, attacked: str, disk: int, *notes: str, time: str = ""
) -> str:
    """Return what an order takes before it is started, as HTML.

    made, attacked: counts in words; more: beside what is made. disk: bytes at most. time: in words,
    or "" where there is no forecast.
    """
    told = " ".join(filter(None, notes))
    return str(_LAB.outlook(made, more, attacked, time, disk_words(disk), told))


def made_html(inside: str, folders: Sequence[str | Path]) -> str:
    """Return the link to a study of what was made, then `inside`, then the folders of the sets."""
    sets = counted(len(folders), "reconstruction set")
    return str(_LAB.made(study_address(folders), inside, sets, folders))
