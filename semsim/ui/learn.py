"""The page Train SemSim: choose votes and settings, watch it learn, find it again."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr

from semsim.errors import DataError, SemsimError
from semsim.jobs import folders as jobs
from semsim.jobs.folders import Job, JobState
from semsim.learning import PRESETS, TrainSettings
from semsim.learning.ablations_run import JudgedOrder, Workplace, queue_judged
from semsim.learning.card_promoted import promote, promoted
from semsim.learning.orders import KIND, Facts, Order, name_of, read_facts
from semsim.learning.splits import (
    KINDS,
    HoldOut,
    choices,
    count,
    hold_out_text,
    parse_hold_out,
)
from semsim.learning.triplets import is_simulated, take_stock
from semsim.ui import (
    ScienceContext,
    StudyChoice,
    jobpanel,
    learn_form,
    learn_studies,
    learn_view,
)
from semsim.ui.jobpanel import alert_html
from semsim.ui.learn_chosen import labels_of, material_of, studies_behind, study_names
from semsim.ui.learn_view import TrainingRow

_PRESET = "small"
_NO_STUDY = (
    "<p>There is no study yet. Make one on the page Studies, collect votes, then come back.</p>"
)
_NO_CHOICE = "<p>Choose at least one study; its votes are what SemSim learns from.</p>"
_ORIGINALS = ("Originals only", "original")
_QUIET: dict[str, Any] = {"queue": False, "api_visibility": "private"}


def render(context: ScienceContext) -> list[tuple[Callable[..., Any], list[Any]]]:
    """Lay the page out where the caller stands; returns what it does when it is loaded."""
    gr.Markdown(
        "# Train SemSim\nSemSim learns a distance between images from votes: an original should "
        "be near to the reconstructions people recognise and far from those they do not."
    )
    with gr.Row():
        with gr.Column(scale=2, min_width=320):
            study, stock, hold_out, share, split, name, preset, form, begin, trouble = _order_form()
        with gr.Column(scale=3, min_width=320):
            chosen, panel, drawn, choose, chosen_one = _watch_area()
    trainings = gr.HTML(elem_id="learn-trainings")
    studying = learn_studies.section(context, study, hold_out, share)

    root = context.data / "jobs"
    look = jobpanel.wire(
        panel,
        chosen,
        root,
        also=lambda job: [*draw(context, job), trainings_now(context)],
        also_outputs=[*drawn, trainings],
    )
    watched = [*panel.outputs, *drawn, trainings]

    def load() -> list[Any]:
        studies = [(_study_label(s), s.id) for s in context.studies()]
        first = [id_ for _, id_ in studies[:1]]
        training = newest(root)
        return [
            gr.Dropdown(choices=studies, value=first),
            *describe(context, first),
            learn_form.starts_offered(context.checkpoints),
            _trainings_dropdown(root, training),
            *look(training),
            *studying.load(),
        ]

    def start(
        studies: Sequence[str], held: str, part: float, name: str, preset: str, *values: Any
    ) -> list[Any]:
        try:
            settings = learn_form.settings_of(preset, values, context.checkpoints)
            asked = parse_hold_out(held or "original", part)
            job = begin_training(context, studies, name, settings, asked)
            next_name = suggest_name(context, studies)
        except SemsimError as error:
            return [alert_html(error), *(gr.skip() for _ in [name, chosen, *watched])]
        return ["", next_name, _trainings_dropdown(root, job.id), *look(job.id)]

    def promote_chosen(job_id: str | None) -> list[Any]:
        return [promote_training(context, job_id), trainings_now(context)]

    study.input(lambda s: describe(context, s), study, [stock, name, hold_out, split], **_QUIET)
    for part in (hold_out, share):
        part.change(
            lambda *asked: describe_split(context, *asked),
            [study, hold_out, share],
            split,
            show_progress="hidden",
            **_QUIET,
        )
    choose.click(promote_chosen, chosen, [chosen_one, trainings], **_QUIET)
    preset.input(lambda p: learn_form.form_values(PRESETS[p]), preset, form.fields, **_QUIET)
    chosen.input(look, chosen, watched, show_progress="hidden", **_QUIET)
    asked = [study, hold_out, share, name, preset, *form.fields]
    begin.click(start, asked, [trouble, name, chosen, *watched], **_QUIET)
    described = [study, stock, name, hold_out, split, form.weights]
    loaded = [*described, chosen, *watched, *studying.outputs]
    return [(load, loaded)]


def describe(context: ScienceContext, studies: Sequence[str]) -> list[Any]:
    """What can be learned from studies, a free name, what can be held out, and what that leaves."""
    nothing = gr.Dropdown(choices=[_ORIGINALS], value=_ORIGINALS[1])
    if not studies:
        return [_NO_CHOICE if context.studies() else _NO_STUDY, "", nothing, ""]
    try:
        labels = labels_of(context, studies)
        html = learn_view.stock_html(take_stock(labels), is_simulated(labels))
        groups = [(kind, value) for kind in KINDS for value in choices(labels, kind)]
        offered = [(f"Originals and the {k} {v}", f"{k}={v}") for k, v in groups]
        name = suggest_name(context, studies)
    except SemsimError as error:
        return [alert_html(error), "", nothing, ""]
    first = hold_out_text(HoldOut())
    return [
        html,
        name,
        gr.Dropdown(choices=[_ORIGINALS, *offered], value=first),
        describe_split(context, studies, first, HoldOut().fraction),
    ]


def describe_split(
    context: ScienceContext, studies: Sequence[str], held: str | None, share: float
) -> str:
    """What a training with this hold-out would have and what it lacks, as HTML."""
    if not studies:
        return ""
    try:
        asked = parse_hold_out(held or "original", share)
        return learn_view.split_html(count(labels_of(context, studies), asked), asked)
    except SemsimError as error:
        return alert_html(error)


def promote_training(context: ScienceContext, job_id: str | None) -> str:
    """Make the SemSim of a finished training that of the workspace; says so, as HTML."""
    job = jobpanel.find(context.data / "jobs", job_id)
    try:
        if job is None or jobs.state(job) is not JobState.DONE:
            raise DataError("Choose a training that is done; only its SemSim can be used.")
        name = read_facts(job).name
        promote(context.checkpoints, name)
    except SemsimError as error:
        return alert_html(error)
    return f'<p role="status">{escape(name)} is now the SemSim of this workspace.</p>'


def draw(context: ScienceContext, job: Job | None) -> list[Any]:
    """The curves of a training and, when it is done, its result and the button to use it."""
    if job is None:
        return [*(gr.Plot(visible=False) for _ in range(3)), "", gr.Button(visible=False)]
    history, result, is_done = jobs.history(job), "", jobs.state(job) is JobState.DONE
    if is_done:
        found = jobs.result(job)
        result = learn_view.result_html(found, studies_behind(context, found["study"]))
    return [
        gr.Plot(learn_view.loss_figure(history, job.id), visible=True),
        gr.Plot(learn_view.distance_figure(history, job.id), visible=True),
        gr.Plot(learn_view.auc_figure(history, job.id), visible=True),
        result,
        gr.Button(visible=is_done),
    ]


def begin_training(
    context: ScienceContext,
    studies: Sequence[str],
    name: str,
    settings: TrainSettings,
    hold_out: HoldOut,
) -> Job:
    """Start a judged training on studies as a job; raises `SemsimError` where it cannot be."""
    material = material_of(context, studies)
    place = Workplace(
        checkpoints=Path(context.checkpoints).resolve(),
        scores=(context.data / "scores").resolve(),
        device=str(context.device),
    )
    order = Order(
        name=name.strip(),
        checkpoints=place.checkpoints,
        settings=replace(settings, device=place.device),
        study=study_names(context, studies),
    )
    asked = JudgedOrder(order=order, hold_out=hold_out)
    job = queue_judged(asked, material, place, context.data / "jobs")
    jobs.start(job)
    return job


def suggest_name(context: ScienceContext, studies: Sequence[str]) -> str:
    """A name made from the studies' that no checkpoint and no training has."""
    study = study_names(context, studies).lower()
    letters = "".join(c if c.isascii() and c.isalnum() else " " for c in study)
    stem = "-".join(["semsim", *letters.split()])[:60]
    taken = {name_of(job) for job in jobs.list_jobs(context.data / "jobs", KIND)}
    taken |= {path.stem for path in Path(context.checkpoints).glob("*.safetensors")}
    numbers = itertools.count(1)
    return next(f"{stem}-{n}" for n in numbers if f"{stem}-{n}" not in taken)


def newest(root: Path) -> str | None:
    """The id of the training to show first."""
    found = jobs.list_jobs(root, KIND)
    return found[0].id if found else None


def trainings_now(context: ScienceContext) -> str:
    """The list of all trainings of the workspace, as HTML."""
    best = promoted(context.checkpoints)
    trainings = jobs.list_jobs(context.data / "jobs", KIND)
    return learn_view.trainings_html([_row(job, best) for job in trainings])


def _row(job: Job, best: str | None) -> TrainingRow:
    state = jobs.state(job)
    try:
        facts = read_facts(job)
    except SemsimError as error:
        facts = Facts(name=job.title, study=f"unreadable: {error}", simulated=False)
    return TrainingRow(
        created=job.created,
        facts=facts,
        state=state,
        result=jobs.result(job) if state is JobState.DONE else {},
        promoted=state is JobState.DONE and facts.name == best,
    )


def _trainings_dropdown(root: Path, value: str | None) -> Any:
    trainings = jobs.list_jobs(root, KIND)
    choices = [(f"{job.title} · {learn_view.when(job.created)}", job.id) for job in trainings]
    return gr.Dropdown(choices=choices, value=value, visible=bool(choices))


def _study_label(study: StudyChoice) -> str:
    return f"{study.name} (simulated votes)" if study.simulated else study.name


def _order_form() -> tuple[Any, ...]:
    # The lists below change while the server runs; after a restart it knows an open page's choice
    # only if a value outside the first list is allowed.
    study = gr.Dropdown(
        [],
        label="Studies whose votes to learn from",
        multiselect=True,
        allow_custom_value=True,
        elem_id="learn-study",
    )
    stock = gr.HTML(elem_id="learn-stock")
    hold_out = gr.Dropdown(
        [_ORIGINALS],
        value=_ORIGINALS[1],
        label="Keep for the test",
        info="Judged by what it has not seen: no original is on both sides.",
        allow_custom_value=True,
        elem_id="learn-hold-out",
    )
    share = gr.Slider(
        0.1, 0.5, HoldOut().fraction, step=0.05, label="Share of originals", elem_id="learn-share"
    )
    split = gr.HTML(elem_id="learn-split")
    name = gr.Textbox(label="Name of the new SemSim", max_length=80, elem_id="learn-name")
    preset = gr.Radio(
        list(PRESETS),
        value=_PRESET,
        label="Preset",
        info="small: minutes on a laptop. pooled: for studies of some ten to a hundred originals. "
        "paper: as published, ResNet-50, hours and a GPU.",
        elem_id="learn-preset",
    )
    form = learn_form.build(PRESETS[_PRESET])
    begin = gr.Button("Start training", variant="primary", elem_id="learn-start")
    trouble = gr.HTML(elem_id="learn-trouble")
    return study, stock, hold_out, share, split, name, preset, form, begin, trouble


def _watch_area() -> tuple[Any, jobpanel.JobPanel, list[Any], Any, Any]:
    chosen = gr.Dropdown(
        [], label="Training", allow_custom_value=True, visible=False, elem_id="learn-job"
    )
    panel = jobpanel.build("learn")
    result = gr.HTML(elem_id="learn-result")
    loss = gr.Plot(show_label=False, visible=False, elem_id="learn-loss-curve")
    distance = gr.Plot(show_label=False, visible=False, elem_id="learn-distances")
    auc = gr.Plot(show_label=False, visible=False, elem_id="learn-auc")
    choose = gr.Button(
        "Use as the SemSim of this workspace", visible=False, elem_id="learn-promote"
    )
    said = gr.HTML(elem_id="learn-promoted")
    return chosen, panel, [loss, distance, auc, result, choose], choose, said
