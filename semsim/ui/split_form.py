"""The form of the page Split inference: what it looks like, and the experiment it means."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from semsim.errors import SettingsError
from semsim.jobs.folders import last_seconds
from semsim.learning.card_promoted import promoted
from semsim.metrics import METRICS, Resources, all_metrics
from semsim.split.plan import PRESETS, SplitPlan
from semsim.split.split_job import KIND, like
from semsim.ui import lab, lab_cards, plain_words
from semsim.ui.lab_cards import cards_of, items_of, state_of
from semsim.ui.markup import joined, pieces
from semsim.ui.plain_words import Choice
from semsim.ui.settings_form import MOST_SEEDS, Given, changed, settings_of

NAME = "split"
METRICS_NOW = "split-metrics"
_ATTACK_EPOCHS = PRESETS["small"].shadow.epochs  # the form has one number for both of its parts
FIRST_LOOK = replace(
    PRESETS["small"],
    name="",
    defences=("none", "single"),
    attacks=("adaptive-aligned",),  # the plain one fails on the undefended system
    shadow=replace(PRESETS["small"].shadow, decoder_epochs=_ATTACK_EPOCHS),
    defence_seeds=(0,),
    attack_seeds=(0,),
    images=24,
)
_ENSEMBLER = replace(
    FIRST_LOOK,
    defences=("none", "single", "ensembler:bodies=4,selected=2"),
    attacks=("adaptive", "adaptive-aligned"),
    attack_seeds=(0, 1, 2),
    images=48,
)
_PAPER = replace(PRESETS["paper"], name="", dataset="cifar100")
CARDS = (
    ("See it work", "One small network, with noise and without.", FIRST_LOOK),
    ("Does Ensembler hide more?", "Three systems, two attacks, three runs each.", _ENSEMBLER),
    ("As in the paper", "ResNet-18 and six defences on CIFAR-100; a GPU's work.", _PAPER),
)
_LISTS: Mapping[str, Sequence[Choice]] = {
    "datasets": plain_words.PICTURES,
    "split-networks": plain_words.SPLIT_NETWORK_CHOICES,
    "split-defences": plain_words.SPLIT_DEFENCE_CHOICES,
    "attacks": plain_words.SPLIT_ATTACK_CHOICES,
}
_SHOWN = ("ssim", "psnr", "recogniser")  # scores that every result has
_TRAIN = ("epochs", "ensemble_epochs", "lr", "ensemble_lr", "batch_size")
_SHADOW = ("epochs", "lr", "batch_size", "start")
_LAB, _HTML = pieces("lab.html"), pieces("split.html")


def form_html(checkpoints: Path) -> str:
    """The form, filled with the first card's experiment."""
    first = FIRST_LOOK
    chosen = _chosen(first)
    side = (
        _LAB.choices(
            "datasets", "Pictures", _LISTS["datasets"], chosen["datasets"], lab.reasons(), True
        ),
        _LAB.choices("attacks", "Attacks", _LISTS["attacks"], chosen["attacks"]),
    )
    row = (_LAB.named(NAME), _HTML.numbers(first, MOST_SEEDS))
    inside = _HTML.more(
        _LAB.fields(settings_of(first.train, _TRAIN), "train."),
        _LAB.fields(settings_of(first.shadow, _SHADOW), "shadow."),
        metrics_html(checkpoints),
    )
    lists = ("datasets", "split-networks", "split-defences")
    more = _LAB.more(lists, inside, "More: cuts, epochs, metrics")
    return str(_LAB.plan(_systems(chosen), joined(side), joined(row), more, beside=True))


def _systems(chosen: Mapping[str, Sequence[str]]) -> str:
    """Networks across, defences down."""
    across, down = _LISTS["split-networks"], _LISTS["split-defences"]
    return _LAB.crossed(
        "Each dot is a system: a network, cut between client and server, that is trained with a "
        "defence and then attacked",
        ("split-networks", across, chosen["split-networks"]),
        ("split-defences", down, chosen["split-defences"]),
        f"All {len(across)} networks and {len(down)} defences",
        ("none",),
    )


def metrics_html(checkpoints: Path) -> str:
    """What else can judge, what has been trained here first; the promoted SemSim is chosen."""
    known = all_metrics(Resources(checkpoints=checkpoints))
    names = sorted((name for name in known if name not in _SHOWN), key=lambda n: n in METRICS)
    choices = [Choice(item=name, title=known[name].spec.title, line="") for name in names]
    mine = promoted(checkpoints)
    chosen = [f"semsim:{mine}"] if mine else []
    return _HTML.metrics(
        _LAB.choices("metrics", "Metrics beside SSIM, PSNR and a recogniser", choices, chosen),
        lab_cards.now_at(METRICS_NOW),
    )


def cards_html(data: Path) -> str:
    """Return the cards with what the last run of each took on this machine."""

    def took(plan: SplitPlan) -> float | None:
        return last_seconds(data / "jobs", KIND, like(plan))

    cards = cards_of(CARDS, lab.absent(), took=took, state=_state, datasets=datasets_of)
    return lab_cards.cards_html(NAME, cards)


def datasets_of(plan: SplitPlan) -> tuple[str]:
    """The data set an experiment needs."""
    return (plan.dataset,)


def plan_of(given: Given, free: str = "") -> SplitPlan:
    """The plan that the form means; `SettingsError` names a field that is empty.

    The undefended system is always among the defences: without it nothing can be said of them.
    free: what it is called where the form does not say.
    """
    datasets = given.texts("datasets")
    if not datasets:
        raise SettingsError("Choose the pictures.")
    shadow = changed(FIRST_LOOK.shadow, given.fields, "shadow.")
    return replace(
        FIRST_LOOK,
        name=given.text("name") or free,
        dataset=datasets[0],
        networks=given.texts("split-networks"),
        defences=tuple(dict.fromkeys(("none", *given.texts("split-defences")))),
        attacks=given.texts("attacks"),
        defence_seeds=given.seeds("defence_seeds", "Defence seeds"),
        attack_seeds=given.seeds("attack_seeds", "Attack seeds"),
        images=given.whole("images", "Pictures judged"),
        train=changed(FIRST_LOOK.train, given.fields, "train."),
        shadow=replace(shadow, decoder_epochs=shadow.epochs),
        metrics=given.texts("metrics"),
    )


def _chosen(plan: SplitPlan) -> dict[str, tuple[str, ...]]:
    texts = {
        "datasets": (plan.dataset,),
        "split-networks": plan.networks,
        "split-defences": plan.defences,
        "attacks": plan.attacks,
    }
    return {name: items_of(_LISTS, name, chosen) for name, chosen in texts.items()}


def _state(plan: SplitPlan) -> str:
    """What a card puts into the form."""
    settings = {
        **{f"train.{one.name}": one.value for one in settings_of(plan.train, _TRAIN)},
        **{f"shadow.{one.name}": one.value for one in settings_of(plan.shadow, _SHADOW)},
    }
    fields = {
        "images": str(plan.images),
        "defence_seeds": str(len(plan.defence_seeds)),
        "attack_seeds": str(len(plan.attack_seeds)),
        **settings,
    }
    return state_of(NAME, _chosen(plan), fields)
