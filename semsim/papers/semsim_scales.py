"""The SemSim paper's setup and printed results, and the campaigns of `reproduce semsim`.

Sun et al. 2023, arXiv:2309.13038. Where the paper is silent the number is of its authors' released
code, and said to be. A campaign a study, and SemSim's training; its parts are listed for people,
and counted with what of them is done.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from semsim.attacks import VERTICAL_ATTACKS
from semsim.attacks.as_text import read_vertical
from semsim.base.jobs.orders import changed
from semsim.base.registry import built
from semsim.campaign.plan import DEMO_GRID, Campaign
from semsim.campaign.vertical import VerticalRun, vertical_folder, vertical_memory
from semsim.learning import PRESETS, TrainSettings
from semsim.papers.engine import (
    DECLARED,
    Columns,
    Work,
    campaign_works,
    column,
    of_preset,
    plans_here,
    text_of,
)
from semsim.papers.engine import (
    PRINTED as _PRINTED,
)
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
    architectures: Sequence[str]
    epochs: int
    batch_size: int

    @property
    def campaign(self) -> dict[str, Any]:
        """Settings that differ between campaigns on the data sets."""
        train = {"epochs": self.epochs, "batch_size": self.batch_size}
        return {"architectures": self.architectures, "images": self.images, "train": train}


DATA_SETS = tuple(DataSet(*one) for one in _PRINTED["semsim"]["data_sets"])
# Table 3, column by column: its words, what we train, and what the authors' code trains instead.
STRATEGIES = tuple(map(tuple, _PRINTED["semsim"]["strategies"]))
# |ρ| and |τ| of each of `METRICS` over 14 targets, by table, row and sign. Table 2 is on CIFAR-100.
PRINTED: Mapping[tuple[int, str, str], tuple[float, ...]] = {
    (table, row, sign): tuple(cells) for table, row, sign, *cells in _PRINTED["semsim"]["printed"]
}
# What the text says of figures whose points it does not print.
SAID: Mapping[str, str] = _PRINTED["semsim"]["said"]
VERTICAL = "CAFE"
_GIGABYTE = 1e9
# Vertical federated learning has networks of its own: two widths of one, where the paper is silent.
_QUARTERED = ((8, 64), (12, 96))  # channels of a participant, outputs of the joining layer


@dataclass(frozen=True, kw_only=True)
class StudyPart:
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
    parts: tuple[StudyPart, ...]
    semsim: TrainSettings
    jury_epochs: int
    figures: tuple[tuple[str, tuple[object, ...]], ...]
    jury_data: Mapping[str, str] = field(default_factory=dict)

    def of_table(self, number: int) -> tuple[StudyPart, ...]:
        """The parts that are rows of Table 1 or 2."""
        return tuple(part for part in self.parts if part.table == number)

    @property
    def absent(self) -> tuple[str, ...]:
        """Rows of the paper's tables that no part stands in for."""
        there = {part.row for part in self.parts}
        return tuple(dict.fromkeys(row for _, row, _ in PRINTED if row not in there))


def scale_of(name: str, images: Path | None = None) -> StudiesScale:
    """The scale called smoke, small or paper.

    Args:
        images: Class folders in place of the first data set.

    Raises:
        SettingsError: For another name.
    """
    told = of_preset(DECLARED["semsim"], name)
    data = told.get("data") or {
        one.title: [one.dataset, one.task, one.pixels, one.campaign] for one in DATA_SETS
    }
    usual = replace(DEMO_GRID, strategies=tuple(ours for _, ours, _ in STRATEGIES))
    usual, first = changed(usual, told["campaign"]), next(iter(data))
    parts = []
    for table, row, source, attack in (
        *((1, row, row, usual.attacks[0]) for row in data),
        *((2, row, first, text) for row, text in told["attacks"].items()),
    ):
        text, task, pixels, *own = data[source]
        called = f"semsim-{name}-{row.lower().replace(' ', '-')}"
        campaign = changed(usual, own[0] if own else {})
        campaign = replace(campaign, name=called, datasets=(text,), attacks=(attack,))
        part = StudyPart(table=table, row=row, task=task, campaign=campaign, pixels=pixels)
        parts.append(_vertical(part, *told["cafe"]) if row == VERTICAL else part)
    return StudiesScale(
        name=name,
        parts=tuple(parts if images is None else _on_folder(parts, images)),
        semsim=replace(PRESETS[told["trained"]], **told.get("semsim", {})),
        jury_epochs=told["jury_epochs"],
        figures=tuple((what, tuple(values)) for what, values in told["figures"].items()),
        jury_data=told.get("jury_data", {}),
    )


def _vertical(part: StudyPart, train: str, batch: int) -> StudyPart:
    """CAFE on as many vertical targets as others have."""
    asked = part.campaign
    runs = tuple(
        VerticalRun(
            name=part.name,
            dataset=asked.datasets[0],
            attack=asked.attacks[0],
            images=asked.images,
            batch=batch,
            strategy=strategy,
            train=train,
            width=width,
            hidden=hidden,
        )
        for width, hidden in _QUARTERED
        for strategy in asked.strategies
    )
    networks = tuple(f"quartered:width={width},hidden={hidden}" for width, hidden in _QUARTERED)
    return replace(part, campaign=replace(asked, architectures=networks), vertical=runs)


def _on_folder(parts: Sequence[StudyPart], images: Path) -> list[StudyPart]:
    """The same, those on the first data set on class folders."""
    first = parts[0].campaign.datasets
    text = f"folder:root={images.resolve()},size={parts[0].pixels}"
    return [
        _renamed(one, "folder", {"datasets": (text,)}, {"dataset": text})
        if one.campaign.datasets == first
        else one
        for one in parts
    ]


def _renamed(
    part: StudyPart, end: str, own: Mapping[str, Any], runs: Mapping[str, Any]
) -> StudyPart:
    """The same under another name, with changes of its campaign and of its vertical runs."""
    name = f"{part.name}-{end}"
    return replace(
        part,
        campaign=replace(part.campaign, name=name, **own),
        vertical=tuple(replace(run, name=name, **runs) for run in part.vertical),
    )


_MIXED = "mixed_precision=true"
_CAN_BE_MIXED = ("invgrad", "gradattack")


def in_mixed_precision(scale: StudiesScale) -> StudiesScale:
    """The same with bfloat16 in trainings and in the attacks that can have it, under other names.

    Each checks what that changes: see `semsim.targets.mixed_precision` and
    `semsim.attacks.descent.first_order`.
    """
    parts = []
    for part in scale.parts:
        attacks = tuple(
            f"{one},{_MIXED}" if one.partition(":")[0] in _CAN_BE_MIXED else one
            for one in part.campaign.attacks
        )
        train = replace(part.campaign.train, mixed_precision=True)
        runs = {"train": f"{part.vertical[0].train},{_MIXED}"} if part.vertical else {}
        parts.append(_renamed(part, "mixed", {"attacks": attacks, "train": train}, runs))
    return replace(scale, parts=tuple(parts))


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


_PLANNED: Columns = {
    "table: row": lambda row: f"{row['table']}: {row['row']}",
    "data": column("data"),
    "people are asked": column("task"),
    "attack": column("attack"),
    "targets": column("targets"),
    "images": column("images", ","),
    "votes": column("votes", ","),
}


def plan_text(scale: StudiesScale) -> str:
    """Return what is computed at a scale, a line a study, and what of the paper is not."""
    distinct = {
        (part.campaign.datasets, network, strategy)
        for part in scale.parts
        for network in part.campaign.architectures
        for strategy in part.campaign.strategies
    }
    lines = [f"Scale {scale.name}: {len(distinct)} targets.", text_of(_PLANNED, plan_rows(scale))]
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


def _vertical_works(part: StudyPart, data: Path) -> Sequence[Work]:
    """Return CAFE's trainings, one a target, and its attacks, each on all pictures at once."""
    runs, there = part.vertical, sum(vertical_folder(run, data).exists() for run in part.vertical)
    attacks = [read_vertical(run.attack) for run in runs]
    steps = sum(built(VERTICAL_ATTACKS, one).steps for one in attacks)
    epochs = sum(read_training(run.train, TargetTraining(), "--seed").epochs for run in runs)
    (dataset,) = part.campaign.datasets
    pictures = part.campaign.images
    cells, done, what = len(runs) * pictures, there * pictures, f"attack {runs[0].attack}"
    return (
        Work(dataset, "train quartered", len(runs), there, epochs),
        Work(part.row, what, cells, done, steps * pictures),
    )
