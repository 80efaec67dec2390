"""List the parts of a reproduction of the SemSim paper."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from semsim.attacks import VERTICAL_ATTACKS
from semsim.attacks.as_text import read_vertical
from semsim.campaign.vertical import VerticalRun, vertical_folder, vertical_memory
from semsim.registry import build
from semsim.reproduce.plans import Work, campaign_works, plans_here
from semsim.reproduce.semsim_paper import VOTES_PER_IMAGE
from semsim.reproduce.semsim_scales import Part, Scale
from semsim.targets.train_settings import TrainSettings, read_training
from semsim.terminal import text_table

_GIGABYTE = 1e9


def plan_rows(scale: Scale) -> list[dict[str, Any]]:
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


def plan_text(scale: Scale) -> str:
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


def works_of(scale: Scale, data: Path, *, known: bool = True) -> list[Work]:
    """Return the trainings and attacks of a scale.

    known: whether to look what is done below `data`, which reads the pictures that are here.
    """
    usual = [(part.row, part.campaign) for part in scale.parts if not part.vertical]
    plans = plans_here(campaign for _, campaign in usual) if known else ()
    vertical = [one for part in scale.parts if part.vertical for one in _vertical(part, data)]
    return [*campaign_works(usual, plans, data), *vertical]


def _vertical(part: Part, data: Path) -> Sequence[Work]:
    """Return CAFE's trainings, one a target, and its attacks, each on all pictures at once."""
    runs, there = part.vertical, sum(vertical_folder(run, data).exists() for run in part.vertical)
    steps = sum(_cafe_steps(run) for run in runs)
    epochs = sum(read_training(run.train, TrainSettings(), "--seed").epochs for run in runs)
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


def _cafe_steps(run: VerticalRun) -> int:
    plugin = read_vertical(run.attack)
    return int(build(VERTICAL_ATTACKS, plugin.name, plugin.settings).steps)
