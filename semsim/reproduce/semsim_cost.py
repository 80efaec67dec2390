"""What a reproduction of the SemSim paper is made of, and what it takes on this machine."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from semsim.campaign.costs import probe_key
from semsim.campaign.plan import Plan, PlannedSet, make_plan
from semsim.campaign.probe import Estimate, Load, cost_of, measure, picture_bytes, probed
from semsim.campaign.vertical import (
    VerticalRun,
    vertical_attack_seconds,
    vertical_memory,
    vertical_training_seconds,
)
from semsim.device import one_thread
from semsim.progress import Progress, Report, silent
from semsim.reproduce.plans import Share
from semsim.reproduce.semsim_paper import VOTES_PER_IMAGE
from semsim.reproduce.semsim_scales import Part, Scale
from semsim.reproduce.stand_in import noise
from semsim.terminal import text_table
from semsim.types import LabelledImages

NOT_COUNTED = (
    "Measured on noise, CAFE on a few images, equations scaled to all. Not in it: programs that "
    "vote, metrics, and SemSim's own trainings, one a data set and one a point of Figures 7 and 9."
)
NOT_ON_GPU = "CAFE is computed on the CPU, and not among the GPU-hours."
_GIGABYTE = 1e9
_PROBED = 4  # batches of noise: what a step takes does not depend on what pictures show


def plan_rows(scale: Scale) -> list[dict[str, Any]]:
    """What is computed at a scale, a row a study."""
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
    """What is computed at a scale, a line a study, and what of the paper is not among it."""
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


def costs_of(
    scale: Scale, folder: Path, report: Report = silent, device: str = "cpu"
) -> tuple[list[Share], int]:
    """Where the time of a scale goes and bytes of disk, probed on noise of the data sets' sizes.

    folder: keeps what was measured, so that a second time takes none. No data set is needed.
    device: where it is computed; CAFE is on the CPU alone, and not among the shares of another.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shares: list[Share] = []
    disk = 0
    for number, part in enumerate(scale.parts):
        report(Progress(number, len(scale.parts), f"probing {part.row}"))
        if part.vertical:
            shares += vertical_shares(part, folder) if device == "cpu" else []
            disk += picture_bytes(3 * part.pixels**2) * part.campaign.images * len(part.vertical)
            continue
        plan = noise_plan(part)
        estimate = measure(plan, folder, _loading(part), device=device)
        shares += shares_of(part, plan, estimate)
        disk += cost_of(plan, estimate).disk
    report(Progress(len(scale.parts), len(scale.parts), "probed"))
    return shares, disk


def vertical_shares(part: Part, folder: Path) -> list[Share]:
    """Where the time of CAFE's part goes: one network of each width is probed.

    folder: as of `costs_of`.
    """
    training = attack = 0.0
    for run in part.vertical:
        train_key, attack_key = vertical_keys(part, run)
        learned = part_noise(part, "train")
        with one_thread():
            few = probed(folder, train_key, partial(vertical_training_seconds, run, learned))
            training += few * part.training / len(learned)
            attacked = partial(vertical_attack_seconds, run, part_noise(part, "test"))
            attack += probed(folder, attack_key, attacked)
    runs = len(part.vertical)
    return [
        _share(part, "train quartered", runs, training),
        _share(part, "attack quartered", runs * part.campaign.images, attack),
    ]


def vertical_keys(part: Part, run: VerticalRun) -> tuple[str, str]:
    """Of the probes of a run: its training on noise, and its whole attack.

    Those that differ in strategy take as long.
    """
    asked = replace(run, name="any", dataset="noise", strategy="none")
    facts = asked, part.pixels, part.classes
    kinds = "CPU of vertical training", "CPU of a whole vertical attack"
    train, attack = (probe_key(kind, *facts) for kind in kinds)
    return train, attack


def _loading(part: Part) -> Load:
    return lambda dataset, split: part_noise(part, split)


def part_noise(part: Part, split: str) -> LabelledImages:
    """Noise with the sizes of a part's data set: all attacked images, a few batches to learn."""
    train = part.campaign.train
    count = part.campaign.images if split == "test" else _PROBED * train.batch_size
    return noise(part.row, split, count, part.classes, part.pixels)


def noise_plan(part: Part) -> Plan:
    """The plan of a part on noise."""
    return make_plan(part.campaign, dict.fromkeys(part.campaign.datasets, part_noise(part, "test")))


def shares_of(part: Part, plan: Plan, estimate: Estimate) -> list[Share]:
    """Where the time of a part goes: trainings and attacks, by architecture.

    A part of Table 2 attacks the targets of Table 1, so that none is trained for it.
    """
    found = []
    for network in dict.fromkeys(one.plan.architecture.name for one in plan.targets):
        targets = [one for one in plan.targets if one.plan.architecture.name == network]
        sets = [one for one in plan.sets if one.target in targets]
        if part.table == 1:
            probed = _PROBED * part.campaign.train.batch_size
            seconds = sum(map(estimate.training, targets)) * part.training / probed
            found.append(_share(part, f"train {network}", len(targets), seconds))
        found.append(_share(part, f"attack {network}", _images(sets), _attack(sets, estimate)))
    return found


def _share(part: Part, what: str, count: int, seconds: float) -> Share:
    return Share(part=part.row, what=what, count=count, seconds=seconds)


def _images(sets: Sequence[PlannedSet]) -> int:
    return sum(len(one.cells) for one in sets)


def _attack(sets: Sequence[PlannedSet], estimate: Estimate) -> float:
    return sum(estimate.image(one) * len(one.cells) for one in sets)
