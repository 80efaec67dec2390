"""The page Split inference: choose network, cuts, defences and attacks, watch, see what leaks."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gradio as gr

from semsim.errors import SettingsError
from semsim.grid.apart import apart
from semsim.jobs import folders as jobs
from semsim.jobs.folders import Job, JobState
from semsim.learning.card_promoted import promoted
from semsim.metrics import METRICS, Resources, all_metrics
from semsim.split.plan import PRESETS, SplitPlace, SplitPlan
from semsim.split.split_job import KIND
from semsim.ui import ScienceContext, jobpanel, lab, plain_words, split_view
from semsim.ui.markup import pieces
from semsim.ui.settings_form import Given, changed, settings_of

_BASE = PRESETS["small"]
_NAME = "split"
_NETWORKS = ("small:width=16",)
_DEFENCES = ("none", "single", "ensembler:bodies=4,selected=2")
_ATTACKS = ("adaptive", "adaptive-aligned")
_SHOWN = ("ssim", "psnr", "recogniser")  # scores that every result has
_TRAIN = ("epochs", "ensemble_epochs", "lr", "ensemble_lr", "batch_size")
_SHADOW = ("epochs", "lr", "batch_size")
_LAB, _HTML = pieces("lab.html"), pieces("split.html")
_INTRO = (
    "A client runs a network's first layers and sends their features to a server ([[split "
    "inference]]). Can the server get the pictures back, and what do defences hide?"
)


def render(context: ScienceContext) -> list[tuple[Callable[..., Any], list[Any]]]:
    """Lay the page out where the caller stands; returns what it does when it is loaded."""
    lab.head("Split inference", _INTRO)
    with gr.Row():
        with gr.Column(scale=2, min_width=300):
            _, answer, js = lab.form(_NAME, form_html())
            with gr.Accordion("More metrics", open=False):
                metrics = gr.Dropdown(
                    [],
                    value=[],
                    multiselect=True,
                    allow_custom_value=True,  # what is trained later is offered on loading
                    label="Beside SSIM, PSNR and a recogniser",
                    info="A SemSim of yours is semsim:<its name>.",
                    elem_id="split-metrics",
                )
            begin = gr.Button("Start", variant="primary", elem_id="split-start")
            trouble = gr.HTML(elem_id="split-trouble")
        with gr.Column(scale=4, min_width=320):
            ran = jobpanel.Jobs("Experiment", "split", context.data / "jobs", KIND)
            result = gr.HTML(elem_id="split-result", apply_default_css=False, padding=False)

    def start(text: str, more: Sequence[str] | None) -> Job:
        return begin_experiment(context, plan_of_form(Given.of(text), more or ()))

    outputs = ran.follow(lambda job: [outcome_html(job)], [result])
    ran.begin_with(begin, [answer, metrics], trouble, start, js=js)
    return [(lambda: [offered_metrics(context.checkpoints), *ran.load()], [metrics, *outputs])]


def form_html() -> str:
    """The form, filled with the small preset."""
    reasons = lab.reasons()
    return str(
        _HTML.form(
            _LAB.choices("datasets", "Pictures", plain_words.PICTURES, ("digits",), reasons, True),
            _LAB.choices(
                "split-defences", "Defences", plain_words.SPLIT_DEFENCE_CHOICES, _DEFENCES
            ),
            _LAB.choices("attacks", "Attacks", plain_words.SPLIT_ATTACK_CHOICES, _ATTACKS),
            _LAB.more(
                ("split-networks", "split-defences", "datasets"),
                _HTML.more(
                    _LAB.choices(
                        "split-networks", "Networks", plain_words.SPLIT_NETWORK_CHOICES, _NETWORKS
                    ),
                    _LAB.fields(settings_of(_BASE, ("images",))),
                    _LAB.fields(settings_of(_BASE.train, _TRAIN), "train."),
                    _LAB.fields(settings_of(_BASE.shadow, _SHADOW), "shadow."),
                    _BASE,
                ),
                "More: cuts, networks, epochs, seeds",
            ),
        )
    )


def plan_of_form(given: Given, metrics: Sequence[str] = ()) -> SplitPlan:
    """The plan that the form means; `SettingsError` names a field that is empty.

    The undefended system is always among the defences: without it nothing can be said of them.
    """
    datasets = given.texts("datasets")
    if not datasets:
        raise SettingsError("Choose the pictures.")
    shadow = changed(_BASE.shadow, given.fields, "shadow.")
    return replace(
        _BASE,
        name=given.text("name"),
        dataset=datasets[0],
        networks=given.texts("split-networks"),
        defences=tuple(dict.fromkeys(("none", *given.texts("split-defences")))),
        attacks=given.texts("attacks"),
        defence_seeds=tuple(range(given.whole("defence_seeds", "Defence seeds"))),
        attack_seeds=tuple(range(given.whole("attack_seeds", "Attack seeds"))),
        images=given.whole("images", "Images judged"),
        train=changed(_BASE.train, given.fields, "train."),
        shadow=replace(shadow, decoder_epochs=shadow.epochs),
        metrics=tuple(metrics),
    )


def begin_experiment(context: ScienceContext, plan: SplitPlan) -> Job:
    """Start the experiment as a job; raises `SemsimError` where it cannot be."""
    place = SplitPlace(
        data=context.data, checkpoints=Path(context.checkpoints), device=str(context.device)
    )
    job: Job = apart("semsim.split.split_job:queue_split", plan, place)
    jobs.start(job)
    return job


def outcome_html(job: Job | None) -> str:
    """What an experiment found, once it is done."""
    if job is None:
        return str(_HTML.nothing())
    return split_view.result_html(jobs.result(job)) if jobs.state(job) is JobState.DONE else ""


def offered_metrics(checkpoints: Path) -> Any:
    """The metrics there are now, what has been trained first; the promoted SemSim is chosen."""
    names = [name for name in all_metrics(Resources(checkpoints=checkpoints)) if name not in _SHOWN]
    mine = promoted(checkpoints)
    chosen = [f"semsim:{mine}"] if mine else []
    return gr.Dropdown(
        choices=sorted(names, key=_is_built_in),
        value=chosen,
        multiselect=True,
        allow_custom_value=True,
    )


def _is_built_in(name: str) -> bool:
    return name in METRICS
