"""The SemSim paper's setup and printed results, and the campaigns of `reproduce semsim`.

Sun et al. 2023, arXiv:2309.13038. Where the paper is silent the number is of its authors' released
code, and said to be. A campaign a study, and SemSim's training; its parts are listed for people,
and counted with what of them is done.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from semsim.attacks import VERTICAL_ATTACKS
from semsim.attacks.as_text import read_vertical
from semsim.base.cli.terminal import text_table
from semsim.base.jobs.orders import changed
from semsim.base.registry import build
from semsim.base.storage.places import toml_of
from semsim.campaign.plan import DEMO_GRID, Campaign
from semsim.campaign.vertical import VerticalRun, vertical_folder, vertical_memory
from semsim.learning import PRESETS, TrainSettings
from semsim.papers.engine import DECLARED, Work, campaign_works, of_preset, plans_here
from semsim.targets.train_settings import TrainSettings as TargetTraining
from semsim.targets.train_settings import read_training

METRICS = ("PSNR", "MSE", "SSIM", "LPIPS", "FID", "SemSim")  # the columns of Tables 1 and 2
VOTES_PER_IMAGE = 5


class DataSet(NamedTuple):
    """One of the five data sets, and the targets trained on it.

    Attributes:
        title: As the paper has it.
        dataset: As in `semsim.datasets`.
        classes, pixels: Of the code.
        images: Annotated for each target.
        task: What people were asked.
        architectures: The two of Table 3.
        epochs, batch_size: Of the code, which names no epochs for Imagenette.
    """

    title: str
    dataset: str
    classes: int
    pixels: int
    images: int
    task: str
    architectures: tuple[str, str]
    epochs: int
    batch_size: int


_NAMED, _PAIRED = "recognition", "pair"
_SMALL, _LARGE = ("resnet20-4", "densenet40"), ("resnet50", "resnet152")
_TINY = ("resnet20-4", "convnet8")
DATA_SETS: tuple[DataSet, ...] = (
    DataSet("CIFAR-100", "cifar100", 100, 32, 600, _NAMED, _TINY, 200, 64),
    DataSet("Caltech-101", "caltech101", 101, 64, 700, _NAMED, _SMALL, 100, 64),
    DataSet("Imagenette", "imagenette", 10, 112, 100, _NAMED, _LARGE, 100, 8),
    DataSet("CelebA", "celeba", 476, 64, 100, _PAIRED, _SMALL, 100, 64),
    DataSet("Stanford Dogs", "stanford-dogs", 120, 64, 100, _PAIRED, _LARGE, 100, 16),
)
LR, LOSS_SCALE = 0.1, 0.5  # Appendix C; the code halves the loss

# Table 3, column by column: its words, what we train, and what the authors' code trains instead.
STRATEGIES: tuple[tuple[str, str, str], ...] = (
    ("vanilla", "none", "none"),
    ("RandomResizedCrop & RandomHorizontalFlip", "resized-crop-flip", "crop-flip"),
    ("TranslateX & Invert & TranslateY", "3-1-7", "3-1-7-code"),
    ("TranslateY & Autocontrast & Autocontrast", "43-18-18", "43-18-18-code"),
    ("[7], Gao et al. 2021", "hybrid", "hybrid-code"),
    ("Gaussian (10⁻³)", "noise", "noise-code"),
    ("Pruning (70 %)", "pruning", "pruning-code"),
)


class PaperAttack(NamedTuple):
    """One of the four attacks.

    Attributes:
        text: As in `semsim.attacks`.
        source: Of its settings.
    """

    title: str
    text: str
    source: str


# The first attacks every data set, the others CIFAR-100. The paper states no setting of any.
MAIN_ATTACK = PaperAttack(
    "InvGrad", "invgrad:code", "the SemSim authors' code: 8000 steps, TV 1e-4"
)
OTHER_ATTACKS: tuple[PaperAttack, ...] = (
    PaperAttack(
        "DLG", "dlg:paper", "DLG's own paper: 1200 calls of L-BFGS, image and label together"
    ),
    PaperAttack("CAFE", "cafe:paper", "CAFE's code: 20,000 steps; vertical federated learning"),
    PaperAttack(
        "GradAttack", "gradattack:paper", "GradAttack's examples: 10,000 steps, label known"
    ),
)


_PRINTED = toml_of("semsim.papers", "printed.toml")["semsim"]
# |ρ| and |τ| of each of `METRICS` over 14 targets, by table, row and sign. Table 2 is on CIFAR-100.
PRINTED: Mapping[tuple[int, str, str], tuple[float, ...]] = {
    (table, row, sign): tuple(cells) for table, row, sign, *cells in _PRINTED["printed"]
}
# What the text says of figures whose points it does not print.
SAID: Mapping[str, str] = _PRINTED["said"]


_OURS = tuple(ours for _, ours, _ in STRATEGIES)
VERTICAL = "CAFE"
_GIGABYTE = 1e9
# Vertical federated learning has networks of its own: two widths of one, where the paper is silent.
_QUARTERED = ((8, 64), (12, 96))  # channels of a participant, outputs of the joining layer


@dataclass(frozen=True, kw_only=True)
class Part:
    """One study: 14 targets on a data set under one attack.

    Attributes:
        table: The paper's table it is a row of.
        row: Which one it stands in for.
        task: What people are asked.
        pixels: Of the data set.
        vertical: A run a target, where the attack is on vertical federated learning; the campaign
            then only says what of.
    """

    table: int
    row: str
    task: str
    campaign: Campaign
    pixels: int
    vertical: tuple[VerticalRun, ...] = ()

    @property
    def name(self) -> str:
        """Of its campaign, its study and its files."""
        return self.campaign.name


@dataclass(frozen=True, kw_only=True)
class StudiesScale:
    """Scope of a run. The first part stands in for CIFAR-100, on which Table 2 and figures are.

    Attributes:
        semsim: How SemSim is trained.
        jury_epochs: Of simulated voters, in tenths of the usual.
        figures: `semsim.learning.ablations.STUDIES` with the values each takes; none for the usual.
        jury_data: What simulated voters learn, by the data set they vote on; without, the same.
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


def scale_of(name: str, images: Path | None = None) -> StudiesScale:
    """The scale called smoke, small or paper.

    Args:
        images: Class folders in place of the first data set.

    Raises:
        SettingsError: For another name.
    """
    scale = of_preset(_SCALES, name)()
    if images is None:
        return scale
    first = scale.parts[0].campaign.datasets
    parts = (
        _with_folder(one, images) if one.campaign.datasets == first else one for one in scale.parts
    )
    return replace(scale, parts=tuple(parts))


def in_mixed_precision(scale: StudiesScale) -> StudiesScale:
    """The same with bfloat16 in trainings and in the attacks that can have it, under other names.

    Each checks what that changes: see `semsim.targets.mixed_precision` and
    `semsim.attacks.descent.first_order`.
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


def _paper() -> StudiesScale:
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
    return StudiesScale(
        name="paper",
        parts=parts,
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
    return Part(table=table, row=row, task=one.task, campaign=campaign, pixels=one.pixels)


def _built_in(name: str) -> StudiesScale:
    """A scale on built-in data: a part a data set, one an attack on the first, and CAFE."""
    told = DECLARED["semsim"][name]
    usual = changed(replace(DEMO_GRID, strategies=_OURS), told["campaign"])
    first = next(iter(told["data"]))
    asked = [
        *((1, row, row, usual.attacks) for row in told["data"]),
        *((2, row, first, (text,)) for row, text in told["attacks"].items()),
    ]
    parts = []
    for table, row, source, attacks in asked:
        text, task, pixels = told["data"][source]
        called = f"semsim-{name}-{_slug(row)}"
        own = replace(usual, name=called, datasets=(text,), attacks=attacks)
        parts.append(Part(table=table, row=row, task=task, campaign=own, pixels=pixels))
    return StudiesScale(
        name=name,
        parts=(*parts, _vertical(parts[0], *told["cafe"])),
        semsim=replace(PRESETS["small"], **told.get("semsim", {})),
        jury_epochs=told["jury_epochs"],
        figures=tuple((what, tuple(values)) for what, values in told["figures"].items()),
        jury_data=told["jury_data"],
    )


_SCALES: dict[str, Callable[[], StudiesScale]] = {
    "smoke": partial(_built_in, "smoke"),
    "small": partial(_built_in, "small"),
    "paper": _paper,
}


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


def _with_folder(part: Part, images: Path) -> Part:
    """The same on a folder of class folders."""
    text = f"folder:root={images.resolve()},size={part.pixels}"
    name = f"{part.campaign.name}-folder"
    return replace(
        part,
        campaign=replace(part.campaign, datasets=(text,), name=name),
        vertical=tuple(replace(run, dataset=text, name=name) for run in part.vertical),
    )


def _slug(title: str) -> str:
    return title.lower().replace(" ", "-")


def plan_rows(scale: StudiesScale) -> list[dict[str, Any]]:
    """Return what is computed at a scale, a row a study."""
    rows: list[dict[str, Any]] = []
    for part in scale.parts:
        asked = part.campaign
        targets = len(asked.architectures) * len(asked.strategies)
        images = targets * asked.images
        facts = {"table": part.table, "row": part.row, "data": asked.datasets[0], "task": part.task}
        counts = {"targets": targets, "images": images, "votes": VOTES_PER_IMAGE * images}
        rows.append({**facts, "attack": asked.attacks[0], **counts})
    return rows


def plan_text(scale: StudiesScale) -> str:
    """Return what is computed at a scale, a line a study, and what of the paper is not."""
    rows = [
        [
            *(f"{row['table']}: {row['row']}", row["data"], row["task"], row["attack"]),
            *(str(row["targets"]), f"{row['images']:,}", f"{row['votes']:,}"),
        ]
        for row in plan_rows(scale)
    ]
    head = ["table: row", "data", "people are asked", "attack", "targets", "images", "votes"]
    distinct = {
        (part.campaign.datasets, network, strategy)
        for part in scale.parts
        for network in part.campaign.architectures
        for strategy in part.campaign.strategies
    }
    lines = [f"Scale {scale.name}: {len(distinct)} targets.", text_table(head, rows)]
    if scale.absent:
        lines.append(f"Not run at this scale: {', '.join(scale.absent)}.")
    memory = [
        vertical_memory(run, (part.pixels, part.pixels))
        for part in scale.parts
        for run in part.vertical
    ]
    if (most := max(memory, default=0)) > _GIGABYTE:
        lines.append(f"CAFE's equations need up to {most / _GIGABYTE:.0f} GB of memory a worker.")
    return "\n".join(lines)


def works_of(scale: StudiesScale, data: Path, *, known: bool = True) -> list[Work]:
    """Return the trainings and attacks of a scale.

    Args:
        known: Whether to look what is done below `data`, which reads the pictures that are here.
    """
    usual = [(part.row, part.campaign) for part in scale.parts if not part.vertical]
    plans = plans_here(campaign for _, campaign in usual) if known else ()
    vertical = [one for part in scale.parts if part.vertical for one in _vertical_works(part, data)]
    return [*campaign_works(usual, plans, data), *vertical]


def _vertical_works(part: Part, data: Path) -> Sequence[Work]:
    """Return CAFE's trainings, one a target, and its attacks, each on all pictures at once."""
    runs, there = part.vertical, sum(vertical_folder(run, data).exists() for run in part.vertical)
    attacks = [read_vertical(run.attack) for run in runs]
    steps = sum(build(VERTICAL_ATTACKS, one.name, one.settings).steps for one in attacks)
    epochs = sum(read_training(run.train, TargetTraining(), "--seed").epochs for run in runs)
    (dataset,) = part.campaign.datasets
    pictures = part.campaign.images
    return (
        Work(part=dataset, what="train quartered", cells=len(runs), done=there, steps=epochs),
        Work(
            part=part.row,
            what=f"attack {runs[0].attack}",
            cells=len(runs) * pictures,
            done=there * pictures,
            steps=steps * pictures,
        ),
    )
