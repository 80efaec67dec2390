"""Data sets. Each is a settings dataclass; calling it with a split gives the images."""

from typing import ClassVar, Protocol

from semsim.datasets.faces import Faces
from semsim.datasets.folder import Folder
from semsim.datasets.symbols import Symbols
from semsim.registry import Registry
from semsim.types import LabelledImages


class Dataset(Protocol):
    """Settings of a data set; calling them with "train" or "test" gives that split."""

    __dataclass_fields__: ClassVar[dict]

    def __call__(self, split: str) -> LabelledImages: ...


DATASETS: Registry[type[Dataset]] = Registry(
    "data set",
    {
        "symbols": Symbols,
        "faces": Faces,
        "folder": Folder,
    },
)
