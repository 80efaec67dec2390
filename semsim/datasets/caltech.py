"""Caltech-101, in the folders that torchvision's download makes."""

from dataclasses import dataclass
from typing import ClassVar

from semsim.base.registry import setting
from semsim.base.storage.folders import shown
from semsim.datasets.on_disk import (
    ROOT,
    Entry,
    OnDisk,
    assemble,
    balanced_split,
    check_ready,
    content_below,
    fetched,
)
from semsim.images import is_image_file
from semsim.types import LabelledImages

_NO_CLASS = "BACKGROUND_Google"  # clutter, which is in no class


@dataclass(frozen=True, kw_only=True)
class Caltech101(OnDisk):
    """101 things, 31 to 800 images of each (Fei-Fei et al. 2004), the middle square of each image.

    The data set has no splits. Here each class is shuffled by `seed`, its first `test_per_class`
    images are the test split, so that this is balanced, and the rest the training split.
    root: folder of data sets; the files lie in `caltech101/101_ObjectCategories` below it.
    size: pixels of a side.
    classes, per_class: only the first so many classes, and images of each in either split; none
        takes all. Files of other images are not opened.
    """

    task: ClassVar[str] = "recognition"
    about: ClassVar[str] = "101 classes, 8,677 images of all sizes, 137 MB"
    home: ClassVar[str] = "https://data.caltech.edu/records/mzrjq-6wc02"
    place: ClassVar[str] = "caltech101/101_ObjectCategories"

    root: str = ROOT
    size: int = setting(64, least=1)
    classes: int | None = setting(None, least=1)
    per_class: int | None = setting(None, least=1)
    test_per_class: int = setting(10, least=1)
    seed: int = setting(0, least=0)

    def content(self) -> str:
        """Return a hash of what is in the folder now, see `content_below`."""
        return content_below(self.folder, "*/*")

    def download(self) -> None:
        from torchvision.datasets import Caltech101 as Download  # slow to import, seldom needed

        fetched(self, lambda root: Download(root, download=True))

    def __call__(self, split: str) -> LabelledImages:
        """The split "train" or "test"; `DataError` where the files are missing."""
        check_ready(self, "caltech101", split)
        folders = [path for path in shown(self.folder) if path.is_dir()]
        names = [path.name for path in folders if path.name != _NO_CLASS][: self.classes]
        entries = [
            entry for label, name in enumerate(names) for entry in self._of(label, name, split)
        ]
        return assemble("caltech101", names, entries, size=self.size, per_class=self.per_class)

    def _of(self, label: int, name: str, split: str) -> list[Entry]:
        paths = [path for path in shown(self.folder / name) if is_image_file(path)]
        chosen = balanced_split(len(paths), self.test_per_class, split, (self.seed, label))
        return [
            Entry(path=paths[place], label=label, id=f"{name}-{paths[place].stem}")
            for place in chosen
        ]
