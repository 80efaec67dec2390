"""Noise in the place of pictures that are not on this machine, so that `--plan` needs none of them.

What a step takes does not depend on what pictures show, only on their size and on how many.
"""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import torch

from semsim.campaign.campaign_job import load
from semsim.campaign.probe import Load
from semsim.datasets import DATASETS
from semsim.datasets.on_disk import present
from semsim.registry import Plugin, build, read_plugin
from semsim.types import LabelledImages


class Sizes(NamedTuple):
    """Of a data set: pixels of a side, and pictures of either split."""

    classes: int
    pixels: int
    train: int
    test: int

    def split(self, name: str) -> int:
        """Pictures of the split "train" or "test"."""
        return self.test if name == "test" else self.train


# By the text of the data set. CelebA-HQ is all of it, a fifth to test as `Folder` has it: the paper
# took a part, and says neither which nor of how many classes.
SIZES: Mapping[str, Sizes] = MappingProxyType(
    {
        "cifar100": Sizes(100, 32, 50_000, 10_000),
        "folder:root=cifar10": Sizes(10, 32, 50_000, 10_000),
        "folder:root=cifar100": Sizes(100, 32, 50_000, 10_000),
        "folder:root=celeba-hq,size=64": Sizes(300, 64, 24_000, 6_000),
    }
)


class Source(NamedTuple):
    """Where pictures come from. note: says so where they are noise, else ""."""

    load: Load
    note: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        """`note`, where there is something to say."""
        return (self.note,) if self.note else ()


def is_here(text: str) -> bool:
    """Whether the data set written as `text` is built in, or its files are on this machine."""
    plugin = read_plugin(DATASETS, text)
    return present(build(DATASETS, plugin.name, plugin.settings))


def source_of(text: str, planned: bool) -> Source:
    """Of the data set written as `text`. planned: noise will do where its files are not here.

    Without, and where its `SIZES` are not known, loading it raises `DataError` as always.
    """
    if not planned or text not in SIZES or is_here(text):
        return Source(load)
    sizes = SIZES[text]
    note = (
        f"Measured on noise: {text} is not here. As large as it: {sizes.classes} classes, "
        f"{sizes.train:,} pictures of {sizes.pixels} × {sizes.pixels} to learn, {sizes.test:,} to "
        "test."
    )
    return Source(partial(_noise_for, text, sizes), note)


def _noise_for(text: str, sizes: Sizes, dataset: Plugin, split: str) -> LabelledImages:
    """Noise for the data set written as `text`; any other is loaded."""
    if dataset != read_plugin(DATASETS, text):
        return load(dataset, split)
    return noise(f"noise for {text}", split, sizes.split(split), sizes.classes, sizes.pixels)


def noise(name: str, split: str, count: int, classes: int, pixels: int) -> LabelledImages:
    """So many pictures of noise, `pixels` a side, labelled by each class in turn; always the same.

    They overlap, as windows of one strip of numbers, and so take hardly any memory.
    """
    values = 3 * pixels**2
    strip = torch.rand(values + count - 1, generator=torch.Generator().manual_seed(0))
    return LabelledImages(
        dataset=name,
        classes=tuple(str(number) for number in range(classes)),
        ids=tuple(f"{split}-{number}" for number in range(count)),
        images=strip.unfold(0, values, 1).unflatten(1, (3, pixels, pixels)),
        labels=torch.arange(count) % classes,
    )
