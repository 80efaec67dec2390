"""The page Federated: FedAvg against PBPFL, what it costs, and what each party can see."""

from collections.abc import Callable
from typing import Any

import gradio as gr

from semsim.errors import SemsimError, SettingsError
from semsim.federated import NETWORKS
from semsim.federated.comparison import KIND, TRAINING, FederatedOrder
from semsim.federated.data import TABLES
from semsim.federated.leak import ARMS, REFERENCE, RESCALED
from semsim.federated.orders import arms_done, out_of, queue_comparison
from semsim.jobs import folders as jobs
from semsim.jobs.folders import Job, JobState
from semsim.ui import ScienceContext, federated_view, jobpanel
from semsim.ui.jobpanel import alert_html

# The fields of `FederatedOrder` on the page, in the order of the form.
FORM = (
    "data",
    "network",
    "clients",
    "rounds",
    "cross_entropy",
    "arms",
    "images",
    "attack",
    "split",
    "dirichlet_alpha",
    "noise_scope",
    "batch_size",
    "lr",
    "attack_round",
    "seed",
)
_WHOLE = {"clients", "rounds", "images", "batch_size", "attack_round", "seed"}
_DATA = ("digits", "symbols", *TABLES)
_NOTHING = "<p>Nothing has been compared here yet. Start with what the form proposes.</p>"
_QUIET: dict[str, Any] = {"queue": False, "api_visibility": "private"}


def render(context: ScienceContext) -> list[tuple[Callable[..., Any], list[Any]]]:
    """Lay the page out where the caller stands; returns what it does when it is loaded."""
    gr.HTML(federated_view.STYLE, apply_default_css=False)
    gr.Markdown(
        "# Federated\nPBPFL (arXiv:2002.09843) lets clients train on a masked model. Train it "
        "beside FedAvg from the same start, then attack what the server, an eavesdropper and "
        "another client see of clients' images."
    )
    with gr.Row():
        with gr.Column(scale=2, min_width=320):
            form = _form(FederatedOrder())
            begin = gr.Button("Start", variant="primary", elem_id="fed-start")
            trouble = gr.HTML(elem_id="fed-trouble")
        with gr.Column(scale=3, min_width=320):
            chosen = gr.Dropdown(
                [], label="Comparison", allow_custom_value=True, visible=False, elem_id="fed-job"
            )
            panel = jobpanel.build("fed")
            summary = gr.HTML(elem_id="fed-summary", apply_default_css=False)
            curve = gr.Plot(show_label=False, visible=False, elem_id="fed-curve")
            words = gr.HTML(elem_id="fed-training", apply_default_css=False)
    grid = gr.HTML(elem_id="fed-grid", apply_default_css=False)

    root, drawn = context.data / "jobs", [summary, curve, words, grid]
    look = jobpanel.wire(panel, chosen, root, also=draw, also_outputs=drawn)
    watched = [*panel.outputs, *drawn]

    def load() -> list[Any]:
        newest = next(iter(jobs.list_jobs(root, KIND)), None)
        job_id = newest.id if newest else None
        return [_dropdown(context, job_id), *look(job_id)]

    def start(*values: Any) -> list[Any]:
        try:
            job = queue_comparison(order_of(values), context.data)
            jobs.start(job)
        except SemsimError as error:
            return [alert_html(error), *(gr.skip() for _ in [chosen, *watched])]
        return ["", _dropdown(context, job.id), *look(job.id)]

    chosen.input(look, chosen, watched, show_progress="hidden", **_QUIET)
    begin.click(start, form, [trouble, chosen, *watched], **_QUIET)
    return [(load, [chosen, *watched])]


def draw(job: Job | None) -> list[Any]:
    """Summary, curve, training and pictures of a comparison, as far as it is."""
    if job is None:
        return [_NOTHING, gr.Plot(visible=False), "", ""]
    out, done = out_of(job), jobs.state(job) is JobState.DONE
    leak = jobs.result(job)["leak"] if done else {}
    pictures = federated_view.grid_html(out, arms_done(out), leak)
    if not (out / TRAINING).exists():
        return ["", gr.Plot(visible=False), "", pictures]
    training = jobs.read_json(out / TRAINING)
    return [
        federated_view.summary_html(leak),
        gr.Plot(federated_view.curve_figure(training, job.id), visible=True),
        federated_view.training_html(training),
        pictures,
    ]


def order_of(values: tuple[Any, ...]) -> FederatedOrder:
    """The order that the form's values mean, in the order of `FORM`."""
    given = dict(zip(FORM, values, strict=True))
    empty = [name for name, value in given.items() if value is None or value == ""]
    if empty:
        raise SettingsError(f"{empty[0]} is empty; give a value.")
    given |= {name: int(given[name]) for name in _WHOLE}
    if given["arms"]:  # the arms they are compared with come along
        given["arms"] = [arm for arm in ARMS if arm in {*given["arms"], REFERENCE, RESCALED}]
    return FederatedOrder(**{**given, "arms": tuple(given["arms"])})


def _dropdown(context: ScienceContext, value: str | None) -> Any:
    found = jobs.list_jobs(context.data / "jobs", KIND)
    choices = [(f"{job.title} · {job.created[:16].replace('T', ' ')}", job.id) for job in found]
    return gr.Dropdown(choices=choices, value=value, visible=bool(choices))


def _form(first: FederatedOrder) -> list[Any]:
    whole: dict[str, Any] = {"precision": 0, "minimum": 1}
    fields: dict[str, Any] = {}
    fields["data"] = gr.Dropdown(
        list(_DATA),
        label="Data",
        allow_custom_value=True,
        info="Images, or folder:root=… for your own. Tables have no pictures to attack.",
    )
    fields["network"] = gr.Dropdown(list(NETWORKS), label="Network", info="mlp-3 for tables.")
    with gr.Row():
        fields["clients"] = gr.Number(label="Clients", min_width=120, **whole)
        fields["rounds"] = gr.Number(label="Rounds", min_width=120, **whole)
    fields["cross_entropy"] = gr.Checkbox(label="FedAvg with cross-entropy too")
    fields["arms"] = gr.CheckboxGroup(
        [(arm.title, name) for name, arm in ARMS.items()], label="Who looks, and how"
    )
    with gr.Row():
        fields["images"] = gr.Number(label="Images each", min_width=120, **whole)
        fields["attack"] = gr.Textbox(label="Attack", min_width=160)
    with gr.Accordion("More settings", open=False, elem_id="fed-more"):
        fields["split"] = gr.Radio(["iid", "dirichlet"], label="Split of the data")
        fields["dirichlet_alpha"] = gr.Number(minimum=0, label="Dirichlet α", info="Small: uneven.")
        fields["noise_scope"] = gr.Radio(
            [("each client its own", "client"), ("one a round", "round")], label="Masks"
        )
        fields["batch_size"] = gr.Number(label="Batch size of a client", **whole)
        fields["lr"] = gr.Number(minimum=0, label="Step size")
        fields["attack_round"] = gr.Number(
            label="Attacked round", info="1: an untrained network.", **whole
        )
        fields["seed"] = gr.Number(precision=0, minimum=0, label="Seed")
    for name in FORM:
        value = getattr(first, name)
        fields[name].value = list(value) if isinstance(value, tuple) else value
        fields[name].elem_id = f"fed-{name.replace('_', '-')}"
    return [fields[name] for name in FORM]
