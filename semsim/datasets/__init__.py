"""Data sets. Each is a settings dataclass; calling it with a split gives the images."""

from typing import ClassVar, Protocol

from semsim.base.registry import Registry
from semsim.datasets.on_disk import OnDisk
from semsim.types import LabelledImages


class Dataset(Protocol):
    """Settings of a data set; calling them with "train" or "test" gives that split.

    Attributes:
        about: Its classes, images and size on disk, in a few words.
    """

    __dataclass_fields__: ClassVar[dict]
    about: ClassVar[str]

    @property
    def task(self) -> str:
        """Task of annotators: "recognition", name it, or "pair", is it the same one."""
        ...

    def __call__(self, split: str) -> LabelledImages: ...


DATASETS: Registry[type[Dataset]] = Registry(
    "data set",
    {
        "symbols": "semsim.datasets.symbols:Symbols",
        "faces": "semsim.datasets.faces:Faces",
        "face-or-not": "semsim.datasets.faces:FaceOrNot",
        "digits": "semsim.datasets.digits:Digits",
        "folder": "semsim.datasets.folder:Folder",
        "cifar100": "semsim.datasets.cifar:Cifar100",
        "caltech101": "semsim.datasets.photographs:Caltech101",
        "imagenette": "semsim.datasets.photographs:Imagenette",
        "celeba": "semsim.datasets.celeba:CelebA",
        "stanford-dogs": "semsim.datasets.stanford_dogs:StanfordDogs",
    },
)

__all__ = ["DATASETS", "Dataset", "OnDisk"]
