"""Data sets of photographs in folders: of each the middle square is taken.

Each opens only the files it was asked for, so that a few images of a large set cost little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from PIL import Image

from semsim.base.errors import DataError
from semsim.base.picture_files import opened_picture, upright
from semsim.base.registry import Checked, setting
from semsim.base.storage.folders import shown
from semsim.datasets.on_disk import (
    ROOT,
    OnDisk,
    check_ready,
    content_below,
    fetched,
    first_of_each,
    folder_of,
)
from semsim.images import from_uint8, is_image_file
from semsim.types import LabelledImages

if TYPE_CHECKING:
    from torch import Tensor

_NO_CLASS = "BACKGROUND_Google"  # clutter, which is in no class
_FOLDERS = {"160px": "imagenette2-160", "320px": "imagenette2-320", "full": "imagenette2"}


@dataclass(frozen=True, kw_only=True)
class ImageFile:
    """One image file of a data set; `id` is unique within it."""

    path: Path
    label: int
    id: str


@dataclass(frozen=True, kw_only=True)
class Photographs(OnDisk):
    """Data set of image files of all sizes, called `name` in the registry.

    Attributes:
        root: Folder of data sets.
        size: Pixels of a side.
        classes, per_class: Only the first so many classes, and images of each in either split; None
            takes all.
    """

    name: ClassVar[str]

    root: str = ROOT
    size: int = setting(64, least=1)
    classes: int | None = setting(None, least=1)
    per_class: int | None = setting(None, least=1)

    def listed(self, split: str) -> tuple[Sequence[str], Sequence[ImageFile]]:
        """Names of the classes, and the files of a split; `DataError` where a list is broken."""
        raise NotImplementedError

    def __call__(self, split: str) -> LabelledImages:
        """The split "train" or "test"; `DataError` where the files are missing or broken.

        Of each class the first `per_class` files are opened, and no others.
        """
        import torch  # a list of data sets needs none

        check_ready(self, self.name, split)
        classes, entries = self.listed(split)
        labels = [entry.label for entry in entries]
        wanted = [entries[place] for place in first_of_each(labels, len(classes), self.per_class)]
        if not wanted:
            raise DataError(f"The data set {self.name!r} has no images for this split.")
        images = torch.empty(len(wanted), 3, self.size, self.size)
        for place, entry in enumerate(wanted):
            images[place] = read_middle(entry.path, self.size)
        return LabelledImages(
            dataset=self.name,
            classes=tuple(classes),
            ids=tuple(f"{self.name}-{entry.id}" for entry in wanted),
            images=images,
            labels=torch.tensor([entry.label for entry in wanted]),
        )


@dataclass(frozen=True, kw_only=True)
class Caltech101(Photographs):
    """101 things, 31 to 800 images of each (Fei-Fei et al. 2004), the middle square of each image.

    The data set has no splits. Here each class is shuffled by `seed`, its first `test_per_class`
    images are the test split, so that this is balanced, and the rest the training split.

    Attributes:
        root: Folder of data sets; the files lie in `caltech101/101_ObjectCategories` below it.
        size: Pixels of a side.
        classes, per_class: Only the first so many classes, and images of each in either split; none
            takes all. Files of other images are not opened.
    """

    name: ClassVar[str] = "caltech101"
    task: ClassVar[str] = "recognition"
    about: ClassVar[str] = "101 classes, 8,677 images of all sizes, 137 MB"
    home: ClassVar[str] = "https://data.caltech.edu/records/mzrjq-6wc02"
    place: ClassVar[str] = "caltech101/101_ObjectCategories"

    test_per_class: int = setting(10, least=1)
    seed: int = setting(0, least=0)

    def content(self) -> str:
        """Return a hash of what is in the folder now, see `content_below`."""
        return content_below(self.folder, "*/*")

    def download(self) -> None:
        from torchvision.datasets import Caltech101 as Download  # slow to import, seldom needed

        fetched(self, lambda root: Download(root, download=True))

    def listed(self, split: str) -> tuple[list[str], list[ImageFile]]:
        folders = [path for path in shown(self.folder) if path.is_dir()]
        names = [path.name for path in folders if path.name != _NO_CLASS][: self.classes]
        return names, [
            entry for label, name in enumerate(names) for entry in self._of(label, name, split)
        ]

    def _of(self, label: int, name: str, split: str) -> list[ImageFile]:
        paths = [path for path in shown(self.folder / name) if is_image_file(path)]
        chosen = balanced_split(len(paths), self.test_per_class, split, (self.seed, label))
        return [
            ImageFile(path=paths[place], label=label, id=f"{name}-{paths[place].stem}")
            for place in chosen
        ]


@dataclass(frozen=True, kw_only=True)
class Imagenette(Photographs, Checked):
    """Ten easily told classes of ImageNet (Howard 2019), the middle square of each image.

    The test split is what its authors call val.

    Attributes:
        root: Folder of data sets; the files lie in `imagenette2-160`, or as `source` says, below
            it.
        source: The release with a shorter side of 160 or 320 pixels, or in full.
        size: Pixels of a side.
        classes, per_class: Only the first so many classes, and images of each in either split; none
            takes all. Files of other images are not opened.
    """

    name: ClassVar[str] = "imagenette"
    task: ClassVar[str] = "recognition"
    about: ClassVar[str] = "10 classes, 13,394 images of 160 pixels and more, 99 MB"
    home: ClassVar[str] = "https://github.com/fastai/imagenette"

    size: int = setting(112, least=1)
    source: Literal["160px", "320px", "full"] = "160px"

    @property
    def folder(self) -> Path:
        return folder_of(self.root) / _FOLDERS[self.source]

    def present(self) -> bool:
        return (self.folder / "train").is_dir() and (self.folder / "val").is_dir()

    def content(self) -> str:
        """Return a hash of what is in the folder now, see `content_below`."""
        return content_below(self.folder, "*/*/*")

    def download(self) -> None:
        from torchvision.datasets import Imagenette as Files  # slow to import, seldom needed

        fetched(self, lambda root: Files(root, size=self.source, download=True))

    def listed(self, split: str) -> tuple[list[str], list[ImageFile]]:
        from torchvision.datasets import Imagenette as Files  # slow to import, seldom needed

        theirs = "train" if split == "train" else "val"
        try:
            files = Files(folder_of(self.root), split=theirs, size=self.source)
        except (RuntimeError, OSError, KeyError) as error:
            raise DataError(f"{self.folder} is not Imagenette: {error}.") from error
        names = [synonyms[0] for synonyms in files.classes][: self.classes]
        return names, [
            ImageFile(path=path, label=label, id=path.stem)
            for label, wnid in enumerate(files.wnids)
            for path in sorted((self.folder / theirs / wnid).iterdir())
            if is_image_file(path)
        ]


def balanced_split(count: int, test_count: int, split: str, seed: Sequence[int]) -> list[int]:
    """Return the places of a split's images among `count` of a class, in their order.

    The class is shuffled by `seed`; the first `test_count` are its test images, but at least one
    image stays for training.
    """
    order = np.random.default_rng(list(seed)).permutation(count)
    tests = min(test_count, count - 1)
    return sorted((order[:tests] if split == "test" else order[tests:]).tolist())


def read_middle(path: Path, size: int) -> Tensor:
    """The largest square in the middle of the image at `path`, (3, size, size) in [0, 1].

    Raises `DataError` as `opened_picture` does.
    """
    with opened_picture(path) as file:
        picture = upright(file)
    side = min(picture.size)
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    middle = picture.crop((left, top, left + side, top + side))
    small = middle.resize((size, size), Image.Resampling.BICUBIC)
    return from_uint8(np.asarray(small))
