"""The page Federated: FedAvg against PBPFL, what it costs, and what each party can see."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from semsim.base.errors import SettingsError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job, JobState
from semsim.base.pages_library import gr
from semsim.base.words import counted
from semsim.grid.subprocess_worker import apart
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
from semsim.ui import ScienceContext, jobpanel, lab_page, lab_sets, plain_words
from semsim.ui.curves import Chart, Curve, svg
from semsim.ui.lab_page import LabForm, LabPage, Loads, More
from semsim.ui.lab_sets import Step
from semsim.ui.markup import joined, pieces
from semsim.ui.settings_form import Given, changed, settings_of

_INTRO = (
    "Clients train together without sharing pictures. Does a [[masked model]] (PBPFL, "
    "arXiv:2002.09843) keep the pictures from a server, an eavesdropper, another client?"
)
_NOTHING = "Nothing has been compared here yet. Choose a card and press Start."
_METHOD = f"{lab_sets.METHOD} Each party counts by the way of looking that gets most back."
_LAB, _HTML = pieces("lab.html"), pieces("federated.html")
ALWAYS = (REFERENCE, RESCALED)  # with which the others are compared
_USUAL = tuple(
    arm for arm in ARMS if arm in {*ALWAYS, *(c.item for c in plain_words.ARM_CHOICES if c.usual)}
)
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
_CALLED = {"datasets": "Pictures", "attacks": "Attack", "networks": "Network"}
_PLAIN = ("clients", "rounds", "images")
_MORE = (
    *("split", "dirichlet_alpha", "noise_scope", "batch_size", "lr"),
    *("attack_round", "seed", "cross_entropy"),
)
# Whose first layer cannot be solved for its input: it is a convolution.
UNSOLVED = tuple(
    (arm, one.item)
    for arm in ARMS
    for one in plain_words.FEDERATED_NETWORKS
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
        "datasets": (*plain_words.PICTURES, *plain_words.TABLE_CHOICES),
        "attacks": plain_words.LEAK_ATTACKS,
        "networks": plain_words.FEDERATED_NETWORKS,
        "arms": sorted(plain_words.ARM_CHOICES, key=lambda one: one.item not in ALWAYS),
    },
    texts=lambda order: {
        "datasets": (order.data,),
        "attacks": (order.attack,),
        "networks": (order.network,),
        "arms": order.arms,
    },
    fields=lambda order: {one.name: one.value for one in settings_of(order, (*_PLAIN, *_MORE))},
    like=like,
)


def render(context: ScienceContext) -> Loads:
    """Lay the page out where the caller stands; returns what it does when it is loaded."""
    return lab_page.render(page(context))


def page(context: ScienceContext) -> LabPage[FederatedOrder]:
    """Declare the page's texts and acts, as `lab_page` takes them."""

    def queued(given: Given) -> Job:
        where = "semsim.systems.federated.settings:queue_comparison"
        job: Job = apart(where, order_of(given), context.data)
        return job

    return LabPage(
        form=FORM,
        title="Federated",
        intro=_INTRO,
        called="Comparison",
        papers=("pbpfl",),
        data=context.data,
        html=form_html(),
        order_of=order_of,
        told=_outlook_html,
        queued=queued,
        draw=draw,
        nothing=_NOTHING,
        more=_pictures,
    )


def _pictures(ran: jobpanel.Jobs) -> More:
    parts: dict[str, Any] = {"apply_default_css": False, "padding": False}
    grid = gr.HTML(elem_id="fed-grid", **parts)
    with gr.Accordion("Training and cost", open=False):
        training = gr.HTML(elem_id="fed-training", **parts)
    return More(drawn=[grid, training])


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
    side = (FORM.choices(name, _CALLED[name], True) for name in ("datasets", "attacks"))
    more = _LAB.more(
        ("datasets", "attacks"),
        _LAB.fields(settings_of(FIRST_LOOK, _MORE)),
        "More: masks, how data is split, settings of what is chosen",
    )
    row = joined(_LAB.field(one, one.name) for one in settings_of(FIRST_LOOK, _PLAIN))
    return str(_LAB.plan(attacks, joined(side), row, more, beside=True))


def order_of(given: Given) -> FederatedOrder:
    """The order that the form means; `SettingsError` in its words where it cannot be."""
    chosen = {name: given.texts(name) for name in _CALLED}
    if empty := [name for name, texts in chosen.items() if not texts]:
        raise SettingsError(f"Choose one of {_CALLED[empty[0]]}.")
    arms = set(given.texts("arms"))
    # The arms they are compared with come along.
    wanted = tuple(arm for arm in ARMS if arm in {*arms, *ALWAYS}) if arms else ()
    data, attack, network = (texts[0] for texts in chosen.values())
    order = changed(FIRST_LOOK, given.fields)
    return replace(order, data=data, attack=attack, network=network, arms=wanted)


def _attacked(order: FederatedOrder) -> list[str]:
    """The arms that carrying out `order` attacks, in that order; none of a table."""
    if is_table(order.data) or not order.arms:
        return []
    wanted = {*order.arms, *ALWAYS}
    return [arm for arm in ARMS if arm in wanted and (arm, order.network) not in UNSOLVED]


def _outlook_html(order: FederatedOrder, last: str) -> str:
    found = apart("semsim.systems.federated.comparison:outlook", order)
    pictures = f"{counted(found.attacks, 'attack')} on {counted(found.pictures, 'picture')} each"
    return lab_page.outlook_html(
        counted(found.trainings, "training"),
        f" of {counted(order.rounds, 'round')} with {counted(order.clients, 'client')}",
        pictures if found.attacks else "nothing attacked",
        found.disk,
        last,
    )


def draw(job: Job) -> list[Any]:
    """Return HTML of the strip, the parties' progress, verdict, result, pictures and training."""
    asked, state = jobs.read_order(job, FederatedJob), jobs.state(job)
    leak = jobs.result(job)["leak"] if state is JobState.DONE else {}
    scores = {score["arm"]: score for score in leak.get("scores", [])}
    arms = _attacked(asked.order)
    steps = lab_sets.in_turn([(ARMS[arm].title, asked.out / "sets" / arm) for arm in arms], state)
    training = kept_training(asked.out)
    verdict = result = ""
    if leak.get("summary"):
        verdict = _verdict_html(leak, steps)
        folders = [one.folder for one in steps]
        result = lab_page.made_html(_HTML.summary(leak["summary"]), folders)
    return [
        lab_sets.strip_html(steps),
        lab_sets.sets_html(steps) if steps else "",
        verdict,
        result,
        lab_sets.line_up_html(steps, [figures(scores.get(arm)) for arm in arms]),
        "" if training is None else training_html(training),
    ]


def _verdict_html(leak: Mapping[str, Any], steps: Sequence[Step]) -> str:
    """The answer in a sentence, and what is clearer than a guess, party by party."""
    said: Sequence[str] = leak["summary"][:1]
    if "scores" in leak:
        said = answer_words(leak["scores"], leak["recognition"])
    return lab_sets.verdict_html(said, steps, _METHOD if steps else "")


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
