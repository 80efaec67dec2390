"""The page Split inference: choose network, cuts, defences and attacks, watch, see what leaks."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import gradio as gr

from semsim.datasets import DATASETS
from semsim.errors import SettingsError
from semsim.grid.apart import apart
from semsim.jobs import folders as jobs
from semsim.jobs.folders import Job, JobState
from semsim.learning.card_promoted import promoted
from semsim.metrics import METRICS, Resources, all_metrics
from semsim.split import SPLIT_DEFENCES, SPLIT_NETWORKS
from semsim.split.plan import ARMS, PRESETS, SplitPlace, SplitPlan
from semsim.split.split_job import KIND
from semsim.ui import ScienceContext, jobpanel, split_view

_BASE = PRESETS["small"]
_DEFENCES = ("none", "single", "ensembler")
_SHOWN = ("ssim", "psnr", "recogniser")  # scores that every result has
_ATTACKS = ("adaptive", "adaptive-aligned")
# The form's fields in their order.
FIELDS = (
    "name",
    "dataset",
    "network",
    "h",
    "t",
    "defences",
    "more",
    "attacks",
    "bodies",
    "selected",
    "defence_seeds",
    "attack_seeds",
    "images",
    "epochs",
    "ensemble_epochs",
    "shadow_epochs",
    "metrics",
)
_EMPTY = (
    "<p>No experiment has been run here yet. The settings on this page train and attack a small "
    "network on handwritten digits, in some minutes.</p>"
)
_INTRO = (
    "# Split inference\n"
    "A client runs the first layers of a network, sends the features to a server that runs the "
    "middle, and finishes by itself. Here the server tries to get the images back from the "
    "features, and defences try to keep it from that: what do they cost, and what do they hide?"
)


def render(context: ScienceContext) -> list[tuple[Callable[..., Any], list[Any]]]:
    """Lay the page out where the caller stands; returns what it does when it is loaded."""
    gr.Markdown(_INTRO)
    with gr.Row():
        with gr.Column(scale=2, min_width=320):
            form = _form()
            metrics = form[-1]
            begin = gr.Button("Start", variant="primary", elem_id="split-start")
            trouble = gr.HTML(elem_id="split-trouble")
        with gr.Column(scale=3, min_width=320):
            ran = jobpanel.Jobs("Experiment", "split", context.data / "jobs", KIND)
    result = gr.HTML(elem_id="split-result")

    outputs = ran.follow(lambda job: [outcome_html(job)], [result])
    ran.begin_with(
        begin, form, trouble, lambda *values: begin_experiment(context, plan_of_form(values))
    )
    return [(lambda: [offered_metrics(context.checkpoints), *ran.load()], [metrics, *outputs])]


def plan_of_form(values: Sequence[Any]) -> SplitPlan:
    """The plan that the form means; `SettingsError` names a field that is empty."""
    given = dict(zip(FIELDS, values, strict=True))
    given["more"] = given["more"] or ""  # a box that nobody touched holds None
    given["metrics"] = given["metrics"] or ()
    for field, value in given.items():
        if value is None or (value == "" and field != "more"):
            raise SettingsError(f"{field.replace('_', ' ')} is empty; give a value.")
    epochs = int(given["shadow_epochs"])
    return replace(
        _BASE,
        name=str(given["name"]).strip(),
        dataset=str(given["dataset"]).strip(),
        networks=(with_cuts(str(given["network"]).strip(), int(given["h"]), int(given["t"])),),
        defences=tuple(defence_texts(given)),
        attacks=tuple(given["attacks"]),
        defence_seeds=tuple(range(int(given["defence_seeds"]))),
        attack_seeds=tuple(range(int(given["attack_seeds"]))),
        images=int(given["images"]),
        train=replace(
            _BASE.train,
            epochs=int(given["epochs"]),
            ensemble_epochs=int(given["ensemble_epochs"]),
        ),
        shadow=replace(_BASE.shadow, epochs=epochs, decoder_epochs=epochs),
        metrics=tuple(given["metrics"]),
    )


def with_cuts(network: str, h: int, t: int) -> str:
    """A network as text with its cuts."""
    return f"{network}{',' if ':' in network else ':'}h={h},t={t}"


def defence_texts(given: dict[str, Any]) -> list[str]:
    """The defences that are ticked, with their number of bodies, and those written as text."""
    bodies, selected = int(given["bodies"]), int(given["selected"])
    settings = {
        "dr-ensemble": f":bodies={bodies}",
        "ensembler": f":bodies={bodies},selected={selected}",
    }
    written = [text.strip() for text in str(given["more"]).split(";") if text.strip()]
    return [*(f"{name}{settings.get(name, '')}" for name in given["defences"]), *written]


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
        return _EMPTY
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


def _form() -> list[Any]:
    """The components, in the order of `FIELDS`."""
    name = gr.Textbox("digits-1", label="Name", max_length=80, elem_id="split-name")
    dataset = gr.Dropdown(
        list(DATASETS),
        value="digits",
        label="Data set",
        info="Settings after a colon, as folder:root=photos,size=32.",
        allow_custom_value=True,
        elem_id="split-dataset",
    )
    network = gr.Dropdown(
        list(SPLIT_NETWORKS),
        value="small",
        label="Network",
        info="resnet18 and vgg16 are a GPU's work.",
        allow_custom_value=True,
        elem_id="split-network",
    )
    with gr.Row():
        h = _number(1, "First cut h", "Units the client runs at the start.", "h")
        t = _number(1, "Second cut t", "Units it runs at the end.", "t")
    defences = gr.CheckboxGroup(
        list(SPLIT_DEFENCES), value=list(_DEFENCES), label="Defences", elem_id="split-defences"
    )
    with gr.Row():
        bodies = _number(4, "Bodies N", "Of the ensembles.", "bodies")
        selected = _number(2, "Selected P", "Of Ensembler, secretly.", "selected")
    attacks = gr.CheckboxGroup(
        [(arm.title, key) for key, arm in ARMS.items()],
        value=list(_ATTACKS),
        label="Attacks",
        info="aligned: to the statistics of what clients send, stronger than the published ones.",
        elem_id="split-attacks",
    )
    metrics = gr.Dropdown(
        [],
        value=[],
        multiselect=True,
        allow_custom_value=True,  # what is trained after the page was made is offered on loading
        label="More metrics",
        info="Beside SSIM, PSNR and a recogniser. A SemSim of yours is semsim:<its name>.",
        elem_id="split-metrics",
    )
    with gr.Accordion("Settings", open=False, elem_id="split-settings"):
        more = gr.Textbox(
            label="More defences, written as text",
            info="With semicolons, as single:sigma=0.5; ensembler:weight=1.",
            elem_id="split-more",
        )
        seeds = _number(2, "Defence seeds", "Trainings of each defence.", "defence-seeds")
        starts = _number(3, "Attack seeds", "A verdict needs three.", "attack-seeds")
        images = _setting(_BASE, "images", "images")
        epochs = _setting(_BASE.train, "epochs", "epochs")
        second = _setting(_BASE.train, "ensemble_epochs", "stage2")
        passes = _setting(_BASE.shadow, "epochs", "shadow")
    form = [name, dataset, network, h, t, defences, more, attacks, bodies, selected]
    return [*form, seeds, starts, images, epochs, second, passes, metrics]


def _setting(settings: Any, name: str, key: str) -> Any:
    """A number of the preset, edited under its field's own words."""
    (facts,) = (one.metadata for one in fields(settings) if one.name == name)
    return _number(getattr(settings, name), facts["label"], facts["text"], key)


def _number(value: int, label: str, info: str, key: str) -> Any:
    return gr.Number(value, precision=0, minimum=1, label=label, info=info, elem_id=f"split-{key}")
