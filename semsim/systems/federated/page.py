"""The page Federated: FedAvg against PBPFL, what it costs, and what each party can see."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job, JobState
from semsim.base.words import counted
from semsim.grid.subprocess_worker import apart
from semsim.lab import LabContext, sets
from semsim.lab.choices import ATTACK_CHOICES, PICTURES, choices_from
from semsim.lab.curves import Chart, Curve, svg
from semsim.lab.markup import joined, pieces
from semsim.lab.page import Effort, ItemList, LabForm, LabPage
from semsim.lab.settings_form import Given, settings_of
from semsim.systems.federated import is_table
from semsim.systems.federated.settings import (
    ARMS,
    KIND,
    REFERENCE,
    RESCALED,
    FederatedJob,
    FederatedOrder,
    kept_training,
    like,
)
from semsim.systems.federated.summary import (
    answer_words,
    cost_rows,
    decibels,
    likeness,
    training_words,
)

_INTRO = (
    "Clients train together without sharing pictures. Does a [[masked model]] (PBPFL, "
    "arXiv:2002.09843) keep the pictures from a server, an eavesdropper, another client?"
)
_METHOD = f"{sets.METHOD} Each party counts by the way of looking that gets most back."
_LAB, _HTML = pieces("lab.html"), pieces("page.html", "semsim.systems.federated")

# As a comparison in federated learning runs them: each party's pictures are few.
ATTACKS = tuple(
    replace(one, item="invgrad:steps=300,tv=0.002") if one.item == "invgrad" else one
    for one in ATTACK_CHOICES
)

NETWORKS = choices_from(
    {"lenet": ("LeNet", "Two convolutions."), "mlp-3": ("3 layers", "Also for tables.")},
    {
        "lenet-avg": ("LeNet, averaging", "Pools by means."),
        "mlp-5": ("5 layers", "All linear."),
        "mlp-7": ("7 layers", "All linear."),
        "resnet20": ("ResNet-20", "The paper's."),
        "resnet20-add": ("ResNet-20, added", "Shortcuts added."),
        "resnet56": ("ResNet-56", "Slow."),
        "resnet56-add": ("ResNet-56, added", "Slow."),
    },
)

TABLES = choices_from(
    {},
    {
        "diabetes": ("Diabetes, a table", "442 people, ten measures; no pictures to attack."),
        "breast-cancer": ("Breast cancer, a table", "569 samples; no pictures to attack."),
    },
)

WAYS = choices_from(
    {
        "server-pbpfl": ("The server, masked training", "Sees each client's masked update."),
        "links-stripped": ("Eavesdropper on both links", "Takes the noise out, then attacks."),
        "uplink-closed-form": ("Eavesdropper on the uplink", "Solves the first layer; no search."),
        "client-same-mask": ("Another client, same mask", "Undoes the mask it shares."),
    },
    {
        "server-fedavg": ("The server, plain training", "The yardstick; always run."),
        "server-fedavg-canonical": ("The server, plain, rescaled", "Its yardstick; always run."),
        "links-naive": ("Both links, as seen", "Attacks what it sees, noise and all."),
        "links-canonical": ("Both links, rescaled", "Undoes the scale, not the noise."),
        "uplink": ("Uplink, as seen", "Attacks the masked update directly."),
        "client-own-mask": ("Another client, own mask", "Sees only what its own mask shows."),
        "server-zero-sum": ("The server, masks that cancel", "Masks add up to nothing."),
    },
)

ALWAYS = (REFERENCE, RESCALED)  # with which the others are compared
_USUAL = tuple(arm for arm in ARMS if arm in {*ALWAYS, *(c.item for c in WAYS if c.usual)})
FIRST_LOOK = FederatedOrder(
    rounds=50,
    lr=0.02,
    images=3,
    attack_round=400,  # of three clients with a picture each: by then LeNet names 9 digits of 10
    arms=(*ALWAYS, "server-pbpfl", "links-stripped"),
)
_EACH = FederatedOrder(arms=_USUAL)
_PAPER = FederatedOrder(data="symbols", network="resnet20", clients=10, rounds=200)
_NOT_PUBLIC = "ResNet-20, ten clients, every party; the paper's own pictures are not public."
_CARDS = (
    ("See it work", "Does the server see less? Does whoever listens on both links?", FIRST_LOOK),
    ("Each kind of party", "On digits, 50 rounds, five pictures each.", _EACH),
    ("As in the paper", _NOT_PUBLIC, _PAPER),
)
_PLAIN = ("clients", "rounds", "images")
_MORE = (
    *("split", "dirichlet_alpha", "noise_scope", "batch_size", "lr"),
    *("attack_round", "seed", "cross_entropy"),
)
# Whose first layer cannot be solved for its input: it is a convolution.
UNSOLVED = tuple(
    (arm, one.item)
    for arm in ARMS
    for one in NETWORKS
    if ARMS[arm].treatment == "closed-form" and not one.item.startswith("mlp")
)
# Colour and dash: schemes that agree lie on each other, so that the upper one is dashed.
_LINES = {
    "FedAvg": ("leaked", False),
    "PBPFL": ("private", True),
    "FedAvg, cross-entropy": ("ink", True),
}
FORM = LabForm(
    name="fed",
    kind=KIND,
    offered=_CARDS,
    lists={
        "datasets": ItemList(
            "data", (*PICTURES, *TABLES), "Pictures", "semsim.datasets:DATASETS", one=True
        ),
        "attacks": ItemList("attack", ATTACKS, "Attack", "semsim.attacks:ATTACKS", one=True),
        "networks": ItemList("network", NETWORKS, "Network", one=True),
        "arms": ItemList("arms", sorted(WAYS, key=lambda one: one.item not in ALWAYS), "arms"),
    },
    settings={"": (*_PLAIN, *_MORE)},
    like=like,
)


def page(context: LabContext) -> LabPage[FederatedOrder]:
    """Declare the page: its texts, what its form means, what is drawn of a job."""

    def queued(given: Given) -> Job:
        where = "semsim.systems.federated.settings:queue_comparison"
        job: Job = apart(where, order_of(given), context.data)
        return job

    return LabPage(
        form=FORM,
        title="Federated",
        intro=_INTRO,
        papers=("pbpfl",),
        called="Comparison",
        nothing="Nothing has been compared here yet. Choose a card and press Start.",
        data=context.data,
        html=form_html(),
        order_of=order_of,
        effort=effort,
        queued=queued,
        draw=draw,
        parts={"grid": "", "training": "Training and cost"},
    )


def form_html() -> str:
    """The form, filled with the first card's comparison."""
    attacks = FORM.crossed(
        "Who looks, and how: each dot is an attack on the training of a network",
        ("networks", "networks"),
        ("arms", "ways to look"),
        fixed=ALWAYS,
        never=UNSOLVED,
        why="Its first layer is a convolution: there is nothing to solve.",
        one=True,
    )
    more = _LAB.more(
        ("datasets", "attacks"),
        _LAB.fields(settings_of(FIRST_LOOK, _MORE)),
        "More: masks, how data is split, settings of what is chosen",
    )
    side = (FORM.choices("datasets"), FORM.choices("attacks"))
    row = joined(_LAB.field(one, one.name) for one in settings_of(FIRST_LOOK, _PLAIN))
    return str(_LAB.plan(attacks, joined(side), row, more, beside=True))


def order_of(given: Given) -> FederatedOrder:
    """The order that the form means; `SettingsError` in its words where it cannot be.

    The arms that others are compared with come along.
    """
    order = FORM.order(given)
    wanted = {*order.arms, *ALWAYS} if order.arms else set()
    return replace(order, arms=tuple(arm for arm in ARMS if arm in wanted))


def _attacked(order: FederatedOrder) -> list[str]:
    """The arms that carrying out `order` attacks, in that order; none of a table."""
    if is_table(order.data) or not order.arms:
        return []
    wanted = {*order.arms, *ALWAYS}
    return [arm for arm in ARMS if arm in wanted and (arm, order.network) not in UNSOLVED]


def effort(order: FederatedOrder) -> Effort:
    """Return what an order takes."""
    found = apart("semsim.systems.federated.comparison:outlook", order)
    pictures = f"{counted(found.attacks, 'attack')} on {counted(found.pictures, 'picture')} each"
    return Effort(
        made=counted(found.trainings, "training"),
        more=f" of {counted(order.rounds, 'round')} with {counted(order.clients, 'client')}",
        attacked=pictures if found.attacks else "nothing attacked",
        disk=found.disk,
    )


def draw(job: Job) -> list[Any]:
    """Return HTML of the strip, the parties' progress, verdict, result, pictures and training."""
    asked, state = jobs.read_order(job, FederatedJob), jobs.state(job)
    leak = jobs.result(job)["leak"] if state is JobState.DONE else {}
    scores = {score["arm"]: score for score in leak.get("scores", [])}
    arms = _attacked(asked.order)
    steps = sets.in_turn([(ARMS[arm].title, asked.out / "sets" / arm) for arm in arms], state)
    training = kept_training(asked.out)
    verdict = result = ""
    if leak.get("summary"):
        verdict = _verdict_html(leak, steps)
        folders = [one.folder for one in steps]
        result = sets.made_html(_HTML.summary(leak["summary"]), folders)
    return [
        sets.strip_html(steps),
        sets.sets_html(steps) if steps else "",
        verdict,
        result,
        sets.line_up_html(steps, [figures(scores.get(arm)) for arm in arms]),
        "" if training is None else training_html(training),
    ]


def _verdict_html(leak: Mapping[str, Any], steps: Sequence[sets.RunSet]) -> str:
    """The answer in a sentence, and what is clearer than a guess, party by party."""
    said: Sequence[str] = leak["summary"][:1]
    if "scores" in leak:
        said = answer_words(leak["scores"], leak["recognition"])
    return sets.verdict_html(said, steps, _METHOD if steps else "")


def figures(score: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the figures beside the pictures of a party."""
    if score is None:
        return ()
    gap = "\N{NO-BREAK SPACE}"
    return (
        f"SSIM{gap}{likeness(score['ssim'])}",
        f"{decibels(score['psnr'])}{gap}dB",
        f"statistic: {score['verdict']}",
    )


def training_html(training: Mapping[str, Any]) -> str:
    """The course, what masking changes in words, and what it costs as a table."""
    rows, traffic = cost_rows(training["costs"]), training["traffic"]
    for title, key in (("megabytes down", "bytes_down"), ("megabytes up", "bytes_up")):
        plain, masked = traffic["FedAvg"][key], traffic["PBPFL"][key]
        rows.append([title, f"{plain / 1e6:.2f}", f"{masked / 1e6:.2f}", f"{masked / plain:.2f}"])
    head = ("Cost", "FedAvg", "PBPFL", "Ratio")
    words = training_words(training).splitlines()
    return str(_HTML.training(svg(course(training)), words, head, rows))


def course(training: Mapping[str, Any]) -> Chart:
    """Accuracy against rounds, or squared error where there are no classes."""
    curves = training["curves"]
    classes = all(point["accuracy"] is not None for curve in curves.values() for point in curve)
    key, title = ("accuracy", "Accuracy on test images") if classes else ("squared_error", "MSE")
    lines = tuple(
        Curve(
            name=name,
            x=[point["round"] for point in curve],
            y=[point[key] for point in curve],
            colour=_LINES[name][0],
            dashed=_LINES[name][1],
            marked=False,
        )
        for name, curve in curves.items()
    )
    return Chart(title=title, x="round", y=title, curves=lines)
