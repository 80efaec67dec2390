"""What a training of SemSim can be told."""

import math
from dataclasses import dataclass, fields
from typing import Any

from semsim.errors import SettingsError

AUGMENTATIONS = ("crop-flip", "joint", "none")
LOSS_NAMES = ("triplet", "contrastive", "pooled")
BATCH_NORMS = ("trained", "frozen")
ORDERINGS = ("majority", "votes")
MININGS = ("random", "semi-hard")
SCRATCH = "scratch"
IMAGENET = "imagenet"


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """Settings of one training; the defaults are the paper's (Sun et al. 2023).

    Where the paper is silent (momentum, weight decay, the drops of the rate, augmentation) they
    are those of its released code. The device may change between a stop and a resume, the
    others may not. Raises `SettingsError` for a value out of range.
    """

    backbone: str = "resnet50"  # or another of torchvision by name, or timm:<name>
    weights: str = SCRATCH  # what it starts from: scratch, imagenet (torchvision's), or a file
    small_stem: bool = True  # 3×3 with stride 1 and no max pool, for images of about 32×32
    input_size: int = 32  # images are resized to this many pixels a side
    normalize: bool = False  # features of length one, in training and in scoring alike
    loss: str = "triplet"  # or contrastive, or pooled: recognisable against all of the batch
    margin: float = 1.0
    ordering: str = "majority"  # or votes: more votes are nearer, the difference is the weight
    mining: str = "random"  # or semi-hard: negatives inside the margin, of the same original
    identity_weight: float = 0.0  # of the distance from an original to itself mildly changed
    lr: float = 0.1
    lr_drops: tuple[float, ...] = (0.37, 0.62, 0.87)  # shares of the epochs after which lr / 10
    batch_size: int = 128  # triplets
    epochs: int = 200
    momentum: float = 0.9
    nesterov: bool = True
    weight_decay: float = 5e-4
    triplets_per_original: int = 15  # drawn anew each epoch
    batch_norm: str = "trained"  # or frozen: the averages of the weights it starts from
    augmentation: str = "crop-flip"  # each image its own; joint: all of an original alike
    validation_fraction: float = 0.2  # of the originals, never seen in training
    patience: int = 0  # epochs without a better held-out AUC before it stops; 0: never stops
    collapse_patience: int = 10  # collapsed epochs in a row before it stops; 0: never stops
    mixed_precision: bool = False  # the network computes in bfloat16, made for GPUs
    seed: int = 0
    device: str = "auto"

    def __post_init__(self) -> None:
        for name in ("input_size", "batch_size", "epochs", "triplets_per_original"):
            _require(getattr(self, name) >= 1, name, "at least 1", getattr(self, name))
        for name in ("margin", "lr"):
            _require(getattr(self, name) > 0, name, "above 0", getattr(self, name))
        for name in ("weight_decay", "identity_weight", "patience", "collapse_patience", "seed"):
            _require(getattr(self, name) >= 0, name, "0 or more", getattr(self, name))
        for name, known in _CHOICES.items():
            _require(getattr(self, name) in known, name, " or ".join(known), getattr(self, name))
        _require(math.isfinite(self.identity_weight), "identity_weight", "finite", math.inf)
        _require(0 <= self.momentum < 1, "momentum", "in [0, 1)", self.momentum)
        share = self.validation_fraction
        _require(0 <= share < 1, "validation_fraction", "in [0, 1)", share)
        momentum_given = self.momentum > 0 or not self.nesterov
        _require(momentum_given, "nesterov", "off where momentum is 0", self.nesterov)
        watched = share > 0 or self.patience == 0
        _require(watched, "patience", "0 where no original is held out", self.patience)
        starts = self.weights != SCRATCH or self.batch_norm == "trained"
        _require(starts, "batch_norm", "trained where it starts from scratch", self.batch_norm)
        _require(self.weights != "", "weights", f"{SCRATCH}, {IMAGENET} or a file", self.weights)

    def lr_at(self, epoch: int) -> float:
        """The learning rate of `epoch`, counted from 0."""
        drops = sum(epoch >= round(share * self.epochs) for share in self.lr_drops)
        return self.lr * 0.1**drops

    def result_settings(self) -> dict[str, Any]:
        """What determines the result: every setting but the device."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        del values["device"]
        return {**values, "lr_drops": list(self.lr_drops)}


_CHOICES = {
    "augmentation": AUGMENTATIONS,
    "batch_norm": BATCH_NORMS,
    "loss": LOSS_NAMES,
    "ordering": ORDERINGS,
    "mining": MININGS,
}


def _require(holds: bool, name: str, expected: str, got: object) -> None:
    if not holds:
        raise SettingsError(f"{name} must be {expected}; got {got!r}.")
