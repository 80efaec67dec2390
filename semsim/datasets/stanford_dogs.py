"""Stanford Dogs, in the folders that the authors' archives make."""

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import scipy

from semsim.base.errors import DataError
from semsim.datasets.on_disk import fetched
from semsim.datasets.photographs import ImageFile, Photographs

_ADDRESS = "http://vision.stanford.edu/aditya86/ImageNetDogs/"
_ARCHIVES = {
    "images.tar": "1bb1f2a596ae7057f99d7d75860002ef",
    "lists.tar": "edbb9f16854ec66506b5f09b583e0656",
}
# What SciPy raises for bytes that are no MATLAB file, or a broken one.
_BROKEN = (OSError, ValueError, LookupError, TypeError, RuntimeError, zlib.error)


@dataclass(frozen=True, kw_only=True)
class StanfordDogs(Photographs):
    """120 breeds, 100 training images of each (Khosla et al. 2011), the middle of each image.

    The splits are the authors', in the order of their lists.

    Attributes:
        root: Folder of data sets; `Images`, `train_list.mat` and `test_list.mat` lie in
            `stanford-dogs` below it.
        size: Pixels of a side.
        classes, per_class: Only the first so many breeds, and images of each in either split; none
            takes all. Files of other images are not opened.
    """

    name: ClassVar[str] = "stanford-dogs"
    task: ClassVar[str] = "pair"
    about: ClassVar[str] = "120 breeds, 20,580 images of all sizes, 794 MB"
    home: ClassVar[str] = _ADDRESS
    place: ClassVar[str] = "stanford-dogs"

    def present(self) -> bool:
        lists = [self.folder / f"{split}_list.mat" for split in ("train", "test")]
        return (self.folder / "Images").is_dir() and all(path.is_file() for path in lists)

    def download(self) -> None:
        from torchvision.datasets.utils import download_and_extract_archive  # slow to import

        def fetch(root: Path) -> None:
            for name, md5 in _ARCHIVES.items():
                place = str(root / self.folder.name)
                download_and_extract_archive(_ADDRESS + name, place, md5=md5)

        fetched(self, fetch)

    def listed(self, split: str) -> tuple[list[str], list[ImageFile]]:
        names, labels = self._named(split)
        breeds = {label: _breed(name) for name, label in zip(names, labels, strict=True)}
        if sorted(breeds) != list(range(len(breeds))):
            raise DataError(f"The labels in {self._list(split)} leave numbers out.")
        classes = [breeds[label] for label in range(len(breeds))][: self.classes]
        return classes, [
            ImageFile(path=self.folder / "Images" / name, label=label, id=Path(name).stem)
            for name, label in zip(names, labels, strict=True)
        ]

    def _list(self, split: str) -> Path:
        return self.folder / f"{split}_list.mat"

    def _named(self, split: str) -> tuple[list[str], list[int]]:
        """Paths below `Images`, and labels from 0."""
        path = self._list(split)
        try:
            table = scipy.io.loadmat(path, squeeze_me=True)
            names = [str(name) for name in np.atleast_1d(table["file_list"])]
            labels = [int(label) - 1 for label in np.atleast_1d(table["labels"])]
        except (*_BROKEN, scipy.io.matlab.MatReadError) as error:
            raise DataError(f"{path} is not a list of Stanford Dogs: {error!r}.") from error
        wrong = [name for name in names if "/" not in name or ".." in Path(name).parts]
        if wrong or len(names) != len(labels):
            raise DataError(f"{path} is not a list of Stanford Dogs: {wrong[:1] or len(labels)}.")
        return names, labels


def _breed(name: str) -> str:
    """ "n02085620-Chihuahua/n02085620_10074.jpg" as "Chihuahua"."""
    return Path(name).parts[0].partition("-")[2].replace("_", " ")
