"""The page Federated: FedAvg against PBPFL, what it costs, and what each party can see."""

from dataclasses import replace
from typing import Any

from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job, JobState
from semsim.grid.subprocess_worker import apart
from semsim.lab import LabContext, sets
from semsim.lab.choices import CHOICES, DATASETS, choices_in
from semsim.lab.markup import pieces
from semsim.lab.page import Crossed, ItemList, LabForm, LabPage
from semsim.lab.settings_form import Given, settings_of
from semsim.systems.federated import is_table
from semsim.systems.federated.settings import (
    ALWAYS,
    ARMS,
    FIRST_LOOK,
    KIND,
    FederatedJob,
    FederatedOrder,
    kept_training,
    like,
    with_yardsticks,
)
from semsim.systems.federated.summary import (
    figures_of,
    leak_words,
    result_html,
    training_html,
)

_INTRO = (
    "Clients train together without sharing pictures. Does a [[masked model]] (PBPFL, "
    "arXiv:2002.09843) keep the pictures from a server, an eavesdropper, another client?"
)
_METHOD = f"{sets.METHOD} Each party counts by the way of looking that gets most back."
_LAB = pieces("lab.html")
_CHOICES = choices_in("semsim.systems.federated")
# As a comparison in federated learning runs them: each party's pictures are few.
ATTACKS = tuple(
    replace(one, item="invgrad:steps=300,tv=0.002") if one.item == "invgrad" else one
    for one in CHOICES["attacks"]
)

_WAYS = sorted(_CHOICES["ways"], key=lambda one: one.item not in ALWAYS)
_DATA = (*CHOICES["pictures"], *_CHOICES["tables"])
_EACH = FederatedOrder(arms=with_yardsticks(one.item for one in _WAYS if one.usual))
_PAPER = FederatedOrder(data="symbols", network="resnet20", clients=10, rounds=200)
_BOTH = "Does the server see less? Does whoever listens on both links?"
_NOT_PUBLIC = "ResNet-20, ten clients, every party; the paper's own pictures are not public."
_PLAIN = ("clients", "rounds", "images")
_MORE = (
    *("split", "dirichlet_alpha", "noise_scope", "batch_size", "lr"),
    *("attack_round", "seed", "cross_entropy"),
)
# Whose first layer cannot be solved for its input: it is a convolution.
UNSOLVED = tuple(
    (arm, one.item)
    for arm in ARMS
    for one in _CHOICES["networks"]
    if ARMS[arm].treatment == "closed-form" and not one.item.startswith("mlp")
)
FORM = LabForm(
    name="fed",
    kind=KIND,
    offered=(
        ("See it work", _BOTH, FIRST_LOOK),
        ("Each kind of party", "On digits, 50 rounds, five pictures each.", _EACH),
        ("As in the paper", _NOT_PUBLIC, _PAPER),
    ),
    lists={
        "datasets": ItemList("data", _DATA, "Pictures", DATASETS, one=True),
        "attacks": ItemList("attack", ATTACKS, "Attack", "semsim.attacks:ATTACKS", one=True),
        "networks": ItemList("network", _CHOICES["networks"], "Network", one=True),
        "arms": ItemList("arms", _WAYS, "arms"),
    },
    settings={"": (*_PLAIN, *_MORE)},
    like=like,
    crossed=Crossed(
        caption="Parties and their attacks: each dot is an attack on the training of a network",
        across=("networks", "networks"),
        down=("arms", "ways to look"),
        fixed=ALWAYS,
        never=UNSOLVED,
        why="Its first layer is a convolution: there is nothing to solve.",
        one=True,
    ),
    folded="masks, how data is split, settings of each choice",
)


def page(context: LabContext) -> LabPage[FederatedOrder]:
    """Declare the page: its texts, what its form means, what is drawn of a job."""
    rooms = "semsim.systems.federated"
    row = (_LAB.field(one, one.name) for one in settings_of(FIRST_LOOK, _PLAIN))
    return LabPage(
        form=FORM,
        title="Federated",
        intro=_INTRO,
        papers=("pbpfl",),
        called="Comparison",
        nothing="Nothing has been compared here yet. Choose a card and press Start.",
        data=context.data,
        html=FORM.html(FORM.settings_html("", _MORE), *row),
        order_of=order_of,
        effort=lambda order: apart(f"{rooms}.comparison:effort", order),
        queued=lambda given: apart(
            f"{rooms}.comparison:queue_comparison", order_of(given), context.data
        ),
        draw=draw,
        parts={"grid": "", "training": "Training and cost"},
    )


def order_of(given: Given) -> FederatedOrder:
    """The order that the form means; `SettingsError` in its words where it cannot be.

    The arms that others are compared with come along.
    """
    order = FORM.order(given)
    return replace(order, arms=with_yardsticks(order.arms) if order.arms else ())


def _attacked(order: FederatedOrder) -> list[str]:
    """The arms that carrying out `order` attacks, in that order; none of a table."""
    if is_table(order.data) or not order.arms:
        return []
    return [arm for arm in with_yardsticks(order.arms) if (arm, order.network) not in UNSOLVED]


def draw(job: Job) -> list[Any]:
    """Return HTML of the strip, the parties' progress, verdict, result, pictures and training."""
    asked, state = jobs.read_order(job, FederatedJob), jobs.state(job)
    leak = jobs.result(job)["leak"] if state is JobState.DONE else {}
    scores = {score["arm"]: score for score in leak.get("scores", [])}
    arms = _attacked(asked.order)
    steps = sets.in_turn([(ARMS[arm].title, asked.out / "sets" / arm) for arm in arms], state)
    figures = [figures_of(scores.get(arm)) for arm in arms]
    result = result_html(leak["summary"], steps) if leak.get("summary") else ""
    training = kept_training(asked.out)
    return [
        *sets.drawn(steps, leak_words(leak), _METHOD, result, figures),
        "" if training is None else training_html(training),
    ]
