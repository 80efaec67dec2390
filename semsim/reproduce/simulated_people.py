"""Simulated people of a scale, and the pictures that no attack made which they are shown beside."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import torch

from semsim.campaign.campaign_job import load
from semsim.device import cores
from semsim.images import to_uint8
from semsim.registry import Plugin
from semsim.reproduce.simulated_votes import GREY, MEAN, ORIGINAL, data_set_jury
from semsim.sets.image import AttackResult, set_images
from semsim.sets.writer import write_set
from semsim.terminal import TerminalBar
from semsim.types import LabelledImages

CONTROL = "control"  # the attack of sets that no attack made
TITLES: Mapping[str, str] = MappingProxyType(
    {
        GREY: "a grey picture",
        MEAN: "the mean training picture",
        ORIGINAL: "the original itself",
    }
)


def simulated_people(
    dataset: Plugin,
    learned: Plugin,
    epochs: int,
    images: LabelledImages,
    folder: Path,
    *,
    workers: int,
    of: str = "",
) -> tuple[list[Path], dict[str, Path]]:
    """A jury that has learned, and the controls by kind; jurors below `folder` are used again.

    dataset: whose originals, `images`, are attacked. learned: what the jury learns from, for
    `epochs` tenths of what it usually takes. workers: 0 is one a core. of: the part of a scale that
    has controls of its own. Raises `DataError` where pictures are missing.
    """
    with TerminalBar(f"Simulated people of {of}" if of else "Simulated people") as bar:
        jury = data_set_jury(learned, epochs, folder, workers=workers or cores(), report=bar)
    return jury, write_controls(images, load(dataset, "train"), folder / "controls" / of)


def write_controls(images: LabelledImages, train: LabelledImages, folder: Path) -> dict[str, Path]:
    """Sets of pictures that no attack made, below `folder`, by kind.

    images: the originals, (N, 3, H, W) in [0, 1]. train: what targets learn from, of that size.
    """
    pictures = {
        GREY: torch.full_like(images.images, 0.5),
        MEAN: train.images.mean(0, keepdim=True).expand_as(images.images),
        ORIGINAL: images.images,
    }
    originals = [to_uint8(one) for one in images.images]
    made = {}
    for kind, shown in pictures.items():
        title = TITLES[kind]
        results = [
            AttackResult(
                picture=to_uint8(one),
                attacked=original,
                error="",
                objective=float("nan"),
                shift_x=0,
                shift_y=0,
                flipped=False,
            )
            for one, original in zip(shown, originals, strict=True)
        ]
        run = {"name": title, "model": title, "attack": CONTROL, "dataset": images.dataset}
        made[kind] = write_set(folder / title.replace(" ", "-"), run, set_images(images, results))
    return made
