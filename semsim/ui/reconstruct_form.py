"""The form of the page Reconstruct: what it looks like, and the campaign it means."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semsim.attacks.as_text import with_preset
from semsim.campaign.grids import DEMO_GRID, FIRST_LOOK, PAPER_GRID
from semsim.campaign.plan import Campaign
from semsim.campaign.probe import Cost, known_cost
from semsim.device import cores
from semsim.errors import SettingsError
from semsim.targets import TARGETS
from semsim.targets.train_settings import TrainSettings
from semsim.ui import lab, plain_words
from semsim.ui.jobpanel import words_for_seconds
from semsim.ui.markup import pieces, rooted
from semsim.ui.settings_form import Given, changed, settings_of

_HTML, _LAB = pieces("reconstruct.html"), pieces("lab.html")
_TRAIN = ("epochs", "lr", "batch_size", "until", "momentum", "weight_decay", "loss_scale")
_LISTS: Mapping[str, Sequence[plain_words.Choice]] = {
    "datasets": plain_words.PICTURES,
    "architectures": plain_words.ARCHITECTURES,
    "strategies": plain_words.STRATEGIES,
    "attacks": plain_words.ATTACK_CHOICES,
}
NAME = "rec"
CARDS_NOW = f"{lab.FOLDER}/cards"


@dataclass(frozen=True, kw_only=True)
class Card:
    """One of the cards a page begins with: a campaign that fills the form.

    state: what it puts into the form, as JSON. why: the reason it cannot be chosen, or "".
    """

    title: str
    line: str
    facts: str
    state: str
    why: str


CARDS = (
    ("See it work", "One small model, with a defence and without.", FIRST_LOOK),
    ("The demo's grid", "Two models, seven trainings, two attacks.", DEMO_GRID),
    ("As in the paper", "14 targets on CIFAR-100; a GPU's work.", PAPER_GRID),
)


def form_html(checkpoints: Path) -> str:
    """The form, filled with the first card's campaign."""
    first, train = FIRST_LOOK, settings_of(FIRST_LOOK.train, _TRAIN)
    chosen = {key: _items(key, getattr(first, key)) for key in _LISTS}
    return str(
        _HTML.form(
            _LAB.targets(plain_words.ARCHITECTURES, plain_words.STRATEGIES, chosen),
            _LAB.choices(
                "datasets", "Pictures", _LISTS["datasets"], chosen["datasets"], lab.reasons()
            ),
            _LAB.choices("attacks", "Attacks", _LISTS["attacks"], chosen["attacks"]),
            _LAB.select("preset", "Steps of the attacks", plain_words.PRESETS, "fast"),
            _LAB.select("judge", "Word lists", lab.judge_choices(checkpoints), "", "", "judges"),
            _LAB.more(
                ("datasets", "architectures", "attacks"),
                _LAB.fields(train, "train."),
                "More: how models are trained, settings of what is chosen",
            ),
            first,
        )
    )


def cards_html(data: Path) -> str:
    """The cards with what each takes on this machine, as far as that was measured."""
    return str(_LAB.cards(cards(data, lab.absent()), rooted(CARDS_NOW)))


def cards(data: Path, absent: Mapping[str, str]) -> list[Card]:
    """What `cards_html` draws; absent: why data sets cannot be chosen, by name."""
    return [
        Card(
            title=title,
            line=line,
            facts=facts_of(known_cost(campaign, data)),
            state=json.dumps(_state(campaign)),
            why=next((absent[one] for one in campaign.datasets if one in absent), ""),
        )
        for title, line, campaign in CARDS
    ]


def facts_of(cost: Cost | None) -> str:
    """Time and disk of a campaign, or that nobody has measured them."""
    if cost is None:
        return "Time not measured yet"
    return f"{time_words(cost.seconds)} · {disk_words(cost.disk)}"


def time_words(seconds: float) -> str:
    """Seconds of one core as a span on this machine's cores."""
    return f"about {words_for_seconds(seconds / cores())} on {cores()} cores"


def disk_words(size: int) -> str:
    """Bytes as people say them."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{max(size, 1e5) / 1e6:.1f} MB"


def campaign_of(given: Given, free: str = "") -> Campaign:
    """The campaign a form means; `SettingsError` where a field cannot be read.

    free: what it is called where the form does not say.
    """
    preset = given.text("preset")
    _refuse_own(given.texts("architectures"))
    return Campaign(
        name=given.text("name") or free,
        datasets=given.texts("datasets"),
        architectures=given.texts("architectures"),
        strategies=given.texts("strategies"),
        attacks=tuple(with_preset(given.texts("attacks"), preset)),
        images=given.whole("images", "Pictures"),
        seeds=given.whole_numbers("seeds", "Seeds"),
        train=changed(TrainSettings(), given.fields, "train."),
    )


def _refuse_own(architectures: Sequence[str]) -> None:
    """Whoever sees a page must not choose what code runs here."""
    unknown = [one for one in architectures if one.partition(":")[0].strip() not in TARGETS]
    if unknown:
        raise SettingsError(
            f"The form has no {unknown[0]!r} among its architectures. A network of your own is "
            "attacked from a command line, by `campaign run --model`."
        )


def _items(listed: str, texts: Sequence[str]) -> tuple[str, ...]:
    """Which of a list's items texts are; their settings are the item's or the form's."""
    items = [choice.item for choice in _LISTS[listed]]
    found = [text if text in items else text.partition(":")[0] for text in texts]
    unknown = [item for item in found if item not in items]
    if unknown:
        raise SettingsError(f"The form has no {unknown[0]!r} among its {listed}.")
    return tuple(found)


def _state(campaign: Campaign) -> dict[str, Any]:
    """What a card puts into the form."""
    train = {f"train.{one.name}": one.value for one in settings_of(campaign.train, _TRAIN)}
    presets = {text.partition(":")[2] for text in campaign.attacks}
    return {
        "lists": {key: _items(key, getattr(campaign, key)) for key in _LISTS},
        "fields": {
            "images": str(campaign.images),
            "seeds": " ".join(map(str, campaign.seeds)),
            "preset": next(iter(presets)),
            **train,
        },
        "form": NAME,
        "then": "rec-plan",
    }
