"""Data sets. Each is a settings dataclass; calling it with a split gives the images."""

from typing import ClassVar, Protocol

from semsim.datasets.caltech import Caltech101
from semsim.datasets.celeba import CelebA
from semsim.datasets.cifar import Cifar100
from semsim.datasets.digits import Digits
from semsim.datasets.faces import Faces
from semsim.datasets.folder import Folder
from semsim.datasets.imagenette import Imagenette
from semsim.datasets.on_disk import OnDisk
from semsim.datasets.stanford_dogs import StanfordDogs
from semsim.datasets.symbols import Symbols
from semsim.registry import Registry
from semsim.types import LabelledImages


class Dataset(Protocol):
    """Settings of a data set; calling them with "train" or "test" gives that split.

    about: its classes, images and size on disk, in a few words.
    """

    __dataclass_fields__: ClassVar[dict]
    about: ClassVar[str]

    @property
    def task(self) -> str:
        """What people are asked: "recognition", name it, or "pair", is it the same one."""
        ...

    def __call__(self, split: str) -> LabelledImages: ...


DATASETS: Registry[type[Dataset]] = Registry(
    "data set",
    {
        "symbols": Symbols,
        "faces": Faces,
        "digits": Digits,
        "folder": Folder,
        "cifar100": Cifar100,
        "caltech101": Caltech101,
        "imagenette": Imagenette,
        "celeba": CelebA,
        "stanford-dogs": StanfordDogs,
    },
)

__all__ = ["DATASETS", "Dataset", "OnDisk"]
