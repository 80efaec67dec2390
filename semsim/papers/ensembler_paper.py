"""The Ensembler paper as data: its tables, and what is run beside them at each preset."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from semsim.base.errors import SettingsError
from semsim.base.storage.places import toml_of
from semsim.papers.plans import of_preset
from semsim.systems.split.cuts import grid
from semsim.systems.split.plan import PRESETS, SplitPlan


class Way(NamedTuple):
    """Content of a row: a defence, an attack on it and the choice among several bodies."""

    defence: str
    attack: str
    choice: str = ""


class Cell(NamedTuple):
    """Values of the paper in a row. change: of accuracy, in points; psnr in dB."""

    change: float
    ssim: float
    psnr: float


class PaperTable(NamedTuple):
    """A table of the paper; all are of ResNet-18 with ten bodies, cut at h=1 and t=1.

    data: its images. figure: the paper's of what came back. selected: P. sent: shape of what the
    client sends. size: pixels a side of an image. cells: by the names of `ROWS`.
    """

    data: str
    figure: int
    selected: int
    sent: str
    size: int
    cells: Mapping[str, Cell]


# A row without a cell in any table is ours: the paper has no such row.
ROWS: Mapping[str, Way] = MappingProxyType(
    {
        "NONE": Way("none", "adaptive"),
        "Shredder": Way("shredder", "adaptive"),
        "Single": Way("single", "adaptive"),
        "DR-single": Way("dr-single", "adaptive"),
        "DR-ensemble (best SSIM)": Way("dr-ensemble", "one-body", "best SSIM"),
        "DR-ensemble (best PSNR)": Way("dr-ensemble", "one-body", "best PSNR"),
        "DR-ensemble, adaptive (all bodies)": Way("dr-ensemble", "adaptive"),
        "Random head": Way("random-head", "adaptive"),
        "Ensembler, adaptive": Way("ensembler", "adaptive"),
        "Ensembler, N=1 (best SSIM)": Way("ensembler", "one-body", "best SSIM"),
        "Ensembler, N=1 (best PSNR)": Way("ensembler", "one-body", "best PSNR"),
        "Ensembler, N=1 (attacker's choice)": Way("ensembler", "one-body", "attacker's choice"),
        "Ensembler, N=1 (mean of N)": Way("ensembler", "one-body", "mean of N"),
        "Ensembler, oracle that knows P": Way("ensembler", "oracle"),
    }
)
_PRINTED = toml_of("semsim.papers", "printed.toml")["ensembler"]
TABLES: Mapping[int, PaperTable] = MappingProxyType(
    {
        number: PaperTable(*facts, {row: Cell(*cell) for row, cell in _PRINTED[facts[0]].items()})
        for number, facts in enumerate(
            (
                ("CIFAR-10", 5, 4, "64×16×16", 32),
                ("CIFAR-100", 6, 3, "64×32×32", 32),
                ("CelebA-HQ", 7, 5, "64×64×64", 64),
            ),
            start=1,
        )
    }
)


_SMALL = PRESETS["small"]
_UNPOOLED = {"smoke": "small:width=2", "small": "small:width=16", "paper": "resnet18:width=64"}


def _defences(bodies: int, selected: int, *more: str) -> tuple[str, ...]:
    """Of Tables 2 and 3, with the system without a defence, which the paper leaves out there."""
    return ("none", "single", *more, f"ensembler:bodies={bodies},selected={selected}")


# Of a preset, what is not as in its Table 1. A random head costs nearly all accuracy. The 940
# pictures of Table 3 at small go in batches of 32: by 128 nothing has learned in as long.
_CHANGES: Mapping[tuple[int, str], Mapping[str, Any]] = MappingProxyType(
    {
        (2, "smoke"): {"defences": _defences(4, 3)},
        (2, "small"): {"defences": _defences(6, 3)},
        (2, "paper"): {"defences": _defences(10, 3), "dataset": "folder:root=cifar100"},
        (3, "smoke"): {
            "defences": _defences(6, 5, "random-head"),
            "dataset": "digits:size=32,count=45",
        },
        (3, "small"): {
            "defences": _defences(6, 5, "random-head"),
            "dataset": "symbols:size=64,train_per_class=20",
            "networks": ("small:width=8,pool=false",),
            "train": replace(
                _SMALL.train, epochs=24, ensemble_epochs=24, batch_size=32, ensemble_lr=1e-2
            ),
            "shadow": replace(_SMALL.shadow, batch_size=32),
            "defence_seeds": (0,),
            "attack_invalid": True,
        },
        (3, "paper"): {
            "defences": _defences(10, 5, "random-head"),
            "dataset": "folder:root=celeba-hq,size=64",
            "attack_invalid": True,
        },
    }
)

# Of a preset, what is otherwise in Table 1 on a network from which the published attack gets
# pictures where nothing defends it: VGG16 cut after one unit. All are trained long enough to learn.
_CUT = "h=1,t=1"
_VGG16: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "smoke": {"networks": (f"vgg16:width=2,{_CUT}",), "dataset": "digits:size=32,count=60"},
        "small": {
            "networks": (f"vgg16:width=8,{_CUT}",),
            "dataset": "symbols",
            "defences": (*_SMALL.defences[:-1], "ensembler:bodies=5,selected=4"),
            "train": replace(_SMALL.train, epochs=58),
            "defence_seeds": (0,),
        },
        "paper": {"networks": (f"vgg16:{_CUT}",)},
    }
)


class Sweep(NamedTuple):
    """A figure of split points: its images, its network, the first and the second cuts."""

    dataset: str
    network: str
    h: tuple[int, ...]
    t: tuple[int, ...]


_SWEEPS: Mapping[tuple[int, str], Sweep] = MappingProxyType(
    {
        (2, "smoke"): Sweep("digits:size=32,count=60", "vgg16:width=2", (1, 2), (1,)),
        (3, "smoke"): Sweep("digits:size=32,count=60", "resnet18:width=2", (1, 2), (1,)),
        (2, "small"): Sweep("symbols", "vgg16:width=8", (1, 2, 4, 6), (1, 2)),
        (3, "small"): Sweep("symbols", "resnet18:width=8", (1, 2, 3), (1, 2)),
        (2, "paper"): Sweep("folder:root=cifar10", "vgg16", (1, 2, 4, 6, 8, 10), (1, 2, 3)),
        (3, "paper"): Sweep("folder:root=cifar10", "resnet18", (1, 2, 3), (1, 2)),
    }
)
FIGURES = tuple(dict.fromkeys(number for number, _ in _SWEEPS))


def plan_of_table(number: int, preset: str, vgg16: bool = False) -> SplitPlan:
    """Return the plan run beside a table; raises `SettingsError` for an unknown table or preset.

    vgg16: Table 1 on a network from which the published attack gets pictures undefended.
    """
    plan = _known(number, TABLES, "table", preset)
    if vgg16:
        if number != 1:
            raise SettingsError(f"--vgg16 is of Table 1; got --table {number}.")
        return replace(plan, name=f"ensembler-{preset}-table1-vgg16", **_VGG16[preset])
    changes = dict(_CHANGES.get((number, preset), {}))
    if number > 1:
        changes.setdefault("networks", (f"{_UNPOOLED[preset]},pool=false",))
    return replace(plan, name=f"ensembler-{preset}-table{number}", **changes)


def plan_of_figure(number: int, preset: str) -> SplitPlan:
    """Return the plan run for a figure of split points; raises `SettingsError` as for a table."""
    plan, sweep = _known(number, FIGURES, "figure", preset), _SWEEPS[number, preset]
    return replace(
        plan,
        name=f"ensembler-{preset}-figure{number}",
        dataset=sweep.dataset,
        networks=tuple(grid(sweep.network, sweep.h, sweep.t)),
        defences=("none",),
        attacks=("adaptive", "adaptive-aligned"),
        defence_seeds=plan.defence_seeds[:1],
        attack_seeds=plan.attack_seeds[:1],
        attack_invalid=True,
    )


def _known(number: int, numbers: Collection[int], option: str, preset: str) -> SplitPlan:
    plan = of_preset(PRESETS, preset)
    if number not in numbers:
        known = ", ".join(map(str, numbers)) + (", 4" if option == "table" else "")
        raise SettingsError(f"--{option} is one of {known}; got {number}.")
    return plan
