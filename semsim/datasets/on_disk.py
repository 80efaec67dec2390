"""Data sets of other people: where they lie, which images are wanted, how to get them.

Each opens only the files it was asked for, so that a few images of a large set cost little.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from semsim.errors import DataError, SettingsError
from semsim.images import open_picture
from semsim.types import LabelledImages

ROOT = "data/datasets"


@runtime_checkable
class OnDisk(Protocol):
    """A data set whose files have to be fetched once.

    home: the web page of its authors.
    """

    home: ClassVar[str]

    @property
    def folder(self) -> Path:
        """Where its files belong."""
        ...

    def present(self) -> bool:
        """Whether its files seem to be there."""
        ...

    def download(self) -> None:
        """Fetch them below `root`, checksums verified; `DataError` where that fails."""
        ...


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One image file of a data set; `id` is unique within it."""

    path: Path
    label: int
    id: str


def require(data: OnDisk, name: str, root: str) -> None:
    """`DataError` that says how to get the data set called `name` unless it is there."""
    if not data.present():
        raise DataError(
            f"The data set {name!r} is not in {data.folder}. Fetch it with `python -m semsim "
            f"datasets get {name} --root {root}`, or from {data.home} by hand."
        )


def fetched(data: OnDisk, fetch: Callable[[], object]) -> None:
    """Run `fetch`; what goes wrong becomes a `DataError` that says what to do by hand."""
    try:
        data.folder.parent.mkdir(parents=True, exist_ok=True)
        fetch()
    except (OSError, RuntimeError, ValueError) as error:  # urllib's URLError is an OSError
        raise DataError(
            f"It could not be fetched: {error} Fetch it from {data.home} by hand and unpack it "
            f"into {data.folder}."
        ) from error


def check_split(split: str) -> None:
    """`ValueError` unless it is "train" or "test"."""
    if split not in ("train", "test"):
        raise ValueError(f"expected a split of ['test', 'train'], got {split!r}")


def check_limits(**limits: int | None) -> None:
    """`SettingsError` that names a limit below 1."""
    for name, limit in limits.items():
        if limit is not None and limit < 1:
            raise SettingsError(f"{name} is 1 or more; got {limit}.")


def first_of_each(labels: Sequence[int], classes: int, per_class: int | None) -> list[int]:
    """Places of the first `per_class` of each label below `classes`, in their order."""
    taken = [0] * classes
    places = []
    for place, label in enumerate(labels):
        if label < classes and (per_class is None or taken[label] < per_class):
            taken[label] += 1
            places.append(place)
    return places


def balanced_split(count: int, test_count: int, split: str, seed: Sequence[int]) -> list[int]:
    """Which of `count` images of a class belong to the split, in their order.

    The class is shuffled by `seed`; the first `test_count` are its test images, but at least one
    image stays for training.
    """
    order = np.random.default_rng(list(seed)).permutation(count)
    tests = min(test_count, count - 1)
    return sorted((order[:tests] if split == "test" else order[tests:]).tolist())


def assemble(
    dataset: str,
    classes: Sequence[str],
    entries: Sequence[Entry],
    *,
    size: int,
    per_class: int | None,
) -> LabelledImages:
    """The first `per_class` entries of each of `classes`, read; only these files are opened.

    size: of the square, in pixels, to which the middle of each image is scaled.
    """
    places = first_of_each([entry.label for entry in entries], len(classes), per_class)
    wanted = [entries[place] for place in places]
    if not wanted:
        raise DataError(f"The data set {dataset!r} has no images for this split.")
    images = torch.empty(len(wanted), 3, size, size)
    for place, entry in enumerate(wanted):
        images[place] = read_middle(entry.path, size)
    return LabelledImages(
        dataset=dataset,
        classes=tuple(classes),
        ids=tuple(f"{dataset}-{entry.id}" for entry in wanted),
        images=images,
        labels=torch.tensor([entry.label for entry in wanted]),
    )


def read_middle(path: Path, size: int) -> Tensor:
    """The largest square in the middle of the image at `path`, (3, size, size) in [0, 1].

    Raises `DataError` as `open_picture` does.
    """
    with open_picture(path) as file:
        picture = file.convert("RGB")
    side = min(picture.size)
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    middle = picture.crop((left, top, left + side, top + side))
    small = middle.resize((size, size), Image.Resampling.BICUBIC)
    return torch.from_numpy(np.asarray(small, dtype=np.float32) / 255).permute(2, 0, 1)
