"""A grid of data sets, architectures, strategies, attacks, images and seeds, as cells with keys.

A target is a classifier to train; a cell is one image attacked on one target by one attack. The
key of each is a hash of everything that determines it, so that a cell that is done anywhere is
done for every campaign. Keys leave out the number of images attacked at once: it changes a result
by rounding only. Two cells of the same image and seed draw the same random numbers whatever the
target or the attack, so that models and attacks are compared on the same shifts and noise.
"""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from semsim.attacks import ATTACKS, SHARED
from semsim.attacks.as_text import (
    ONE_GRADIENT,
    check_attack,
    read_attack,
    read_shared,
    threat_of,
)
from semsim.base.errors import DataError, SettingsError
from semsim.base.registry import (
    Plugin,
    all_settings,
    built,
    plain,
    read_plugin,
    setting,
    short_labels,
)
from semsim.base.storage import pieces
from semsim.base.storage.names import checked_name
from semsim.base.words import counted
from semsim.datasets import DATASETS
from semsim.datasets.on_disk import ROOT, content_of
from semsim.defences import DEFENCES, STRATEGIES, parse, read_strategy, split_parts, strategy_label
from semsim.images import to_uint8
from semsim.targets import NETWORKS
from semsim.targets.train_settings import TrainSettings, read_training
from semsim.types import LabelledImages

if TYPE_CHECKING:
    from semsim.targets.model import TargetModel

# Part of every key: raise it where the same settings come to give another target, or cell.
TARGET_FORMAT, CELL_FORMAT = "semsim-target/2", "semsim-cell/1"
_GRADIENTS = 32_000_000  # numbers: the gradients of all images attacked at once, 128 MB
_FOLDER = re.compile(r"^folder:root=(?:.*/)?(?P<name>[^/,]+),?")
_OWN = re.compile(r"own:network=(?P<module>[\w.]+):(?P<name>\w+),source=")
_LISTS = ("datasets", "architectures", "strategies", "attacks", "shares", "seeds", "trainings")


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """Campaign as users write it: each plug-in is text as in `read_plugin`.

    Attributes:
        images: Drawn class by class by `choose_images`.
        seeds: Each trains targets and attacks of its own.
        train: Of every target; its seed is replaced by those in `seeds`.
        trainings: "" for no change.
        together: At most; fewer for large networks, since each image has a gradient of its own in
            memory.
    """

    name: str = setting(MISSING, "Name of the campaign")
    datasets: tuple[str, ...] = setting(
        ("symbols",), "Data sets", "Data set, as symbols:train_per_class=20."
    )
    architectures: tuple[str, ...] = setting(
        ("resnet20-4", "convnet8"), "Architectures", "Target, as convnet8:activation=tanh."
    )
    strategies: tuple[str, ...] = setting(
        ("none", "crop-flip"), "Defences", "Defence, as ats:3-1-7."
    )
    attacks: tuple[str, ...] = setting(
        ("invgrad",), "Attacks", "Attack, as invgrad:fast,steps=200."
    )
    shares: tuple[str, ...] = setting(
        ("gradient",), "What is shared", "What a client shares, as update:steps=5,batch=8."
    )
    images: int = setting(16, "Images", "Test images of each data set to attack.")
    image_ids: tuple[str, ...] = setting((), "Image ids", "This image instead.")
    seeds: tuple[int, ...] = setting((0,), "Seeds", "Seed of targets and attacks.")
    train: TrainSettings = field(default_factory=TrainSettings)
    trainings: tuple[str, ...] = setting(
        ("",), "Trainings", "A change of --train for targets of its own, as until=0.3."
    )
    together: int = setting(
        16, "Together", "Images attacked at once, where possible; memory grows with it."
    )
    threat: str = setting(
        "", "Threat model", "Refuse what needs more than this attacker has: B, B+labels, … ."
    )


@dataclass(frozen=True, kw_only=True)
class TargetPlan:
    """A classifier to train: everything that decides its weights."""

    label: str  # how it is called on the pages, e.g. "resnet20-4/none"
    dataset: Plugin
    architecture: Plugin
    defence: Plugin
    train: TrainSettings


@dataclass(frozen=True, kw_only=True)
class PlannedTarget:
    """A classifier to train.

    Attributes:
        dataset: Its text in the campaign, by which images are found.
        content: Of `content_of` it.
    """

    key: str
    dataset: str
    plan: TargetPlan
    seed: int
    content: str = ""

    @property
    def data_settings(self) -> dict[str, Any]:
        """Of its data set, for keys."""
        return data_settings(self.plan.dataset, self.content)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One image to attack.

    Attributes:
        draw: Seed of the random numbers, from image and campaign seed.
    """

    key: str
    image_id: str
    draw: int


@dataclass(frozen=True, kw_only=True)
class PlannedSet:
    """One target under one attack: what becomes a reconstruction set.

    Attributes:
        model: Unique within the campaign.
        folder: The set's name on disk.
        together: How many images are attacked at once.
        seen: As of `semsim.attacks.parameters.seen_in`.
        shared: What a client shares.
        pictures: Of so many in turn.
    """

    model: str
    folder: str
    target: PlannedTarget
    attack: Plugin
    attack_label: str
    cells: tuple[Cell, ...]
    together: int
    seen: Mapping[str, int]
    shared: Plugin = ONE_GRADIENT
    pictures: int = 1

    @property
    def key(self) -> str:
        """Of all its cells: the same where the set would be the same."""
        return key_of(self.model, [cell.key for cell in self.cells])

    @property
    def facts(self) -> dict[str, Any]:
        """The threat model and the parameters seen, as `run.json` has them."""
        threat = threat_of(self.attack, self.shared)
        return {"threat": threat.record(), "seen": dict(self.seen)}

    def batches(self) -> Iterator[tuple[Cell, ...]]:
        """The cells in the groups in which they are attacked, which never depend on who works."""
        for start in range(0, len(self.cells), self.together):
            yield self.cells[start : start + self.together]

    def clients(self) -> Iterator[tuple[Cell, ...]]:
        """The cells of each client, which are done all or none."""
        for start in range(0, len(self.cells), self.pictures):
            yield self.cells[start : start + self.pictures]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A campaign worked out.

    Attributes:
        images: The attacked ones of each data set, by its text.
    """

    campaign: Campaign
    targets: tuple[PlannedTarget, ...]
    sets: tuple[PlannedSet, ...]
    images: Mapping[str, LabelledImages]

    @property
    def cells(self) -> list[Cell]:
        """All cells, in the order of the sets."""
        return [cell for planned in self.sets for cell in planned.cells]


def make_plan(campaign: Campaign, tests: Mapping[str, LabelledImages]) -> Plan:
    """The targets and cells of `campaign`.

    Args:
        tests: The test split of each data set, by its text.

    Raises:
        SettingsError: For what cannot be built or is empty.
        DataError: For images a data set does not have.
    """
    check(campaign)
    images = {text: choose_images(tests[text], campaign) for text in campaign.datasets}
    digests = {text: _digests(chosen) for text, chosen in images.items()}
    targets = tuple(_targets(campaign))
    attacks = list(
        zip(short_labels(campaign.attacks), map(read_attack, campaign.attacks), strict=True)
    )
    ways = _ways(campaign)
    for way, one in product(ways, images.values()):
        if len(one) % way.pictures:
            raise SettingsError(
                f"With {way.label} a client has {way.pictures} pictures, and "
                f"{counted(len(one), 'image')} make no whole number of clients; take a multiple of "
                f"{way.pictures}."
            )
    batches = any(way.shared.name != ONE_GRADIENT.name for way in ways)
    sets = tuple(
        _planned_set(target, way, (label, attack), digests[target.dataset], seen, together)
        for target in targets
        for network in [untrained(target.plan, images[target.dataset], batches)]
        for way in ways
        for seen in [_seen(network, way, [attack for _, attack in attacks])]
        for label, attack in attacks
        for together in [_together(campaign, attack, way.pictures, seen["parameters"])]
    )
    return Plan(campaign=campaign, targets=targets, sets=sets, images=images)


def untrained(plan: TargetPlan, images: LabelledImages, batches: bool = False) -> "TargetModel":
    """Return the target without numbers; `SettingsError` if its strategy cannot train it.

    Args:
        batches: Whether clients share what comes of batches, in which the strategy must work as
            well.
    """
    import torch  # what a campaign is can be read without

    from semsim.targets.each_image import check_trainable
    from semsim.targets.model import TargetModel, Whole

    architecture = built(NETWORKS, plan.architecture)
    # Of ours sizes alone: nothing is allocated. Somebody else's code may need numbers.
    device = "cpu" if isinstance(architecture, Whole) else "meta"
    with torch.random.fork_rng(), torch.device(device):
        model = TargetModel.on(architecture, images)
    shield = built(DEFENCES, plan.defence)
    check_trainable(model, shield, batches=batches)
    return model


def _seen(network: "TargetModel", way: "_Way", attacks: Sequence[Plugin]) -> Mapping[str, int]:
    """Count the parameters that are shared; `SettingsError` where an attack needs others."""
    from semsim.attacks.parameters import check_layers, seen_in, shared_names

    names = shared_names(network, way.parameters.split("+"))
    for attack in attacks:
        check_layers(attack, network, names)
    return seen_in(network, names)


def check(campaign: Campaign) -> None:
    """Raise `SettingsError` where the campaign cannot be planned whatever the data."""
    checked_name(campaign.name, "a campaign")
    for name in _LISTS:
        values = getattr(campaign, name)
        if not values:
            raise SettingsError(f"The campaign has no {name}; choose at least one.")
        called = strategy_label if name == "strategies" else str
        _check_once(name, [called(value).strip() for value in values])
    _check_once("image_ids", campaign.image_ids)
    if not campaign.image_ids and campaign.images < 1:
        raise SettingsError(f"A campaign needs at least one image; got {campaign.images}.")
    if campaign.together < 1:
        raise SettingsError(f"together={campaign.together}; expected 1 or more.")
    list(_target_plans(campaign))
    for way, attack in product(campaign.shares, campaign.attacks):
        check_attack(read_attack(attack), read_shared(way), campaign.threat)


def _check_once(name: str, values: Sequence[str]) -> None:
    """Raise `SettingsError` for a value that is named twice.

    Args:
        values: By what they are called on pages and in the names of sets.
    """
    for value in values:
        if values.count(value) > 1:
            raise SettingsError(f"The campaign's {name} name one twice: {value or 'nothing'}.")


def choose_images(test: LabelledImages, campaign: Campaign) -> LabelledImages:
    """The images of a data set's test split that are attacked.

    One image of each class in turn, classes in an order that depends on their names alone, so that
    more images keep those of fewer.
    """
    if campaign.image_ids:
        missing = sorted(set(campaign.image_ids) - set(test.ids))
        if missing:
            raise DataError(f"{test.dataset} has no test image {missing[0]!r}.")
        return test.pick([test.ids.index(one) for one in campaign.image_ids])
    if campaign.images > len(test):
        raise DataError(
            f"{test.dataset} has {len(test)} test images; the campaign asks for {campaign.images}."
        )
    rounds: dict[int, int] = {}
    order = []
    for place, label in enumerate(test.labels.tolist()):
        turn = rounds.get(label, 0)
        rounds[label] = turn + 1
        order.append((turn, key_of(test.classes[label]), place))
    return test.pick([place for _, _, place in sorted(order)[: campaign.images]])


def key_of(*parts: Any) -> str:
    """A hash, 20 hexadecimal digits, of everything in `parts`."""
    return pieces.key_of(plain(parts), 20)


def _targets(campaign: Campaign) -> Iterator[PlannedTarget]:
    contents = {text: data_content(text) for text in campaign.datasets}  # each looks at files once
    for dataset, plan in _target_plans(campaign):
        content = contents[dataset]
        yield PlannedTarget(
            key=target_key(plan, content),
            dataset=dataset,
            plan=plan,
            seed=plan.train.seed,
            content=content,
        )


def data_content(text: str) -> str:
    """Return the content of the files of the data set in `text`, see `content_of`."""
    return content_of(built(DATASETS, text))


def _target_plans(campaign: Campaign) -> Iterator[tuple[str, TargetPlan]]:
    """Each classifier to train, after the text of its data set."""
    grid = product(
        zip(campaign.datasets, _dataset_labels(campaign.datasets), strict=True),
        zip(campaign.architectures, _architecture_labels(campaign.architectures), strict=True),
        campaign.strategies,
        campaign.trainings,
        campaign.seeds,
    )
    for (dataset, dataset_label), (architecture, label), strategy, training, seed in grid:
        parts = [dataset_label] if len(campaign.datasets) > 1 else []
        parts += [label, strategy_label(strategy)]
        parts += [training] if training else []
        parts += [f"seed {seed}"] if len(campaign.seeds) > 1 else []
        plan = TargetPlan(
            label="/".join(parts),
            dataset=read_plugin(DATASETS, dataset),
            architecture=read_plugin(NETWORKS, architecture),
            defence=read_strategy(strategy),
            train=replace(read_training(training, campaign.train, "--seed"), seed=seed),
        )
        yield dataset, plan


def has_own(campaign: Campaign) -> bool:
    """Return whether the campaign attacks a user's own network, whose code must be imported."""
    return any(text.partition(":")[0].strip() == "own" for text in campaign.architectures)


def _dataset_labels(texts: Sequence[str]) -> list[str]:
    """As `short_labels`; a folder is called as itself, not by its path, where that tells it."""
    named = [_FOLDER.sub(r"\g<name>:", text).rstrip(":") for text in texts]
    return short_labels(named if len({*named}) == len(named) else texts)


def _architecture_labels(texts: Sequence[str]) -> list[str]:
    """Return labels as `short_labels`; a user's own network is called as its class."""
    return short_labels([_OWN.sub(r"\g<name>:\g<module>,", text) for text in texts])


def data_settings(dataset: Plugin, content: str) -> dict[str, Any]:
    """Return the key's part on a data set: settings and, where they do not say all, `content`."""
    settings = all_settings(DATASETS, dataset)
    if settings.get("root", ROOT) != ROOT:
        settings["root"] = os.path.abspath(settings["root"])
    return {**settings, "content": content} if content else settings


def target_key(plan: TargetPlan, content: str = "") -> str:
    """The key of a target: of all that determines its weights, but not its label.

    Args:
        content: Of `content_of` its data set.
    """
    return key_of(
        TARGET_FORMAT,
        data_settings(plan.dataset, content),
        all_settings(NETWORKS, plan.architecture),
        _strategy_settings(plan.defence),
        plain(plan.train),
    )


def _strategy_settings(strategy: Plugin) -> dict[str, Any]:
    """Return the key's part on a strategy: all settings of each of its parts, however spelt."""
    settings = all_settings(DEFENCES, strategy)
    if strategy.name == "composed":
        parts = map(parse, split_parts(settings["parts"]))
        settings["parts"] = [all_settings(DEFENCES, part) for part in parts]
    return settings


@dataclass(frozen=True, kw_only=True)
class _Way:
    """Quantity that clients share, of which parameters, and of how many pictures each."""

    label: str
    shared: Plugin
    parameters: str
    pictures: int


def _ways(campaign: Campaign) -> list[_Way]:
    found = []
    for text in campaign.shares:
        shared = read_shared(text)
        made = built(SHARED, shared)
        of: dict[str, Any] = {"parameters": made.parameters, "pictures": made.pictures}
        found.append(_Way(label=text.strip(), shared=shared, **of))
    return found


def _planned_set(
    target: PlannedTarget,
    way: _Way,
    named: tuple[str, Plugin],
    digests: Sequence[tuple[str, str]],
    seen: Mapping[str, int],
    together: int,
) -> PlannedSet:
    label, attack = named
    said = [target.plan.label, *([] if way.shared == ONE_GRADIENT else [way.label])]
    return PlannedSet(
        model="/".join([*said, label]),
        folder="__".join(map(file_name, [*said, label])),
        target=target,
        attack=attack,
        attack_label=label,
        cells=tuple(_cells(target, way, attack, digests)),
        together=together,
        seen=seen,
        shared=way.shared,
        pictures=way.pictures,
    )


def _cells(
    target: PlannedTarget, way: _Way, attack: Plugin, digests: Sequence[tuple[str, str]]
) -> Iterator[Cell]:
    settings = all_settings(ATTACKS, attack)
    for place, (image_id, digest) in enumerate(digests):
        parts = [CELL_FORMAT, target.key, settings, image_id, digest, target.seed]
        if way.shared != ONE_GRADIENT:  # what comes back depends on the company
            first = place - place % way.pictures
            parts += [all_settings(SHARED, way.shared), digests[first : first + way.pictures]]
        yield Cell(
            key=key_of(*parts),
            image_id=image_id,
            draw=int(key_of(image_id, digest, target.seed)[:15], 16),
        )


def _together(campaign: Campaign, attack: Plugin, pictures: int, size: int) -> int:
    if not hasattr(ATTACKS[attack.name], "many"):
        return 1
    most = max(1, min(campaign.together, _GRADIENTS // size))
    return max(1, most // pictures) * pictures


def _digests(images: LabelledImages) -> list[tuple[str, str]]:
    """Each image's id, and a hash of its pixels and label: ids alone may be of other pictures."""
    return [
        (image_id, hashlib.sha256(to_uint8(image).tobytes()).hexdigest() + str(label))
        for image_id, image, label in zip(
            images.ids, images.images, images.labels.tolist(), strict=True
        )
    ]


def file_name(label: str) -> str:
    """A name any file system takes; a hash keeps apart what differs in other signs only."""
    plain_name = re.sub(r"[^0-9A-Za-z.+_-]+", "-", label.replace("/", "__")).strip("-")
    changed = plain_name != label.replace("/", "__")
    return f"{plain_name}-{key_of(label)[:6]}" if changed else plain_name


# Campaigns that a user can begin with: a first look, the demo's grid, and the papers'.
FIRST_LOOK = Campaign(
    name="first-look",
    datasets=("symbols",),
    architectures=("cnn4:activation=silu",),
    strategies=("none", "noise"),
    attacks=("prior:fast",),
    images=6,
    train=TrainSettings(epochs=48, batch_size=32, lr=0.01, until=0.3),
)
# As the built-in study on symbols, where three strategies have longer trainings: `campaign.demo`.
DEMO_GRID = Campaign(
    name="demo",
    datasets=("symbols",),
    architectures=("cnn4:activation=silu", "cnn4:activation=relu"),
    strategies=tuple(STRATEGIES["paper"]),
    attacks=("invgrad:fast", "prior:fast"),
    images=12,
    train=TrainSettings(epochs=48, batch_size=32, lr=0.01, until=0.65),
)
# Table 3 of the SemSim paper on its first data set: 14 targets, 600 images each.
PAPER_GRID = Campaign(
    name="paper",
    datasets=("cifar100",),
    architectures=("resnet20-4", "convnet8"),
    strategies=tuple(STRATEGIES["paper"]),
    attacks=("invgrad:paper",),
    images=600,
    train=TrainSettings(epochs=200),
)
