"""The page Federated: FedAvg against PBPFL, what it costs, and what each party can see."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import gradio as gr

from semsim.errors import SettingsError
from semsim.federated import NETWORKS, TABLES
from semsim.federated.arms import ARMS, REFERENCE, RESCALED
from semsim.federated.comparison_job import KIND, TRAINING, arms_done, out_of
from semsim.federated.settings import FederatedOrder
from semsim.grid.apart import apart
from semsim.jobs import folders as jobs
from semsim.jobs.folders import Job, JobState
from semsim.ui import ScienceContext, federated_view, jobpanel

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
_MORE = FORM.index("split")  # the first that is folded away
_FIELDS = {one.name: one for one in fields(FederatedOrder)}
_WHOLE = {name for name, one in _FIELDS.items() if type(one.default) is int}
_CHOICES = {"data": ("digits", "symbols", *TABLES), "network": tuple(NETWORKS)}
_EITHER: dict[str, Any] = {
    "split": ["iid", "dirichlet"],
    "noise_scope": [("each client its own", "client"), ("one a round", "round")],
}
_NOTHING = "<p>Nothing has been compared here yet. Start with what the form proposes.</p>"


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
            form = _form()
            begin = gr.Button("Start", variant="primary", elem_id="fed-start")
            trouble = gr.HTML(elem_id="fed-trouble")
        with gr.Column(scale=3, min_width=320):
            ran = jobpanel.Jobs("Comparison", "fed", context.data / "jobs", KIND)
            summary = gr.HTML(elem_id="fed-summary", apply_default_css=False)
            curve = gr.Plot(show_label=False, visible=False, elem_id="fed-curve")
            words = gr.HTML(elem_id="fed-training", apply_default_css=False)
    grid = gr.HTML(elem_id="fed-grid", apply_default_css=False)

    def start(*values: Any) -> Job:
        where = "semsim.federated.comparison_job:queue_comparison"
        job: Job = apart(where, order_of(values), context.data)
        jobs.start(job)
        return job

    outputs = ran.follow(draw, [summary, curve, words, grid])
    ran.begin_with(begin, form, trouble, start)
    return [(ran.load, outputs)]


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


def _form() -> list[Any]:
    """The components, in the order of `FORM`."""
    rows = {"clients": ("clients", "rounds"), "images": ("images", "attack")}
    made: dict[str, Any] = {}
    for name in FORM[:_MORE]:
        if name not in made:
            with gr.Row():
                made |= {one: _component(one) for one in rows.get(name, (name,))}
    with gr.Accordion("More settings", open=False, elem_id="fed-more"):
        made |= {name: _component(name) for name in FORM[_MORE:]}
    return [made[name] for name in FORM]


def _component(name: str) -> Any:
    """What a setting is edited by, from what its field says of it."""
    one = _FIELDS[name]
    shown: dict[str, Any] = {
        "value": list(one.default) if isinstance(one.default, tuple) else one.default,
        "label": one.metadata["label"],
        "elem_id": f"fed-{name.replace('_', '-')}",
    }
    if name == "arms":
        return gr.CheckboxGroup([(arm.title, key) for key, arm in ARMS.items()], **shown)
    if isinstance(one.default, bool):
        return gr.Checkbox(**shown)
    shown["info"] = one.metadata["text"] or None
    if name in _CHOICES:
        return gr.Dropdown(list(_CHOICES[name]), allow_custom_value=name == "data", **shown)
    if name in _EITHER:
        return gr.Radio(_EITHER[name], **shown)
    if isinstance(one.default, str):
        return gr.Textbox(min_width=160, **shown)
    whole = isinstance(one.default, int)
    least = one.metadata["least"] or 0
    return gr.Number(precision=0 if whole else None, minimum=least, min_width=120, **shown)
