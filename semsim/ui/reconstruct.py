"""The page Reconstruct: choose targets and attacks, see what they take, run them, look."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from semsim.attacks.as_text import threat_of, with_preset
from semsim.base.errors import SettingsError
from semsim.base.registry import Plugin, help_of
from semsim.base.threat import LABELS, LETTERS
from semsim.campaign.campaign_job import KIND, like
from semsim.campaign.plan import DEMO_GRID, FIRST_LOOK, PAPER_GRID, Campaign
from semsim.grid.subprocess_worker import apart
from semsim.lab import Effort
from semsim.lab.choices import CHOICES, DATASETS, PRESETS, FormChoice, judge_choices
from semsim.lab.markup import joined, pieces
from semsim.lab.page import Crossed, ItemList, LabForm, LabPage, NumberField, PagedPictures
from semsim.lab.settings_form import Given
from semsim.targets import TARGETS
from semsim.ui import ScienceContext
from semsim.ui.reconstruct_sets import draw, grid_now, offered

_INTRO = (
    "Train classifiers, attack pictures through the gradients they leak ([[gradient "
    "inversion]]), and see what comes back of each."
)
_SETS = "semsim.ui.reconstruct_sets"
_LAB = pieces("lab.html")
_TRAIN = ("epochs", "lr", "batch_size", "until", "momentum", "weight_decay", "loss_scale")
_FIRST_SEED = NumberField(
    "first_seed",
    "First seed",
    "Each seed is a training of each target, attacked; they count up from this one.",
    least=0,
)


def _more(campaign: Campaign) -> Mapping[str, str]:
    presets = {text.partition(":")[2] for text in campaign.attacks}
    first = {"first_seed": str(campaign.seeds[0]), "preset": next(iter(presets))}
    return {**first, "threat": campaign.threat}


def _attacks() -> list[FormChoice]:
    """The attacks, each with the attacker that it needs."""
    return [
        replace(one, line=f"{one.line} Attacker {threat_of(Plugin(name=one.item)).limit}.")
        for one in CHOICES["attacks"]
    ]


def _threats() -> list[tuple[str, str]]:
    """No limit first, then each letter, without the labels and with them."""
    letters = [(one, f"{one}: {name}") for one, (name, _) in LETTERS.items()]
    told = [(f"{one}{LABELS}", f"{words}, labels known") for one, words in letters]
    each = [both for pair in zip(letters, told, strict=True) for both in pair]
    return [("", "What each attack needs"), *each]


FORM = LabForm(
    name="rec",
    kind=KIND,
    offered=(
        ("See it work", "One small model, with a defence and without.", FIRST_LOOK),
        ("The demo's grid", "Two models, seven trainings, two attacks.", DEMO_GRID),
        ("As in the paper", "14 targets on CIFAR-100; a GPU's work.", PAPER_GRID),
    ),
    lists={
        "datasets": ItemList("datasets", CHOICES["pictures"], "Pictures", DATASETS),
        "architectures": ItemList(
            "architectures", CHOICES["architectures"], "models", "semsim.targets:TARGETS"
        ),
        "strategies": ItemList("strategies", CHOICES["strategies"], "trainings"),
        "attacks": ItemList("attacks", _attacks(), "Attacks", "semsim.attacks:ATTACKS"),
        "shares": ItemList("shares", CHOICES["shares"], "What is shared", "semsim.attacks:SHARED"),
    },
    numbers=(
        NumberField("images", "Pictures to attack", called="Pictures", id="rec-images"),
        NumberField("seeds", "Seeds", seeds=True),
    ),
    settings={"train": _TRAIN},
    named=("campaign", ""),
    more=_more,
    like=like,
    crossed=Crossed(
        caption="Each dot is a [[target model]]: a classifier that is trained and then attacked",
        across=("architectures", "models"),
        down=("strategies", "trainings"),
    ),
    folded="how models are trained, shared data, settings of each choice",
    beside=False,
)


def page(context: ScienceContext) -> LabPage[Campaign]:
    """Declare the page: its texts, what its form means, what is drawn of a job."""
    place = (context.data, str(context.device), context.checkpoints)

    def order_of(given: Given) -> Campaign:
        return campaign_of(given, FORM.free_name(context.data))

    def effort(campaign: Campaign, measuring: bool = False) -> Effort:
        found: Effort = apart(f"{_SETS}:effort", campaign, context.data, measuring)
        return found

    return LabPage(
        form=FORM,
        title="Reconstruct",
        intro=_INTRO,
        papers=("semsim", "deployed", "everything", "threats"),
        called="Campaign",
        nothing="No campaign has been started here yet. Choose a card and press Start.",
        data=context.data,
        html=form_html(context.checkpoints),
        order_of=order_of,
        effort=effort,
        measured=lambda campaign: effort(campaign, measuring=True),
        queued=lambda given: apart(f"{_SETS}:queued", order_of(given), given.text("judge"), *place),
        draw=lambda job: draw(context, job),
        paged=PagedPictures(
            offered=lambda job: offered(context, job),
            draw=lambda job, attack, number: grid_now(context, job, attack, number),
        ),
    )


def form_html(checkpoints: Path) -> str:
    """The form, filled with the first card's campaign."""
    first = _FIRST_SEED.html(FIRST_LOOK.seeds[0])
    threat = _LAB.select("threat", "Attacker", _threats(), "", help_of(Campaign, "threat"))
    judges = judge_choices(checkpoints)
    return FORM.html(
        joined((FORM.choices("shares"), threat, first, FORM.settings_html("train"))),
        _LAB.select("preset", "Steps of the attacks", PRESETS, "fast"),
        _LAB.select("judge", "Candidate lists", judges, "", "", "judges"),
    )


def campaign_of(given: Given, free: str = "") -> Campaign:
    """The campaign a form means; `SettingsError` where a field cannot be read.

    Args:
        free: What it is called where the form does not say.
    """
    _refuse_own(given.texts("architectures"))
    first = given.whole(_FIRST_SEED.name, _FIRST_SEED.label)
    campaign = FORM.order(given, free)
    return replace(
        campaign,
        attacks=tuple(with_preset(campaign.attacks, given.text("preset"))),
        seeds=given.seeds("seeds", "Seeds", first),
        threat=given.text("threat"),
    )


def _refuse_own(architectures: Sequence[str]) -> None:
    """Whoever sees a page must not choose what code runs here."""
    unknown = [one for one in architectures if one.partition(":")[0].strip() not in TARGETS]
    if unknown:
        raise SettingsError(
            f"The form has no {unknown[0]!r} among its architectures. A network of your own is "
            "attacked from a command line, by `campaign run --own-network`."
        )
