"""What a training of SemSim can be told."""

from dataclasses import dataclass, fields
from typing import Any

from semsim.errors import SettingsError

AUGMENTATIONS = ("crop-flip", "none")


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """Settings of one training; the defaults are the paper's (Sun et al. 2023).

    Where the paper is silent (momentum, weight decay, the drops of the rate, augmentation) they
    are those of its released code. The device may change between a stop and a resume, the
    others may not. Raises `SettingsError` for a value out of range.
    """

    backbone: str = "resnet50"
    small_stem: bool = True  # 3×3 with stride 1 and no max pool, for images of about 32×32
    input_size: int = 32  # images are resized to this many pixels a side
    normalize: bool = False  # features of length one, in training and in scoring alike
    margin: float = 1.0
    lr: float = 0.1
    lr_drops: tuple[float, ...] = (0.37, 0.62, 0.87)  # shares of the epochs after which lr / 10
    batch_size: int = 128  # triplets
    epochs: int = 200
    momentum: float = 0.9
    nesterov: bool = True
    weight_decay: float = 5e-4
    triplets_per_original: int = 15  # drawn anew each epoch
    augmentation: str = "crop-flip"  # each image of a triplet its own
    validation_fraction: float = 0.2  # of the originals, never seen in training
    seed: int = 0
    device: str = "auto"

    def __post_init__(self) -> None:
        for name in ("input_size", "batch_size", "epochs", "triplets_per_original"):
            _require(getattr(self, name) >= 1, name, "at least 1", getattr(self, name))
        for name in ("margin", "lr"):
            _require(getattr(self, name) > 0, name, "above 0", getattr(self, name))
        _require(0 <= self.momentum < 1, "momentum", "in [0, 1)", self.momentum)
        _require(self.weight_decay >= 0, "weight_decay", "0 or more", self.weight_decay)
        _require(self.seed >= 0, "seed", "0 or more", self.seed)
        share = self.validation_fraction
        _require(0 <= share < 1, "validation_fraction", "in [0, 1)", share)
        known = self.augmentation in AUGMENTATIONS
        _require(known, "augmentation", " or ".join(AUGMENTATIONS), self.augmentation)
        momentum_given = self.momentum > 0 or not self.nesterov
        _require(momentum_given, "nesterov", "off where momentum is 0", self.nesterov)

    def lr_at(self, epoch: int) -> float:
        """The learning rate of `epoch`, counted from 0."""
        drops = sum(epoch >= round(share * self.epochs) for share in self.lr_drops)
        return self.lr * 0.1**drops

    def result_settings(self) -> dict[str, Any]:
        """What determines the result: every setting but the device."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        del values["device"]
        return {**values, "lr_drops": list(self.lr_drops)}


def _require(holds: bool, name: str, expected: str, got: object) -> None:
    if not holds:
        raise SettingsError(f"{name} must be {expected}; got {got!r}.")
