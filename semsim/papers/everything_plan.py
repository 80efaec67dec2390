"""Content of the map of everything at each scale, and the parts that do not go together."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch

from semsim.attacks import ATTACKS
from semsim.attacks.as_text import read_attack
from semsim.base.errors import SettingsError, StopRequestedError
from semsim.base.progress import one_step
from semsim.base.registry import Plugin, build, read_plugin, short_labels
from semsim.base.words import counted, listed
from semsim.campaign.campaign_job import load, plan_of
from semsim.campaign.plan import Campaign, Plan, PlannedSet
from semsim.campaign.work import attack_images
from semsim.datasets import DATASETS
from semsim.defences import DEFENCES
from semsim.defences.as_text import parse, split_parts
from semsim.defences.strategies import NAMED_STRATEGIES, read_strategy, strategy_label
from semsim.papers.plans import Work, campaign_works, is_here, of_preset
from semsim.targets import NETWORKS
from semsim.targets.each_image import check_trainable
from semsim.targets.model import TargetModel
from semsim.targets.train_settings import TrainSettings
from semsim.types import LabelledImages

_PLAIN = Plugin(name="none")


class Key(NamedTuple):
    """A cell of the map by what its axes call it."""

    network: str
    strategy: str
    attack: str


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The axes of the map. campaigns: one a network, whose name no other has, of all that is asked.

    jury_epochs: of simulated people, in tenths of the usual. jury_data: what they learn, as text;
    "" for the training pictures of the targets.
    """

    name: str
    campaigns: tuple[Campaign, ...]
    jury_epochs: int
    jury_data: str = ""

    @property
    def dataset(self) -> str:
        """The data set of all campaigns."""
        return self.campaigns[0].datasets[0]

    @property
    def jury(self) -> Plugin:
        """Data set that simulated people learn."""
        return read_plugin(DATASETS, self.jury_data or self.dataset)

    def cells(self) -> Iterator[Key]:
        """Every cell, by network, then attack, then strategy."""
        for campaign in self.campaigns:
            network = read_plugin(NETWORKS, campaign.architectures[0]).name
            for attack in campaign.attacks:
                for strategy in campaign.strategies:
                    yield Key(network, strategy_label(strategy), read_attack(attack).name)


@dataclass(frozen=True, kw_only=True)
class Refused:
    """Attacks and strategies of a campaign that its network cannot have, with the reasons."""

    network: str
    attacks: Mapping[str, str]
    strategies: Mapping[str, str]

    @classmethod
    def of(cls, campaign: Campaign, images: LabelledImages) -> "Refused":
        """Return what a network that has not learned refuses, by trial, for images as `images`."""
        network = read_plugin(NETWORKS, campaign.architectures[0])
        model = _untrained(network, images)
        attacks = {text: why_not(read_attack(text), model, images) for text in campaign.attacks}
        strategies = {text: _why_untrained(text, model) for text in campaign.strategies}
        return cls(
            network=network.name,
            attacks={text: why for text, why in attacks.items() if why},
            strategies={text: why for text, why in strategies.items() if why},
        )

    def cells(self, campaign: Campaign) -> dict[Key, str]:
        """The cells that cannot be; where both refuse, the strategy's reason."""
        return {
            Key(self.network, strategy_label(strategy), read_attack(attack).name): why
            for strategy in campaign.strategies
            for attack in campaign.attacks
            if (why := self.strategies.get(strategy) or self.attacks.get(attack))
        }

    def without(self, campaign: Campaign) -> Campaign:
        """The campaign without them."""
        return replace(
            campaign,
            attacks=tuple(text for text in campaign.attacks if text not in self.attacks),
            strategies=tuple(one for one in campaign.strategies if one not in self.strategies),
        )

    def lines(self) -> Iterator[str]:
        """Yield what is refused, a line a reason."""
        for kind in (self.attacks, self.strategies):
            for why in dict.fromkeys(kind.values()):
                names = [text.partition(":")[0] for text, one in kind.items() if one == why]
                yield f"{self.network} without {listed(names)}: {why}"


@dataclass(frozen=True, kw_only=True)
class Worked:
    """A scale worked out: a plan a campaign, of all cells but those that are refused."""

    scale: Scale
    plans: tuple[Plan, ...]
    refused: tuple[Refused, ...]

    @property
    def unfit(self) -> dict[Key, str]:
        """Reasons of the cells that cannot be, by cell."""
        pairs = zip(self.refused, self.scale.campaigns, strict=True)
        return {key: why for one, asked in pairs for key, why in one.cells(asked).items()}

    @property
    def images(self) -> LabelledImages:
        """The originals that are attacked."""
        return self.plans[0].images[self.scale.dataset]


def strategies() -> tuple[str, ...]:
    """Every strategy that has a name, then each defence that is part of none of these."""
    parts = [part for spec in NAMED_STRATEGIES.values() for part in split_parts(spec)]
    used = {"composed", *(parse(part).name for part in parts)}
    return (*NAMED_STRATEGIES, *(name for name in DEFENCES if name not in used))


def scale_of(name: str) -> Scale:
    """The scale called smoke, small or paper; `SettingsError` for another name."""
    networks, base, presets, jury_epochs, jury_data = of_preset(_SCALES, name)
    usual = presets[""]
    asked = replace(base, attacks=tuple(f"{one}:{presets.get(one, usual)}" for one in ATTACKS))
    campaigns = tuple(
        replace(asked, name=f"everything-{name}-{label}", architectures=(network,))
        for network, label in zip(networks, short_labels(networks), strict=True)
    )
    return Scale(name=name, campaigns=campaigns, jury_epochs=jury_epochs, jury_data=jury_data)


# A seed of its own draws originals that neither the demo's SemSim nor its recogniser has seen.
_SMALL = Campaign(
    name="everything",
    datasets=("symbols:seed=1",),
    strategies=strategies(),
    images=12,
    train=TrainSettings(epochs=48, batch_size=32, lr=0.01, until=0.65),
)
_SMOKE = replace(
    _SMALL,
    datasets=("symbols:train_per_class=4,test_per_class=1,seed=1",),
    strategies=("none", "noise", "dp-sgd"),
    images=2,
    train=TrainSettings(epochs=1, batch_size=32, lr=0.01),
)
_PAPER = replace(
    _SMALL, datasets=("cifar100",), images=100, train=TrainSettings(epochs=200, lr=0.01)
)
# DLG's preset of 40 calls would take half of all time: 20 calls of up to 20 steps look at the
# gradient about as often as InvGrad's 500 steps.
_FEW = {"": "fast", "dlg": "fast,steps=20", "idlg": "fast,steps=20"}
# Pictures of the same classes that no target, no judge and no SemSim has learned from.
_JURY_DATA = "symbols:train_per_class=100,test_per_class=1,seed=7"
# Networks, what is asked of each, presets of attacks (that of "" for those not named), the jury's
# epochs and data. Every attack goes with the first network of each scale; others have batch norm.
_SCALES: dict[str, tuple[tuple[str, ...], Campaign, Mapping[str, str], int, str]] = {
    "smoke": (
        ("cnn4:width=4,activation=tanh", "cnn-small:width=4"),
        _SMOKE,
        {"": "fast,steps=2", "copa-prior": "fast,steps=2,inner=4"},
        1,
        "",
    ),
    "small": (("cnn4:width=16,activation=leaky-relu",), _SMALL, _FEW, 10, _JURY_DATA),
    "paper": (("cnn4:activation=tanh", "resnet20-4", "convnet8"), _PAPER, {"": "paper"}, 10, ""),
}


def work_out(scale: Scale) -> Worked:
    """Return the plans of a scale, without what does not go together.

    Raises `DataError` where the pictures are not there.
    """
    train = load(read_plugin(DATASETS, scale.dataset), "train")
    refused = tuple(Refused.of(campaign, train) for campaign in scale.campaigns)
    pairs = zip(refused, scale.campaigns, strict=True)
    plans = tuple(plan_of(one.without(campaign)) for one, campaign in pairs)
    return Worked(scale=scale, plans=plans, refused=refused)


def key_of(planned: PlannedSet) -> Key:
    """Return the map cell of a set."""
    network, _, strategy = planned.target.plan.label.partition("/")
    return Key(network=network, strategy=strategy, attack=planned.attack.name)


def why_not(attack: Plugin, model: TargetModel, images: LabelledImages) -> str:
    """Return why an attack does not go with a network, "" where it does; its first step is tried.

    images: at least one, (N, 3, H, W).
    """
    one = images.pick([0])
    return _refusal(lambda: attack_images(model, one, _PLAIN, attack, [0], one_step))


def _refusal(tried: Callable[[], object]) -> str:
    """The reason that what is `tried` gives for being refused, "" where it begins."""
    try:
        tried()
    except SettingsError as error:
        return str(error)
    except StopRequestedError:
        pass
    return ""


def _untrained(network: Plugin, images: LabelledImages) -> TargetModel:
    channels, height, width = images.images.shape[1:]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return TargetModel(
            build(NETWORKS, network.name, network.settings),
            images.classes,
            mean=[0.5] * channels,
            std=[0.5] * channels,
            size=(height, width),
        ).eval()


def _why_untrained(strategy: str, model: TargetModel) -> str:
    found = read_strategy(strategy)
    defence = build(DEFENCES, found.name, found.settings)
    return _refusal(lambda: check_trainable(model, defence))


def works_of(preset: str, folder: Path) -> list[Work]:
    """Return the trainings and attacks of all cells of a preset, below `folder`."""
    return _works(scale_of(preset).campaigns, (), folder)


def planned(preset: str, folder: Path) -> tuple[list[Work], str]:
    """Return the trainings and attacks of a preset with what is done, and what cannot be.

    Where the pictures are not here, it cannot be told which cells cannot be, and all are counted.
    """
    scale = scale_of(preset)
    if is_here(scale.dataset):
        worked = work_out(scale)
        works = _works([one.campaign for one in worked.plans], worked.plans, folder)
        return works, cells_text(worked)
    told = (
        f"Scale {scale.name}: {counted(len(list(scale.cells())), 'cell')}. {scale.dataset} is not "
        "here; which cells cannot be is told once it is."
    )
    return works_of(preset, folder), told


def _works(campaigns: Sequence[Campaign], plans: Sequence[Plan], data: Path) -> list[Work]:
    named = [(read_plugin(NETWORKS, one.architectures[0]).name, one) for one in campaigns]
    return campaign_works(named, plans, data)


def cells_text(worked: Worked) -> str:
    """Return the number of cells and those that cannot be, a line a reason."""
    cells = sum(len(plan.sets) for plan in worked.plans)
    return "\n".join(
        [
            f"Scale {worked.scale.name}: {counted(cells, 'cell')} to compute, "
            f"{len(worked.images)} originals each; {len(worked.unfit)} that cannot be.",
            *(line for one in worked.refused for line in one.lines()),
        ]
    )
