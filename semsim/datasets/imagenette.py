"""Imagenette, in the folders that torchvision's download makes."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from semsim.base.errors import DataError
from semsim.base.registry import Checked, setting
from semsim.datasets.on_disk import (
    ROOT,
    Entry,
    OnDisk,
    assemble,
    check_ready,
    content_below,
    fetched,
    folder_of,
)
from semsim.images import is_image_file
from semsim.types import LabelledImages

_FOLDERS = {"160px": "imagenette2-160", "320px": "imagenette2-320", "full": "imagenette2"}


@dataclass(frozen=True, kw_only=True)
class Imagenette(OnDisk, Checked):
    """Ten easily told classes of ImageNet (Howard 2019), the middle square of each image.

    The test split is what its authors call val.
    root: folder of data sets; the files lie in `imagenette2-160`, or as `source` says, below it.
    source: the release with a shorter side of 160 or 320 pixels, or in full.
    size: pixels of a side.
    classes, per_class: only the first so many classes, and images of each in either split; none
        takes all. Files of other images are not opened.
    """

    task: ClassVar[str] = "recognition"
    about: ClassVar[str] = "10 classes, 13,394 images of 160 pixels and more, 99 MB"
    home: ClassVar[str] = "https://github.com/fastai/imagenette"

    root: str = ROOT
    size: int = setting(112, least=1)
    classes: int | None = setting(None, least=1)
    per_class: int | None = setting(None, least=1)
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

    def __call__(self, split: str) -> LabelledImages:
        """The split "train" or "test"; `DataError` where the files are missing."""
        from torchvision.datasets import Imagenette as Files  # slow to import, seldom needed

        check_ready(self, "imagenette", split)
        theirs = "train" if split == "train" else "val"
        try:
            files = Files(folder_of(self.root), split=theirs, size=self.source)
        except (RuntimeError, OSError, KeyError) as error:
            raise DataError(f"{self.folder} is not Imagenette: {error}.") from error
        names = [synonyms[0] for synonyms in files.classes][: self.classes]
        entries = [
            Entry(path=path, label=label, id=path.stem)
            for label, wnid in enumerate(files.wnids)
            for path in sorted((self.folder / theirs / wnid).iterdir())
            if is_image_file(path)
        ]
        return assemble("imagenette", names, entries, size=self.size, per_class=self.per_class)
