"""The page Federated: FedAvg against PBPFL, what it costs, and what each party can see."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gradio as gr

from semsim.errors import SettingsError
from semsim.federated.arms import ARMS, REFERENCE, RESCALED
from semsim.federated.comparison_job import KIND, TRAINING, arms_done, out_of
from semsim.federated.settings import FederatedOrder
from semsim.grid.apart import apart
from semsim.jobs import folders as jobs
from semsim.jobs.folders import Job, JobState
from semsim.ui import ScienceContext, federated_view, jobpanel, lab, plain_words
from semsim.ui.markup import pieces
from semsim.ui.settings_form import Given, changed, settings_of

_NAME = "fed"
_FIRST = FederatedOrder()
_PLAIN = ("clients", "rounds", "images")
_MORE = (
    "split",
    "dirichlet_alpha",
    "noise_scope",
    "batch_size",
    "lr",
    "attack_round",
    "seed",
    "cross_entropy",
)
_LISTS = {"data": "Pictures", "attacks": "Attack", "arms": "Who looks, and how"}
_LAB, _HTML = pieces("lab.html"), pieces("federated.html")
_INTRO = (
    "Clients train together without sharing pictures. Does a [[masked model]] (PBPFL, "
    "arXiv:2002.09843) keep the pictures from a server, an eavesdropper, another client?"
)


def render(context: ScienceContext) -> list[tuple[Callable[..., Any], list[Any]]]:
    """Lay the page out where the caller stands; returns what it does when it is loaded."""
    lab.head("Federated", _INTRO)
    with gr.Row():
        with gr.Column(scale=2, min_width=300):
            _, answer, js = lab.form(_NAME, form_html())
            begin = gr.Button("Start", variant="primary", elem_id="fed-start")
            trouble = gr.HTML(elem_id="fed-trouble")
        with gr.Column(scale=4, min_width=320):
            ran = jobpanel.Jobs("Comparison", "fed", context.data / "jobs", KIND)
            summary, grid = _html("summary"), _html("grid")
            with gr.Accordion("Training and cost", open=False):
                training = _html("training")

    def start(text: str) -> Job:
        where = "semsim.federated.comparison_job:queue_comparison"
        job: Job = apart(where, order_of(Given.of(text)), context.data)
        jobs.start(job)
        return job

    outputs = ran.follow(draw, [summary, training, grid])
    ran.begin_with(begin, [answer], trouble, start, js=js)
    return [(ran.load, outputs)]


def draw(job: Job | None) -> list[Any]:
    """Answer, training and pictures of a comparison, as far as it is."""
    if job is None:
        return [federated_view.nothing_html(), "", ""]
    out, done = out_of(job), jobs.state(job) is JobState.DONE
    leak = jobs.result(job)["leak"] if done else {}
    pictures = federated_view.grid_html(out, arms_done(out), leak)
    if not (out / TRAINING).exists():
        return ["", "", pictures]
    training = federated_view.training_html(jobs.read_json(out / TRAINING))
    return [federated_view.summary_html(leak), training, pictures]


def form_html() -> str:
    """The form, filled with a few of the arms."""
    pictures = (*plain_words.PICTURES, *plain_words.TABLE_CHOICES)
    arms = [one.item for one in plain_words.ARM_CHOICES if one.usual]
    attack = plain_words.LEAK_ATTACKS[0].item
    return str(
        _HTML.form(
            _LAB.choices("arms", _LISTS["arms"], plain_words.ARM_CHOICES, arms),
            _LAB.fields(settings_of(_FIRST, _PLAIN)),
            _LAB.select("network", "Network", plain_words.FEDERATED_NETWORKS, _FIRST.network),
            _LAB.choices("datasets", _LISTS["data"], pictures, (_FIRST.data,), lab.reasons(), True),
            _LAB.more(
                ("datasets", "attacks"),
                _HTML.more(
                    _LAB.choices(
                        "attacks",
                        _LISTS["attacks"],
                        plain_words.LEAK_ATTACKS,
                        (attack,),
                        {},
                        True,
                    ),
                    _LAB.fields(settings_of(_FIRST, _MORE)),
                ),
                "More: attack, masks, how data is split",
            ),
        )
    )


def order_of(given: Given) -> FederatedOrder:
    """The order that the form means; `SettingsError` in its words where it cannot be."""
    data, attack = (_one(given, name) for name in ("datasets", "attacks"))
    arms = set(given.texts("arms"))
    # The arms they are compared with come along.
    wanted = tuple(arm for arm in ARMS if arm in {*arms, REFERENCE, RESCALED}) if arms else ()
    order = changed(_FIRST, given.fields)
    return replace(order, data=data, attack=attack, arms=wanted)


def _one(given: Given, name: str) -> str:
    chosen = given.texts(name)
    if not chosen:
        raise SettingsError(f"Choose one of {_LISTS.get(name, 'Pictures')}.")
    return chosen[0]


def _html(name: str) -> gr.HTML:
    return gr.HTML(elem_id=f"fed-{name}", apply_default_css=False, padding=False)
