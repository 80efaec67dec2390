"""Built-in data set of real images: handwritten digits, in scikit-learn's own files."""

from dataclasses import dataclass
from typing import ClassVar

from semsim.base.registry import setting
from semsim.datasets.on_disk import check_split
from semsim.types import LabelledImages

_CYCLE = 9  # two of nine images are for testing, so that every writer is in both splits
_TEST = (4, 8)


@dataclass(frozen=True, kw_only=True)
class Digits:
    """1797 digits of 8×8 pixels (Alpaydin and Kaynak 1998), enlarged to `size` × `size`.

    399 of them are the test split, always the same ones.

    Attributes:
        count: Take the first so many of all.
    """

    task: ClassVar[str] = "recognition"
    about: ClassVar[str] = "10 classes, 1797 handwritten digits of 8×8 pixels, comes with the tools"

    size: int = setting(16, least=1)
    count: int = setting(1797, least=_TEST[0] + 1)  # one of them at least is for testing

    def __call__(self, split: str) -> LabelledImages:
        """The split "train" or "test"; `ValueError` for another."""
        check_split(split)
        import torch  # slow to import, as is what follows; a list of data sets needs neither
        from sklearn.datasets import load_digits

        source = load_digits()
        wanted = range(min(self.count, len(source.target)))
        places = [i for i in wanted if (i % _CYCLE in _TEST) == (split == "test")]
        grey = torch.from_numpy(source.images[places]).float()[:, None] / 16
        sized = torch.nn.functional.interpolate(
            grey, (self.size, self.size), mode="bicubic", antialias=True
        )
        return LabelledImages(
            dataset="digits",
            classes=tuple(str(digit) for digit in range(10)),
            ids=tuple(f"digits-{place:04d}" for place in places),
            images=sized.clamp(0, 1).expand(-1, 3, -1, -1).contiguous(),
            labels=torch.from_numpy(source.target[places]).long(),
        )
