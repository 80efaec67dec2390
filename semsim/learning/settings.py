"""Settings of a training of SemSim, and the files that it leaves."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from semsim.base.errors import SettingsError
from semsim.base.metric_spec import CALIBRATED, control_in
from semsim.base.registry import check_settings, setting
from semsim.base.storage.names import checked_name

STATE_FILE = "training.pt"  # in the folder of a training while it is not done
SCRATCH = "scratch"
IMAGENET = "imagenet"


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """Settings of one training; the defaults are the paper's (Sun et al. 2023).

    Where the paper is silent (momentum, weight decay, the drops of the rate, augmentation) they
    are those of its released code. The device may change between a stop and a resume, the
    others may not. Raises `SettingsError` for a value out of range.
    """

    # Or another of torchvision by name, or timm:<name>.
    backbone: str = setting("resnet50", "Network", "LeNet is the fastest.")
    # scratch, imagenet (torchvision's), or a file.
    weights: str = setting(
        SCRATCH,
        "Starting weights",
        "Files in the folder of checkpoints, of the same network and stem.",
    )
    # 3×3 with stride 1 and no max pool, for images of about 32×32.
    small_stem: bool = setting(
        True,
        "Stem for small images",
        "Sees more of 32×32 images, and takes ten times as long. LeNet has it anyway.",
    )
    input_size: int = setting(32, "Input size", "Pixels a side, in scoring too.", least=1)
    normalize: bool = setting(False, "Features of length one", "In training and in scoring alike.")
    # pooled: recognisable against all of the batch.
    loss: str = setting(
        "triplet",
        "Loss",
        "pooled also makes distances of different originals comparable.",
        choices=("triplet", "contrastive", "pooled"),
        term="triplet",
    )
    margin: float = setting(
        1.0, "Margin", "How much farther an unrecognisable one should be.", above=0, term="margin"
    )
    ordering: str = setting(
        "majority",
        "What orders triplets",
        "votes: more votes are nearer, and the difference is the weight.",
        choices=("majority", "votes"),
    )
    # semi-hard: negatives inside the margin, of the same original.
    mining: str = setting(
        "random",
        "Choice of triplets",
        "semi-hard prefers those inside the margin.",
        choices=("random", "semi-hard"),
    )
    identity_weight: float = setting(
        0.0,
        "Weight of the identity term",
        "Keeps an original near to itself mildly changed; 0 leaves it out.",
        least=0,
        below=math.inf,
    )
    lr: float = setting(0.1, "Learning rate", "Lower it if the features collapse.", above=0)
    lr_drops: tuple[float, ...] = (0.37, 0.62, 0.87)  # shares of the epochs after which lr / 10
    batch_size: int = setting(128, "Triplets a step", least=1)
    epochs: int = setting(200, "Epochs", "Passes over the originals.", least=1)
    momentum: float = setting(0.9, least=0, below=1)
    nesterov: bool = True
    weight_decay: float = setting(5e-4, "Weight decay", least=0)
    triplets_per_original: int = setting(
        15, "Triplets an original", "Drawn anew each epoch.", least=1, term="triplet"
    )
    batch_norm: str = setting(
        "trained",
        "Batch normalisation",
        "frozen keeps the averages of the starting weights; for small batches.",
        choices=("trained", "frozen"),
    )
    augmentation: str = setting(
        "crop-flip",
        "Augmentation",
        "joint moves and mirrors all images of an original alike.",
        choices=("crop-flip", "joint", "none"),
    )
    validation_fraction: float = setting(
        0.2,
        "Share for validation",
        "Of those it learns from, for its curves.",
        least=0,
        below=1,
        term="held out",
    )
    patience: int = setting(
        0,
        "Patience",
        "Epochs without a better AUC before it stops; 0 never stops.",
        least=0,
        term="AUC",
    )
    # Collapsed epochs in a row before it stops; 0: never stops.
    collapse_patience: int = setting(10, least=0)
    mixed_precision: bool = setting(False, "Mixed precision", "bfloat16 in the network; for GPUs.")
    # The control: votes are dealt out anew among the reconstructions of each original, the n-th
    # time; 0 leaves them as they are.
    shuffle: int = setting(0, least=0)
    seed: int = setting(0, "Seed", "The same seed trains the same SemSim.", least=0)
    device: str = "auto"

    def __post_init__(self) -> None:
        check_settings(self)
        momentum_given = self.momentum > 0 or not self.nesterov
        _require(momentum_given, "nesterov", "off where momentum is 0", self.nesterov)
        watched = self.validation_fraction > 0 or self.patience == 0
        _require(watched, "patience", "0 where no original is held out", self.patience)
        starts = self.weights != SCRATCH or self.batch_norm == "trained"
        _require(starts, "batch_norm", "trained where it starts from scratch", self.batch_norm)
        network = self.backbone != CALIBRATED  # which stands beside every SemSim
        _require(network, "backbone", "a network, which learns", self.backbone)
        _require(self.weights != "", "weights", f"{SCRATCH}, {IMAGENET} or a file", self.weights)

    def lr_at(self, epoch: int) -> float:
        """The learning rate of `epoch`, counted from 0."""
        drops = sum(epoch >= max(1, round(share * self.epochs)) for share in self.lr_drops)
        return self.lr * 0.1**drops

    def result_settings(self) -> dict[str, Any]:
        """Return the settings that determine the result: all but the device."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        del values["device"]
        return {**values, "lr_drops": list(self.lr_drops)}


@dataclass(frozen=True, kw_only=True)
class Order:
    """Order of a training, with the place of its outcome.

    Attributes:
        name: The checkpoint's, without suffix.
        checkpoints: The folder it goes to.
        study: Whose votes it learns from, for people to read.
    """

    name: str
    checkpoints: Path
    settings: TrainSettings
    study: str = ""

    @property
    def checkpoint(self) -> Path:
        """Path of the finished weights."""
        return checkpoint_path(self.checkpoints, self.name)


def checkpoint_path(checkpoints: Path, name: str) -> Path:
    """The file of the checkpoint called `name`; `SettingsError` where that cannot be a name."""
    checked = checked_name(name, "a checkpoint")
    if control_in(checked):
        raise SettingsError(
            f"{name!r} is the name of a control, not of a SemSim; leave out .{control_in(checked)}."
        )
    return Path(checkpoints) / f"{checked}.safetensors"


def control_path(checkpoint: Path, control: str) -> Path:
    """Return the path of a checkpoint's control of `CONTROLS`: beside the checkpoint."""
    return checkpoint.with_name(f"{checkpoint.stem}.{control}{checkpoint.suffix}")


def require_free(path: Path) -> Path:
    """`path`; `SettingsError` where there is a checkpoint already."""
    if path.exists():
        raise SettingsError(f"There is a checkpoint {path} already; choose another name.")
    return path


def acting(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of `TrainSettings.result_settings` that change the weights of their network."""
    idle = set() if settings["shuffle"] else {"shuffle"}
    if settings["backbone"] == "lenet":  # has one stem, and no batch normalisation
        idle |= {"small_stem", "batch_norm"}
    return {name: value for name, value in settings.items() if name not in idle}


def _require(holds: bool, name: str, expected: str, got: object) -> None:
    if not holds:
        raise SettingsError(f"{name} must be {expected}; got {got!r}.")
