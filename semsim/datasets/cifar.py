"""CIFAR-100, read by torchvision."""

from dataclasses import dataclass
from typing import ClassVar

from semsim.base.errors import DataError
from semsim.base.registry import setting
from semsim.datasets.on_disk import ROOT, OnDisk, check_ready, fetched, first_of_each, folder_of
from semsim.types import LabelledImages


@dataclass(frozen=True, kw_only=True)
class Cifar100(OnDisk):
    """100 things at 32×32: 500 training and 100 test images of each (Krizhevsky 2009).

    Attributes:
        root: Folder of data sets; the files lie in `cifar-100-python` below it.
        classes, per_class: Only the first so many classes, and images of each in either split, in
            the order of the files; none takes all.
    """

    task: ClassVar[str] = "recognition"
    about: ClassVar[str] = "100 classes, 60,000 images at 32×32, 169 MB"
    home: ClassVar[str] = "https://www.cs.toronto.edu/~kriz/cifar.html"
    place: ClassVar[str] = "cifar-100-python"  # torchvision's name for it

    root: str = ROOT
    classes: int | None = setting(None, least=1)
    per_class: int | None = setting(None, least=1)

    def download(self) -> None:
        from torchvision.datasets import CIFAR100  # slow to import, seldom needed

        fetched(self, lambda root: CIFAR100(root, download=True))

    def __call__(self, split: str) -> LabelledImages:
        """The split "train" or "test"; the number in an id is the place in the files, from 0.

        Raises `DataError` where the files are missing or, by their checksums, are others.
        """
        import torch  # slow to import, as is what follows; a list of data sets needs neither
        from torchvision.datasets import CIFAR100

        check_ready(self, "cifar100", split)
        try:
            files = CIFAR100(folder_of(self.root), train=split == "train")
        except (RuntimeError, OSError) as error:
            raise DataError(
                f"The files in {self.folder} are not those of CIFAR-100 ({error}). Remove them and "
                f"run `semsim-studio datasets get cifar100 --root {self.root}`."
            ) from error
        names = files.classes[: self.classes]
        places = first_of_each(files.targets, len(names), self.per_class)
        pixels = torch.from_numpy(files.data[places])
        return LabelledImages(
            dataset="cifar100",
            classes=tuple(names),
            ids=tuple(f"cifar100-{split}-{place:05d}" for place in places),
            images=pixels.permute(0, 3, 1, 2).float().div(255).contiguous(),
            labels=torch.tensor([files.targets[place] for place in places]),
        )
