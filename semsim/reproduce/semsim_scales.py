"""What `reproduce semsim` computes at each scale: campaigns, one a study, and SemSim's training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from semsim.campaign.grids import DEMO_GRID
from semsim.campaign.plan import Campaign
from semsim.campaign.vertical import VerticalRun
from semsim.learning import PRESETS, TrainSettings
from semsim.reproduce.plans import of_preset
from semsim.reproduce.semsim_paper import (
    DATA_SETS,
    LOSS_SCALE,
    LR,
    MAIN_ATTACK,
    OTHER_ATTACKS,
    STRATEGIES,
    DataSet,
)
from semsim.targets.train_settings import TrainSettings as TargetTraining

_OURS = tuple(ours for _, ours, _ in STRATEGIES)
VERTICAL = "CAFE"
# Vertical federated learning has networks of its own: two widths of one, where the paper is silent.
_QUARTERED = ((8, 64), (12, 96))  # channels of a participant, outputs of the joining layer


@dataclass(frozen=True, kw_only=True)
class Part:
    """One study: 14 targets on a data set under one attack.

    table: the paper's table it is a row of; row: which one it stands in for. task: what people are
    asked. classes, pixels: of the data set. vertical: a run a target, where the attack is on
    vertical federated learning; the campaign then only says what of.
    """

    table: int
    row: str
    task: str
    campaign: Campaign
    classes: int
    pixels: int
    vertical: tuple[VerticalRun, ...] = ()

    @property
    def name(self) -> str:
        """Of its campaign, its study and its files."""
        return self.campaign.name


@dataclass(frozen=True, kw_only=True)
class Scale:
    """What is computed. The first part stands in for CIFAR-100, on which Table 2 and figures are.

    semsim: how SemSim is trained. jury_epochs: of simulated voters, in tenths of the usual.
    figures: `semsim.learning.ablations.STUDIES` with the values each takes; none for the usual.
    jury_data: what simulated voters learn, by the data set they vote on; without, the same.
    """

    name: str
    parts: tuple[Part, ...]
    semsim: TrainSettings
    jury_epochs: int
    figures: tuple[tuple[str, tuple[object, ...]], ...]
    jury_data: Mapping[str, str] = field(default_factory=dict)

    def of_table(self, number: int) -> tuple[Part, ...]:
        """The parts that are rows of Table 1 or 2."""
        return tuple(part for part in self.parts if part.table == number)

    @property
    def absent(self) -> tuple[str, ...]:
        """Rows of the paper's tables that no part stands in for."""
        there = {part.row for part in self.parts}
        rows = (*(one.title for one in DATA_SETS), *(one.title for one in OTHER_ATTACKS))
        return tuple(row for row in rows if row not in there)


def scale_of(name: str, images: Path | None = None) -> Scale:
    """The scale called smoke, small or paper.

    images: class folders in place of the first data set. Raises `SettingsError` for another name.
    """
    return of_preset(_SCALES, name)(images)


def in_mixed_precision(scale: Scale) -> Scale:
    """The same with bfloat16 in trainings and in the attacks that can have it, under other names.

    Each checks what that changes: see `semsim.targets.mixed_precision` and
    `semsim.attacks.rough_slope`.
    """
    return replace(scale, parts=tuple(_mixed(part) for part in scale.parts))


_MIXED = "mixed_precision=true"
_CAN_BE_MIXED = ("invgrad", "gradattack")


def _mixed(part: Part) -> Part:
    own, name = part.campaign, f"{part.name}-mixed"
    attacks = tuple(
        f"{one},{_MIXED}" if one.partition(":")[0] in _CAN_BE_MIXED else one for one in own.attacks
    )
    train = replace(own.train, mixed_precision=True)
    return replace(
        part,
        campaign=replace(own, name=name, attacks=attacks, train=train),
        vertical=tuple(
            replace(run, name=name, train=f"{run.train},{_MIXED}") for run in part.vertical
        ),
    )


def _paper(images: Path | None) -> Scale:
    main = [_paper_part(one, MAIN_ATTACK.text, 1, one.title) for one in DATA_SETS]
    others = [
        _paper_part(DATA_SETS[0], one.text, 2, one.title)
        for one in OTHER_ATTACKS
        if one.title != VERTICAL
    ]
    first = main[0].campaign.train
    learning = (
        f"epochs={first.epochs},batch_size={first.batch_size},lr={LR},loss_scale={LOSS_SCALE}"
    )
    cafe = next(one.text for one in OTHER_ATTACKS if one.title == VERTICAL)
    parts = (*main, others[0], _vertical(main[0], cafe, learning, batch=40), *others[1:])
    return Scale(
        name="paper",
        parts=_all_with_folder(parts, images),
        semsim=PRESETS["paper"],
        jury_epochs=10,
        figures=(("budget", (50, 100, 200, 300, 400)), ("backbone", ()), ("loss", ()), _MARGINS),
    )


_MARGINS: tuple[str, tuple[object, ...]] = ("margin", (0.1, 0.5, 1.0, 2.0, 5.0))


def _paper_part(one: DataSet, attack: str, table: int, row: str) -> Part:
    train = TargetTraining(
        epochs=one.epochs, batch_size=one.batch_size, lr=LR, loss_scale=LOSS_SCALE
    )
    campaign = Campaign(
        name=f"semsim-paper-{_slug(row)}",
        datasets=(one.dataset,),
        architectures=one.architectures,
        strategies=_OURS,
        attacks=(attack,),
        images=one.images,
        train=train,
    )
    return Part(
        table=table,
        row=row,
        task=one.task,
        campaign=campaign,
        classes=one.classes,
        pixels=one.pixels,
    )


# Simulated voters learn more pictures than the targets, drawn for them alone; of digits there are
# no more. No attacked picture is among them, but of faces there are only changed copies of those.
_JURY_DATA = {
    "symbols:train_per_class=60": "symbols:train_per_class=75,test_per_class=1,seed=7",
    "faces": "faces:train_per_face=50,seed=7",
}
# Built-in data in place of the paper's: text, task, classes, pixels.
_BUILT_IN = {
    "CIFAR-100": ("symbols:train_per_class=60", "recognition", 47, 32),
    "Caltech-101": ("digits:size=32", "recognition", 10, 32),
    "CelebA": ("faces", "pair", 100, 25),
}
_SMALL_ATTACKS = {"DLG": "dlg:fast", "GradAttack": "gradattack:fast"}


def _small(images: Path | None) -> Scale:
    campaign = replace(
        DEMO_GRID, strategies=_OURS, attacks=("invgrad:fast",), images=12, together=12
    )
    parts = _built_in_parts("small", campaign, _BUILT_IN, _SMALL_ATTACKS)
    cafe = _vertical(parts[0], "cafe:fast", "epochs=20,lr=0.01", batch=4)
    return Scale(
        name="small",
        parts=_all_with_folder((*parts, cafe), images),
        semsim=PRESETS["small"],
        jury_epochs=10,
        figures=(("budget", ()), ("backbone", ("lenet", "resnet18")), ("loss", ()), _MARGINS),
        jury_data=_JURY_DATA,
    )


def _smoke(images: Path | None) -> Scale:
    """Targets that have hardly learned give their pictures away; noise keeps some."""
    campaign = Campaign(
        name="semsim-smoke",
        architectures=("cnn4:width=8,activation=tanh", "cnn4:width=12,activation=tanh"),
        strategies=("none", "gradient-noise:std=0.3,apply_at=attack"),
        attacks=("invgrad:fast,steps=150",),
        images=4,
        train=TargetTraining(epochs=1, lr=0.01),
    )
    data = {
        "CIFAR-100": ("digits:size=16,count=400", "recognition", 10, 16),
        "CelebA": ("faces:people=8,train_per_face=12", "pair", 8, 25),
    }
    attacks = {"DLG": "dlg:fast,steps=1", "GradAttack": "gradattack:fast,steps=20"}
    parts = _built_in_parts("smoke", campaign, data, attacks)
    cafe = _vertical(parts[0], "cafe:fast,steps=60", "epochs=1,lr=0.01", batch=2)
    return Scale(
        name="smoke",
        parts=_all_with_folder((*parts, cafe), images),
        semsim=replace(
            PRESETS["small"], backbone="lenet", epochs=1, batch_size=8, triplets_per_original=2
        ),
        jury_epochs=6,
        figures=(
            ("budget", ()),
            ("backbone", ("lenet", "resnet18")),
            ("loss", ()),
            ("margin", (0.5, 1.0)),
        ),
        jury_data={
            "digits:size=16,count=400": "digits:size=16",
            "faces:people=8,train_per_face=12": "faces:people=8,train_per_face=40,seed=7",
        },
    )


_SCALES = {"smoke": _smoke, "small": _small, "paper": _paper}


def _built_in_parts(
    scale: str,
    campaign: Campaign,
    data: dict[str, tuple[str, str, int, int]],
    attacks: dict[str, str],
) -> tuple[Part, ...]:
    """A part a data set under the attack of `campaign`, and one an attack on the first of them."""
    first = next(iter(data))
    asked: Sequence[tuple[int, str, str, tuple[str, ...]]] = [
        *((1, row, row, campaign.attacks) for row in data),
        *((2, row, first, (text,)) for row, text in attacks.items()),
    ]
    parts = []
    for table, row, source, attack in asked:
        text, task, classes, pixels = data[source]
        name = f"semsim-{scale}-{_slug(row)}"
        own = replace(campaign, name=name, datasets=(text,), attacks=attack)
        part = Part(
            table=table,
            row=row,
            task=task,
            campaign=own,
            classes=classes,
            pixels=pixels,
        )
        parts.append(part)
    return tuple(parts)


def _all_with_folder(parts: Sequence[Part], images: Path | None) -> tuple[Part, ...]:
    """The parts; a folder of class folders in place of the first one's data set, if any."""
    (replaced,) = parts[0].campaign.datasets
    return tuple(_with_folder(part, images, replaced) for part in parts)


def _vertical(like: Part, attack: str, train: str, batch: int) -> Part:
    """CAFE on as many vertical targets as `like` has, on its data set and images."""
    name = f"{like.name.removesuffix(_slug(like.row))}{_slug(VERTICAL)}"
    (dataset,) = like.campaign.datasets
    runs = tuple(
        VerticalRun(
            name=name,
            dataset=dataset,
            attack=attack,
            images=like.campaign.images,
            batch=batch,
            strategy=strategy,
            train=train,
            width=width,
            hidden=hidden,
        )
        for width, hidden in _QUARTERED
        for strategy in like.campaign.strategies
    )
    networks = tuple(f"quartered:width={width},hidden={hidden}" for width, hidden in _QUARTERED)
    campaign = replace(like.campaign, name=name, architectures=networks, attacks=(attack,))
    return replace(like, table=2, row=VERTICAL, campaign=campaign, vertical=runs)


def _with_folder(part: Part, images: Path | None, replaced: str) -> Part:
    """The same on a folder of class folders, where it is of the data set `replaced`."""
    if images is None or part.campaign.datasets != (replaced,):
        return part
    text = f"folder:root={images.resolve()},size={part.pixels}"
    name = f"{part.campaign.name}-folder"
    return replace(
        part,
        campaign=replace(part.campaign, datasets=(text,), name=name),
        vertical=tuple(replace(run, dataset=text, name=name) for run in part.vertical),
    )


def _slug(title: str) -> str:
    return title.lower().replace(" ", "-")
