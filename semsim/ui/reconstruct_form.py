"""The form of the page Reconstruct: what it looks like, and the campaign it means."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from semsim.attacks.as_text import with_preset
from semsim.campaign.campaign_job import KIND, like
from semsim.campaign.grids import DEMO_GRID, FIRST_LOOK, PAPER_GRID
from semsim.campaign.plan import Campaign
from semsim.errors import SettingsError
from semsim.jobs.folders import last_seconds
from semsim.targets import TARGETS
from semsim.targets.train_settings import TrainSettings
from semsim.ui import lab, lab_cards, plain_words
from semsim.ui.lab_cards import Card, cards_of, items_of, state_of
from semsim.ui.markup import joined, pieces
from semsim.ui.settings_form import MOST_SEEDS, Given, changed, settings_of

_HTML, _LAB = pieces("reconstruct.html"), pieces("lab.html")
_TRAIN = ("epochs", "lr", "batch_size", "until", "momentum", "weight_decay", "loss_scale")
_LISTS: Mapping[str, Sequence[plain_words.Choice]] = {
    "datasets": plain_words.PICTURES,
    "architectures": plain_words.ARCHITECTURES,
    "strategies": plain_words.STRATEGIES,
    "attacks": plain_words.ATTACK_CHOICES,
    "shares": plain_words.SHARE_CHOICES,
}
NAME = "rec"


CARDS = (
    ("See it work", "One small model, with a defence and without.", FIRST_LOOK),
    ("The demo's grid", "Two models, seven trainings, two attacks.", DEMO_GRID),
    ("As in the paper", "14 targets on CIFAR-100; a GPU's work.", PAPER_GRID),
)


def form_html(checkpoints: Path) -> str:
    """The form, filled with the first card's campaign."""
    first, train = FIRST_LOOK, settings_of(FIRST_LOOK.train, _TRAIN)
    chosen = {key: items_of(_LISTS, key, getattr(first, key)) for key in _LISTS}
    more = _LAB.more(
        ("datasets", "architectures", "attacks", "shares"),
        joined(
            (
                _LAB.choices("shares", "What is shared", _LISTS["shares"], chosen["shares"]),
                _HTML.first_seed(first),
                _LAB.fields(train, "train."),
            )
        ),
        "More: how models are trained, what a client shares, settings of what is chosen",
    )
    side = (
        _LAB.choices("datasets", "Pictures", _LISTS["datasets"], chosen["datasets"], lab.reasons()),
        _LAB.choices("attacks", "Attacks", _LISTS["attacks"], chosen["attacks"]),
    )
    row = (
        _LAB.named(NAME),
        _HTML.numbers(first, MOST_SEEDS),
        _LAB.select("preset", "Steps of the attacks", plain_words.PRESETS, "fast"),
        _LAB.select("judge", "Word lists", lab.judge_choices(checkpoints), "", "", "judges"),
    )
    return str(_LAB.plan(_targets(chosen), joined(side), joined(row), more))


def _targets(chosen: Mapping[str, Sequence[str]]) -> str:
    """Models across, trainings down."""
    across, down = _LISTS["architectures"], _LISTS["strategies"]
    return _LAB.crossed(
        lab.said("Each dot is a [[target]]: a classifier that is trained and then attacked"),
        ("architectures", across, chosen["architectures"]),
        ("strategies", down, chosen["strategies"]),
        f"All {len(across)} models and {len(down)} trainings",
    )


def cards_html(data: Path) -> str:
    """Return the cards with what the last run of each took on this machine."""
    return lab_cards.cards_html(NAME, cards(data, lab.absent()))


def cards(data: Path, absent: Mapping[str, str]) -> list[Card]:
    """Return what `cards_html` draws; absent: why data sets cannot be chosen, by name."""

    def took(campaign: Campaign) -> float | None:
        return last_seconds(data / "jobs", KIND, like(campaign))

    return cards_of(CARDS, absent, took=took, state=_state, datasets=datasets_of)


def datasets_of(campaign: Campaign) -> Sequence[str]:
    """The data sets a campaign needs."""
    return campaign.datasets


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
        shares=given.texts("shares"),
        images=given.whole("images", "Pictures"),
        seeds=given.seeds("seeds", "Seeds", given.whole("first_seed", "First seed")),
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


def _state(campaign: Campaign) -> str:
    """What a card puts into the form."""
    train = {f"train.{one.name}": one.value for one in settings_of(campaign.train, _TRAIN)}
    presets = {text.partition(":")[2] for text in campaign.attacks}
    fields = {
        "images": str(campaign.images),
        "seeds": str(len(campaign.seeds)),
        "first_seed": str(campaign.seeds[0]),
        "preset": next(iter(presets)),
        **train,
    }
    lists = {key: items_of(_LISTS, key, getattr(campaign, key)) for key in _LISTS}
    return state_of(NAME, lists, fields)
