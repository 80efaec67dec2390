"""The form of the page Federated: what it looks like, and the comparison it means."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from semsim.errors import SettingsError
from semsim.federated import is_table
from semsim.federated.arms import ARMS, REFERENCE, RESCALED
from semsim.federated.comparison_job import KIND, like
from semsim.federated.settings import FederatedOrder
from semsim.jobs.folders import last_seconds
from semsim.ui import lab, lab_cards, plain_words
from semsim.ui.lab_cards import cards_of, items_of, state_of
from semsim.ui.markup import joined, pieces
from semsim.ui.plain_words import Choice
from semsim.ui.settings_form import Given, changed, settings_of

NAME = "fed"
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
CARDS = (
    ("See it work", "Does the server see less? Does whoever listens on both links?", FIRST_LOOK),
    (
        "Each kind of party",
        "On digits, 50 rounds, five pictures each.",
        FederatedOrder(arms=_USUAL),
    ),
    (
        "As in the paper",
        "ResNet-20, ten clients, every party; the paper's own pictures are not public.",
        FederatedOrder(data="symbols", network="resnet20", clients=10, rounds=200),
    ),
)
# Of each list what it holds, and what a form calls it.
_LISTS: Mapping[str, tuple[str, Sequence[Choice]]] = {
    "datasets": ("Pictures", (*plain_words.PICTURES, *plain_words.TABLE_CHOICES)),
    "attacks": ("Attack", plain_words.LEAK_ATTACKS),
    "networks": ("Network", plain_words.FEDERATED_NETWORKS),
    "arms": ("Who looks, and how", plain_words.ARM_CHOICES),
}
_OFFERED = {name: choices for name, (_, choices) in _LISTS.items()}
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
# Whose first layer cannot be solved for its input: it is a convolution.
UNSOLVED = tuple(
    (arm, one.item)
    for arm in ARMS
    for one in plain_words.FEDERATED_NETWORKS
    if ARMS[arm].treatment == "closed-form" and not one.item.startswith("mlp")
)
_LAB = pieces("lab.html")


def form_html() -> str:
    """The form, filled with the first card's comparison."""
    chosen = _chosen(FIRST_LOOK)
    side = tuple(
        _LAB.choices(name, called, choices, chosen[name], off, True)
        for name, off in (("datasets", lab.reasons()), ("attacks", {}))
        for called, choices in [_LISTS[name]]
    )
    more = _LAB.more(
        ("datasets", "attacks"),
        _LAB.fields(settings_of(FIRST_LOOK, _MORE)),
        "More: masks, how data is split, settings of what is chosen",
    )
    row = joined(_LAB.field(one, one.name) for one in settings_of(FIRST_LOOK, _PLAIN))
    return str(_LAB.plan(_attacks(chosen), joined(side), row, more, beside=True))


def _attacks(chosen: Mapping[str, Sequence[str]]) -> str:
    """Networks across, parties down."""
    networks = _OFFERED["networks"]
    parties = sorted(_OFFERED["arms"], key=lambda one: one.item not in ALWAYS)
    return _LAB.crossed(
        f"{_LISTS['arms'][0]}: each dot is an attack on the training of a network",
        ("networks", networks, chosen["networks"]),
        ("arms", parties, chosen["arms"]),
        f"All {len(networks)} networks and {len(parties)} ways to look",
        ALWAYS,
        UNSOLVED,
        "Its first layer is a convolution: there is nothing to solve.",
        True,
    )


def cards_html(data: Path) -> str:
    """Return the cards with what the last run of each took on this machine."""

    def took(order: FederatedOrder) -> float | None:
        return last_seconds(data / "jobs", KIND, like(order))

    cards = cards_of(CARDS, lab.absent(), took=took, state=_state, datasets=datasets_of)
    return lab_cards.cards_html(NAME, cards)


def datasets_of(order: FederatedOrder) -> tuple[str]:
    """The data set a comparison needs."""
    return (order.data,)


def order_of(given: Given) -> FederatedOrder:
    """The order that the form means; `SettingsError` in its words where it cannot be."""
    data, attack, network = (_one(given, name) for name in ("datasets", "attacks", "networks"))
    arms = set(given.texts("arms"))
    # The arms they are compared with come along.
    wanted = tuple(arm for arm in ARMS if arm in {*arms, *ALWAYS}) if arms else ()
    order = changed(FIRST_LOOK, given.fields)
    return replace(order, data=data, attack=attack, network=network, arms=wanted)


def attacked(order: FederatedOrder) -> list[str]:
    """The arms that carrying out `order` attacks, in that order; none of a table."""
    if is_table(order.data) or not order.arms:
        return []
    wanted = {*order.arms, *ALWAYS}
    return [arm for arm in ARMS if arm in wanted and (arm, order.network) not in UNSOLVED]


def _one(given: Given, name: str) -> str:
    chosen = given.texts(name)
    if not chosen:
        raise SettingsError(f"Choose one of {_LISTS[name][0]}.")
    return chosen[0]


def _chosen(order: FederatedOrder) -> dict[str, tuple[str, ...]]:
    texts = {
        "datasets": (order.data,),
        "attacks": (order.attack,),
        "networks": (order.network,),
        "arms": order.arms,
    }
    return {name: items_of(_OFFERED, name, chosen) for name, chosen in texts.items()}


def _state(order: FederatedOrder) -> str:
    """What a card puts into the form."""
    fields = {one.name: one.value for one in settings_of(order, (*_PLAIN, *_MORE))}
    return state_of(NAME, _chosen(order), fields)
