"""A figure of the originals beside what comes back behind every defence of an experiment."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from semsim.base.sets.reader import ReconstructionSet, read_set
from semsim.images import read_images
from semsim.reporting.canvas import Drawn
from semsim.reporting.picture_grids import Row, defence_figure
from semsim.systems.split.summary import choices

_SHOWN = 8  # images of a system under an attack
_BLOCKS = {"": "the published attack", "-aligned": "the aligned attack"}  # end of an arm → words


class Wanted(NamedTuple):
    """A row of the figure: its title, and which defence, published attack and choice it shows."""

    title: str
    defence: str
    attack: str
    choice: str


def pictures(
    outcome: Mapping[str, Any], wanted: Sequence[Wanted], title: str, number: int
) -> Drawn | None:
    """The figure of a finished experiment's first network and seeds; None where nothing is kept.

    outcome: of `run_split`. number: of the paper's figure.
    """
    plan = outcome["plan"]
    rows = pd.DataFrame(outcome["rows"])
    first = {"network": plan["networks"][0]}
    first |= {f"{name}_seed": plan[f"{name}_seeds"][0] for name in ("defence", "attack")}
    for name, value in first.items():
        rows = rows[rows[name] == value]
    chosen = choices(rows)
    sets = {(one.model, one.run["attack"]["name"]): one for one in map(_read, outcome["sets"])}
    drawn = [_row(one, chosen, sets) for one in wanted]
    if not sets or not any(row.images for row in drawn):
        return None
    originals = read_images(next(iter(sets.values())).pairs["original"].tolist()[:_SHOWN])
    return defence_figure([row for row in drawn if row.images], originals, title, number)


def _read(folder: str) -> ReconstructionSet:
    return read_set(Path(folder))


def _row(
    wanted: Wanted,
    chosen: pd.DataFrame,
    sets: Mapping[tuple[str, str], ReconstructionSet],
) -> Row:
    images, ssim, psnr = {}, {}, {}
    mine = chosen[
        (chosen["defence"].str.partition(":")[0] == wanted.defence)
        & (chosen["choice"] == wanted.choice)
    ]
    for end, words in _BLOCKS.items():
        for one in mine[mine["attack"] == f"{wanted.attack}{end}"].head(1).to_dict("records"):
            body = f"-body{one['body']:.0f}" if one["body"] >= 0 else ""
            model = f"{one['network']}/{one['defence']}/seed {one['defence_seed']:.0f}"
            kept = sets.get((model, f"{one['attack']}{body}"))
            if kept is None:
                continue
            images[words] = read_images(kept.pairs["reconstruction"].tolist()[:_SHOWN])
            ssim[words], psnr[words] = (_number(one[name]) for name in ("ssim", "psnr"))
    return Row(title=wanted.title, images=images, ssim=ssim, psnr=psnr)


def _number(value: Any) -> float:
    return float("nan") if pd.isna(value) else float(value)
