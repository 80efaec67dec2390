"""The page Reconstruct: choose targets and attacks, see what they take, run them, look."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import gradio as gr

from semsim.attacks import ATTACKS
from semsim.campaign.campaign_job import KIND, name_of
from semsim.campaign.plan import Campaign
from semsim.campaign.watch import read_campaign
from semsim.datasets import DATASETS, OnDisk
from semsim.defences.strategies import NAMED_STRATEGIES
from semsim.errors import SemsimError
from semsim.grid.apart import apart
from semsim.jobs import folders as jobs
from semsim.jobs.folders import Job, JobState
from semsim.judges.judge_card import tested
from semsim.judges.shelf import judges
from semsim.targets import TARGETS
from semsim.ui import ScienceContext, jobpanel, reconstruct_view
from semsim.ui.jobpanel import QUIETLY, alert_html
from semsim.ui.reconstruct_data import (
    Form,
    SetView,
    kept_plan,
    set_views,
)

# What is chosen when the page opens: minutes on two cores, with the built-in symbols.
FIRST = {
    "datasets": ("symbols:train_per_class=20",),
    "architectures": ("resnet20-4:width=16,activation=tanh", "convnet8:width=16,activation=tanh"),
    "strategies": ("none", "crop-flip"),
    "attacks": ("invgrad",),
}
_TEXT_ONLY = {"folder", "torchvision", "cafe"}  # nothing without settings of their own
_PRESETS = ("fast", "code", "paper")
_NOTHING = "<p>No campaign has been started here yet. The first one will be shown here.</p>"
_NO_JUDGE = "None: random word lists"


@dataclass(frozen=True, kw_only=True)
class _Inputs:
    """The form, in the order its values come in."""

    name: Any
    datasets: Any
    architectures: Any
    strategies: Any
    attacks: Any
    preset: Any
    images: Any
    seeds: Any
    training: Any
    judge: Any
    more_datasets: Any
    more_architectures: Any
    more_strategies: Any
    more_attacks: Any

    @property
    def all(self) -> list[Any]:
        return [getattr(self, one.name) for one in fields(self)]


def render(context: ScienceContext) -> list[tuple[Callable[..., Any], list[Any]]]:
    """Lay the page out where the caller stands; returns what it does when it is loaded."""
    gr.HTML(reconstruct_view.STYLE, apply_default_css=False)
    gr.Markdown(
        "# Reconstruct\nTrain classifiers under several strategies, attack images through the "
        "gradients they leak, and get one reconstruction set for every model and attack."
    )
    with gr.Row():
        with gr.Column(scale=2, min_width=320):
            inputs, missing, show, begin, trouble, taken = _form()
        with gr.Column(scale=3, min_width=320):
            ran = jobpanel.Jobs("Campaign", "rec", context.data / "jobs", KIND)
            drawn = [
                gr.HTML(elem_id="rec-sets", apply_default_css=False),
                gr.HTML(elem_id="rec-result"),
            ]
            with gr.Row():
                small: dict[str, Any] = {"min_width": 140, "visible": False}
                attack = gr.Dropdown(
                    [], label="Attack", allow_custom_value=True, elem_id="rec-attack", **small
                )
                page = gr.Number(1, label="Page", precision=0, elem_id="rec-page", **small)
            grid = gr.HTML(elem_id="rec-grid", apply_default_css=False)

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
        absent = reconstruct_view.missing_html(missing_data())
        known = gr.Dropdown(choices=judge_choices(context))
        return [free_name(context), absent, known, *ran.load()]

    def redraw(job_id: str | None, attack: str | None, page: float | None) -> str:
        return grid_now(context, jobpanel.find(ran.root, job_id), attack, page)

    def plan(*values: Any) -> list[Any]:
        return ["", *plan_words(context, values)]

    def measured(*values: Any) -> list[Any]:
        return measured_words(context, values)  # apart from the plan, which is there at once

    show.click(plan, inputs.all, [trouble, taken], **QUIETLY).then(
        measured, inputs.all, [trouble, taken], show_progress="hidden", **QUIETLY
    )
    ran.begin_with(
        begin,
        inputs.all,
        trouble,
        lambda *values: begin_campaign(context, values),
        name=inputs.name,
        next_name=lambda *values: free_name(context),
    )
    of_grid = [ran.chosen, attack, page]
    ran.panel.timer.tick(redraw, of_grid, grid, show_progress="hidden", **QUIETLY)
    for control in (attack, page):
        control.input(redraw, of_grid, grid, show_progress="hidden", **QUIETLY)
    return [(load, [inputs.name, missing, inputs.judge, *outputs])]


def plan_words(context: ScienceContext, values: Sequence[Any]) -> list[str]:
    """What the form's campaign takes, as HTML; what is wrong with it, in its place."""
    try:
        return [_outlook(context, values, measured=False)]
    except SemsimError as error:
        return [alert_html(error)]


def measured_words(context: ScienceContext, values: Sequence[Any]) -> list[Any]:
    """What `plan_words` says once a few steps are measured, after what went wrong in measuring."""
    try:
        return ["", _outlook(context, values, measured=True)]
    except SemsimError as error:
        return [alert_html(error), gr.skip()]


def _outlook(context: ScienceContext, values: Sequence[Any], measured: bool) -> str:
    where = "semsim.ui.reconstruct_data:told"
    view = apart(where, _form_of(values), context.data, measured)
    return reconstruct_view.outlook_html(view, os.cpu_count() or 1, measuring=not measured)


def begin_campaign(context: ScienceContext, values: Sequence[Any]) -> Job:
    """Start the form's campaign as a job; raises `SemsimError` where it cannot be."""
    where = "semsim.ui.reconstruct_data:queued"
    job: Job = apart(
        where, _form_of(values), context.data, str(context.device), context.checkpoints
    )
    jobs.start(job)
    return job


def draw(context: ScienceContext, job: Job | None) -> list[Any]:
    """The progress of a campaign's sets and, when it is done, its result."""
    if job is None:
        return [_NOTHING, ""]
    try:
        sets = reconstruct_view.sets_html(_views(context, job))
    except SemsimError as error:
        return [alert_html(error), ""]
    done = jobs.state(job) is JobState.DONE
    return [sets, reconstruct_view.result_html(jobs.result(job)) if done else ""]


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
    return f"<p>Page {place} of {last}</p>" + reconstruct_view.grid_html(views, images, place)


def free_name(context: ScienceContext) -> str:
    """A name no campaign has."""
    runs = context.data / "runs"
    number = 1
    while (runs / f"campaign-{number}").exists():
        number += 1
    return f"campaign-{number}"


def judge_choices(context: ScienceContext) -> list[tuple[str, str]]:
    """No judge first, then each with what it is of and how good it is on spoilt pictures."""
    known = {name: facts for name, facts in judges(context.checkpoints).items() if facts}
    return [
        (_NO_JUDGE, ""),
        *((f"{name}: {one['dataset']['name']}, {tested(one['degraded'])}", name)
          for name, one in known.items()),
    ]  # fmt: skip


def _views(context: ScienceContext, job: Job) -> list[SetView]:
    return set_views(context, _read(context, job))


def _read(context: ScienceContext, job: Job) -> Campaign:
    return read_campaign(context.data, name_of(job))


def _form_of(values: Sequence[Any]) -> Form:
    given = dict(zip((one.name for one in fields(_Inputs)), values, strict=True))
    lists = ("datasets", "architectures", "strategies", "attacks")
    return Form(
        name=given["name"] or "",
        chosen={name: tuple(given[name] or ()) for name in lists},
        more={name: given[f"more_{name}"] or "" for name in lists},
        preset=given["preset"],
        images=given["images"],
        seeds=given["seeds"] or "",
        training=given["training"] or "",
        judge=given["judge"] or "",
    )


def missing_data() -> dict[str, str]:
    """The data sets that are not on this machine, and the command that gets each."""
    made = {name: DATASETS[name]() for name in DATASETS}
    return {
        name: f"python -m semsim datasets get {name}"
        for name, data in made.items()
        if isinstance(data, OnDisk) and not data.present()
    }


def _offered(registry: Any, first: Sequence[str]) -> list[tuple[str, str]]:
    """What a list offers: words, and the text they stand for."""
    names = [text.partition(":")[0] for text in first]
    plain = [one for one in registry if one not in names and one not in _TEXT_ONLY]
    return [(_spoken(text), text) for text in [*first, *plain]]


def _spoken(text: str) -> str:
    name, _, settings = text.partition(":")
    words = settings.replace("_", " ").replace("=", " ").replace(",", ", ")
    return f"{name} ({words})" if words else name


def _form() -> tuple[_Inputs, Any, Any, Any, Any, Any]:
    named = {one.name: one.metadata.get("label") for one in fields(Campaign)}
    name = gr.Textbox(label=named["name"], max_length=80, elem_id="rec-name")
    boxes = {
        "datasets": DATASETS,
        "architectures": TARGETS,
        "strategies": NAMED_STRATEGIES,
        "attacks": ATTACKS,
    }
    chosen = {
        key: gr.CheckboxGroup(
            _offered(known, FIRST[key]),
            value=list(FIRST[key]),
            label=named[key],
            elem_id=f"rec-{key}",
        )
        for key, known in boxes.items()
    }
    missing = gr.HTML(elem_id="rec-missing")
    preset = gr.Radio(
        list(_PRESETS),
        value="fast",
        label="Preset of the attacks",
        info="fast: minutes on a laptop. paper: as published. code: as the authors' code has it.",
        elem_id="rec-preset",
    )
    with gr.Row():
        images = gr.Number(6, label=named["images"], precision=0, elem_id="rec-images")
        seeds = gr.Textbox("0", label=named["seeds"], info="as 0 1 2", elem_id="rec-seeds")
        training = gr.Textbox(
            "epochs=2,lr=0.02",
            label="Training",
            info="as epochs=200,lr=0.1",
            elem_id="rec-training",
        )
    judge = gr.Dropdown(
        [(_NO_JUDGE, "")],
        value="",
        label="Judge",
        info="A classifier that was never attacked: it ranks the words of a study's lists. "
        "`python -m semsim judge train` makes one.",
        elem_id="rec-judge",
    )
    with gr.Accordion("More, written as text", open=False, elem_id="rec-more"):
        gr.Markdown(
            "One a line, with settings after a colon: `folder:root=/images`, "
            "`convnet8:width=32`, `ats:3-1-7`, `invgrad:fast,steps=100`."
        )
        more = {
            f"more_{key}": gr.Textbox(label=named[key], lines=2, elem_id=f"rec-more-{key}")
            for key in boxes
        }
    with gr.Row():
        show = gr.Button("Show the plan", elem_id="rec-plan")
        begin = gr.Button("Start", variant="primary", elem_id="rec-start")
    trouble = gr.HTML(elem_id="rec-trouble")
    taken = gr.HTML(elem_id="rec-outlook")
    inputs = _Inputs(
        name=name,
        preset=preset,
        images=images,
        seeds=seeds,
        training=training,
        judge=judge,
        **chosen,
        **more,
    )
    return inputs, missing, show, begin, trouble, taken
