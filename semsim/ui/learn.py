"""The page Train SemSim: choose votes and settings, watch it learn, find it again."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gradio as gr

from semsim import jobs
from semsim.errors import DataError, SemsimError, SettingsError
from semsim.jobs import Job, JobState
from semsim.learning import BACKBONES, PRESETS, TrainSettings
from semsim.learning.orders import KIND, Order, queue_training, read_facts
from semsim.learning.triplets import is_simulated, take_stock
from semsim.ui import ScienceContext, StudyChoice, jobpanel, learn_view
from semsim.ui.jobpanel import alert_html
from semsim.ui.learn_view import TrainingRow

# The settings on the page, in the order of the form; the others keep the preset's values.
FORM = (
    "backbone",
    "epochs",
    "lr",
    "batch_size",
    "triplets_per_original",
    "margin",
    "validation_fraction",
    "small_stem",
    "normalize",
    "seed",
)
_WHOLE = {"epochs", "batch_size", "triplets_per_original", "seed"}
_PRESET = "small"
_NO_STUDY = (
    "<p>There is no study yet. Make one on the page Studies, collect votes, then come back.</p>"
)
_QUIET: dict[str, Any] = {"queue": False, "api_visibility": "private"}


def render(context: ScienceContext) -> list[tuple[Callable[..., Any], list[Any]]]:
    """Lay the page out where the caller stands; returns what it does when it is loaded."""
    gr.Markdown(
        "# Train SemSim\nSemSim learns a distance between images from votes: an original should "
        "be near to the reconstructions people recognise and far from those they do not."
    )
    with gr.Row():
        with gr.Column(scale=2, min_width=320):
            study, stock, name, preset, form, begin, trouble = _order_form()
        with gr.Column(scale=3, min_width=320):
            chosen, panel, drawn = _watch_area()
    trainings = gr.HTML(elem_id="learn-trainings")

    root = context.data / "jobs"
    look = jobpanel.wire(
        panel,
        chosen,
        root,
        also=lambda job: [*draw(job), trainings_now(root)],
        also_outputs=[*drawn, trainings],
    )
    watched = [*panel.outputs, *drawn, trainings]

    def load() -> list[Any]:
        studies = [(_study_label(s), s.id) for s in context.studies()]
        first = studies[0][1] if studies else None
        training = newest(root)
        return [
            gr.Dropdown(choices=studies, value=first),
            *describe(context, first),
            _trainings_dropdown(root, training),
            *look(training),
        ]

    def start(study_id: str | None, name: str, preset: str, *values: Any) -> list[Any]:
        try:
            job = begin_training(context, study_id, name, settings_of(preset, values))
            next_name = suggest_name(context, study_id)
        except SemsimError as error:
            return [alert_html(error), *(gr.skip() for _ in [name, chosen, *watched])]
        return ["", next_name, _trainings_dropdown(root, job.id), *look(job.id)]

    study.input(lambda s: describe(context, s), study, [stock, name], **_QUIET)
    preset.input(lambda p: form_values(PRESETS[p]), preset, form, **_QUIET)
    chosen.input(look, chosen, watched, show_progress="hidden", **_QUIET)
    begin.click(start, [study, name, preset, *form], [trouble, name, chosen, *watched], **_QUIET)
    return [(load, [study, stock, name, chosen, *watched])]


def describe(context: ScienceContext, study_id: str | None) -> list[Any]:
    """What can be learned from a study, as HTML, and a free name for what is learned."""
    if not study_id:
        return [_NO_STUDY, ""]
    try:
        labels = context.labels(study_id)
        html = learn_view.stock_html(take_stock(labels), is_simulated(labels))
        return [html, suggest_name(context, study_id)]
    except SemsimError as error:
        return [alert_html(error), ""]


def draw(job: Job | None) -> list[Any]:
    """The curves of a training and, when it is done, its result."""
    if job is None:
        return [gr.Plot(visible=False), gr.Plot(visible=False), ""]
    history = jobs.history(job)
    done = jobs.state(job) is JobState.DONE
    return [
        gr.Plot(learn_view.loss_figure(history, job.id), visible=True),
        gr.Plot(learn_view.distance_figure(history, job.id), visible=True),
        learn_view.result_html(jobs.result(job)) if done else "",
    ]


def begin_training(
    context: ScienceContext, study_id: str | None, name: str, settings: TrainSettings
) -> Job:
    """Start the training of a study's labels as a job; raises `SemsimError` where it cannot be."""
    if not study_id:
        raise DataError("Choose a study first; its votes are what SemSim learns from.")
    order = Order(
        name=name.strip(),
        checkpoints=Path(context.checkpoints).resolve(),
        settings=replace(settings, device=str(context.device)),
        study=_study_name(context, study_id),
    )
    job = queue_training(order, context.labels(study_id), context.data / "jobs")
    jobs.start(job)
    return job


def settings_of(preset: str, values: tuple[Any, ...]) -> TrainSettings:
    """The preset with the values of the form, in the order of `FORM`, in their place."""
    given = dict(zip(FORM, values, strict=True))
    empty = [field for field, value in given.items() if value is None]
    if empty:
        raise SettingsError(f"{empty[0]} is empty; give a value.")
    whole = {field: int(given[field]) for field in _WHOLE}
    return replace(PRESETS[preset], **{**given, **whole})


def form_values(settings: TrainSettings) -> list[Any]:
    """The values of the form that mean `settings`, in the order of `FORM`."""
    return [getattr(settings, field) for field in FORM]


def suggest_name(context: ScienceContext, study_id: str | None) -> str:
    """A name made from the study's that no checkpoint and no training has."""
    study = _study_name(context, study_id or "").lower()
    letters = "".join(c if c.isascii() and c.isalnum() else " " for c in study)
    stem = "-".join(["semsim", *letters.split()])[:60]
    taken = {read_facts(job).name for job in jobs.list_jobs(context.data / "jobs", KIND)}
    taken |= {path.stem for path in Path(context.checkpoints).glob("*.safetensors")}
    numbers = itertools.count(1)
    return next(f"{stem}-{n}" for n in numbers if f"{stem}-{n}" not in taken)


def newest(root: Path) -> str | None:
    """The id of the training to show first."""
    found = jobs.list_jobs(root, KIND)
    return found[0].id if found else None


def trainings_now(root: Path) -> str:
    """The list of all trainings below `root`, as HTML."""
    return learn_view.trainings_html([_row(job) for job in jobs.list_jobs(root, KIND)])


def _row(job: Job) -> TrainingRow:
    state = jobs.state(job)
    return TrainingRow(
        created=job.created,
        facts=read_facts(job),
        state=state,
        result=jobs.result(job) if state is JobState.DONE else {},
    )


def _trainings_dropdown(root: Path, value: str | None) -> Any:
    trainings = jobs.list_jobs(root, KIND)
    choices = [(f"{job.title} · {learn_view.when(job.created)}", job.id) for job in trainings]
    return gr.Dropdown(choices=choices, value=value, visible=bool(choices))


def _study_name(context: ScienceContext, study_id: str) -> str:
    names = {s.id: s.name for s in context.studies()}
    if study_id not in names:
        raise DataError("This study does not exist any more; reload the page.")
    return names[study_id]


def _study_label(study: StudyChoice) -> str:
    return f"{study.name} (simulated votes)" if study.simulated else study.name


def _order_form() -> tuple[Any, ...]:
    # The lists below change while the server runs; after a restart it knows an open page's choice
    # only if a value outside the first list is allowed.
    study = gr.Dropdown(
        [], label="Study whose votes to learn from", allow_custom_value=True, elem_id="learn-study"
    )
    stock = gr.HTML(elem_id="learn-stock")
    name = gr.Textbox(label="Name of the new SemSim", max_length=80, elem_id="learn-name")
    preset = gr.Radio(
        list(PRESETS),
        value=_PRESET,
        label="Preset",
        info="small: minutes on a laptop. paper: as published, ResNet-50, hours and a GPU.",
        elem_id="learn-preset",
    )
    with gr.Accordion("Settings", open=False, elem_id="learn-settings"):
        form = _settings_form(PRESETS[_PRESET])
    begin = gr.Button("Start training", variant="primary", elem_id="learn-start")
    trouble = gr.HTML(elem_id="learn-trouble")
    return study, stock, name, preset, form, begin, trouble


def _settings_form(settings: TrainSettings) -> list[Any]:
    fields: dict[str, Any] = {
        "backbone": gr.Dropdown(list(BACKBONES), label="Network", info="LeNet is the fastest."),
        "epochs": gr.Number(
            precision=0, minimum=1, label="Epochs", info="Passes over the originals."
        ),
        "lr": gr.Number(
            minimum=0, label="Learning rate", info="Lower it if the features collapse."
        ),
        "batch_size": gr.Number(precision=0, minimum=1, label="Triplets a step"),
        "triplets_per_original": gr.Number(
            precision=0, minimum=1, label="Triplets an original", info="Drawn anew each epoch."
        ),
        "margin": gr.Number(
            minimum=0, label="Margin", info="How much farther an unrecognisable one should be."
        ),
        "validation_fraction": gr.Slider(
            0, 0.5, step=0.05, label="Share held out", info="Originals kept aside to test it on."
        ),
        "small_stem": gr.Checkbox(
            label="Stem for small images",
            info="Sees more of 32×32 images, and takes ten times as long. LeNet has it anyway.",
        ),
        "normalize": gr.Checkbox(
            label="Features of length one", info="In training and in scoring alike."
        ),
        "seed": gr.Number(
            precision=0, minimum=0, label="Seed", info="The same seed trains the same SemSim."
        ),
    }
    for name, value in zip(FORM, form_values(settings), strict=True):
        fields[name].value = value
        fields[name].elem_id = f"learn-{name.replace('_', '-')}"
    return [fields[name] for name in FORM]


def _watch_area() -> tuple[Any, jobpanel.JobPanel, list[Any]]:
    chosen = gr.Dropdown(
        [], label="Training", allow_custom_value=True, visible=False, elem_id="learn-job"
    )
    panel = jobpanel.build("learn")
    result = gr.HTML(elem_id="learn-result")
    loss = gr.Plot(show_label=False, visible=False, elem_id="learn-loss")
    distance = gr.Plot(show_label=False, visible=False, elem_id="learn-distances")
    return chosen, panel, [loss, distance, result]
