"""Figures of an experiment in split inference: what leaks at each cut and behind each defence."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch import Tensor

from semsim.base.sets.reader import ReconstructionSet, read_set
from semsim.images import read_images
from semsim.reporting.canvas import Drawn
from semsim.reporting.export import write_both
from semsim.reporting.picture_grids import Cut, Row, cut_figure, defence_figure
from semsim.systems.split.plan import ARMS, make_network
from semsim.systems.split.summary import choices

_SIDE = 2  # pictures a side of what is shown of a set


def grid(network: str, h: Sequence[int], t: Sequence[int]) -> list[str]:
    """The network at every pair of cuts, as text; `SettingsError` for one that cannot be."""
    join = "," if ":" in network else ":"
    texts = [f"{network}{join}h={first},t={last}" for first in h for last in t]
    for text in texts:
        make_network(text)
    return texts


def cut_figures(outcome: Mapping[str, Any]) -> dict[str, Drawn]:
    """A figure for each attack of a finished sweep, by its name in the plan.

    Args:
        outcome: Of `run_split`, of the undefended network at several cuts. Of several seeds,
            pictures are of the first, and scores means over all.
    """
    scores = {(row["network"], row["attack"]): row for row in outcome["summary"]}
    found: dict[str, list[Cut]] = {}
    originals: Tensor | None = None
    for folder in outcome["sets"]:
        one = read_set(Path(folder))
        attack, text = str(one.run["attack"]["name"]), one.model.partition("/")[0]
        network, row = make_network(text), scores[text, attack]
        if any((cut.h, cut.t) == (network.h, network.t) for cut in found.get(attack, [])):
            continue
        if originals is None:
            originals = collage(read_images(one.pairs["original"].tolist()[: _SIDE**2]))
        images = collage(read_images(one.pairs["reconstruction"].tolist()[: _SIDE**2]))
        ssim, psnr = (row[name] for name in ("ssim_mean", "psnr_mean"))
        values = [math.nan if value is None else float(value) for value in (ssim, psnr)]
        cut = Cut(h=network.h, t=network.t, images=images, ssim=values[0], psnr=values[1])
        found.setdefault(attack, []).append(cut)
    if originals is None:
        return {}
    return {
        attack: cut_figure(cuts, originals, f"Leak at each pair of cuts: {_title(attack)}")
        for attack, cuts in found.items()
    }


def write_cuts(outcome: Mapping[str, Any], folder: Path, name: str) -> list[Path]:
    """Write `cut_figures` below `folder` as <name>-<attack>.png and .svg; returns the former."""
    return [
        write_both(figure, folder / f"{name}-{attack}.png")
        for attack, figure in cut_figures(outcome).items()
    ]


def collage(images: Tensor) -> Tensor:
    """(N, 3, H, W) as one picture of two columns; white where there is no image."""
    rows = math.ceil(len(images) / _SIDE)
    full = torch.ones(rows * _SIDE, *images.shape[1:])
    full[: len(images)] = images
    lines = [torch.cat(list(line), dim=2) for line in full.split(_SIDE)]
    return torch.cat(lines, dim=1)


def _title(attack: str) -> str:
    return ARMS[attack].title if attack in ARMS else attack


_SHOWN = 8  # images of a system under an attack
_BLOCKS = {"": "the published attack", "-aligned": "the aligned attack"}  # end of an arm → words


class Way(NamedTuple):
    """Content of a row: a defence, a published attack on it and the choice among several bodies."""

    defence: str
    attack: str
    choice: str = ""


def pictures(
    outcome: Mapping[str, Any], wanted: Mapping[str, Way], title: str, number: int
) -> Drawn | None:
    """The figure of a finished experiment's first network and seeds; None where nothing is kept.

    Args:
        outcome: Of `run_split`.
        wanted: Rows of the figure, by their titles.
        number: Of the paper's figure.
    """
    plan = outcome["plan"]
    rows = pd.DataFrame(outcome["rows"])
    first = {"network": plan["networks"][0]}
    first |= {f"{name}_seed": plan[f"{name}_seeds"][0] for name in ("defence", "attack")}
    for name, value in first.items():
        rows = rows[rows[name] == value]
    chosen = choices(rows)
    sets = {(one.model, one.run["attack"]["name"]): one for one in map(_read, outcome["sets"])}
    drawn = [_row(called, way, chosen, sets) for called, way in wanted.items()]
    if not sets or not any(row.images for row in drawn):
        return None
    originals = read_images(next(iter(sets.values())).pairs["original"].tolist()[:_SHOWN])
    return defence_figure([row for row in drawn if row.images], originals, title, number)


def _read(folder: str) -> ReconstructionSet:
    return read_set(Path(folder))


def _row(
    title: str,
    way: Way,
    chosen: pd.DataFrame,
    sets: Mapping[tuple[str, str], ReconstructionSet],
) -> Row:
    images, ssim, psnr = {}, {}, {}
    mine = chosen[
        (chosen["defence"].str.partition(":")[0] == way.defence) & (chosen["choice"] == way.choice)
    ]
    for end, words in _BLOCKS.items():
        for one in mine[mine["attack"] == f"{way.attack}{end}"].head(1).to_dict("records"):
            body = f"-body{one['body']:.0f}" if one["body"] >= 0 else ""
            model = f"{one['network']}/{one['defence']}/seed {one['defence_seed']:.0f}"
            kept = sets.get((model, f"{one['attack']}{body}"))
            if kept is None:
                continue
            images[words] = read_images(kept.pairs["reconstruction"].tolist()[:_SHOWN])
            ssim[words], psnr[words] = (_number(one[name]) for name in ("ssim", "psnr"))
    return Row(title=title, images=images, ssim=ssim, psnr=psnr)


def _number(value: Any) -> float:
    return float("nan") if pd.isna(value) else float(value)
