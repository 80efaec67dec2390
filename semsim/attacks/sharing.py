"""Data that a client of federated learning shares with the server: a gradient, or an update."""

from dataclasses import dataclass
from typing import Any

from semsim.attacks.batch_norm import BatchNorm
from semsim.base.errors import SettingsError
from semsim.base.registry import Checked, check_settings, setting
from semsim.types import LocalSteps


@dataclass(frozen=True, kw_only=True)
class Gradient:
    """The gradient of one picture, as in the papers on attacks.

    Batch norm works as the attack's own setting assumes.
    """

    @property
    def pictures(self) -> int:
        """Number of pictures of one client; they are attacked as one."""
        return 1

    @property
    def local(self) -> LocalSteps | None:
        """Local steps of the client on them; None where it is one gradient of one picture."""
        return None


@dataclass(frozen=True, kw_only=True)
class BatchGradient(Checked):
    """The mean gradient of a batch of pictures, with batch norm as a client that trains has it.

    batch: pictures of one client. batch_norm: "train" normalises by the statistics of the batch,
    "eval" by the running ones.
    """

    batch: int = setting(8, least=1)
    batch_norm: BatchNorm = "train"

    @property
    def pictures(self) -> int:
        """As `Gradient.pictures`."""
        return self.batch

    @property
    def local(self) -> LocalSteps:
        """One step of length 1, so that the update is the gradient, turned round."""
        return LocalSteps(
            steps=1, batch=self.batch, lr=1.0, momentum=0.0, batch_norm=self.batch_norm
        )


@dataclass(frozen=True, kw_only=True)
class Update:
    """The change of the weights after some steps of SGD (McMahan et al. 2017, arXiv:1602.05629).

    steps: of training, each on the next batch of the client's pictures, from the first again after
    the last. batch: pictures a step. held: pictures that the client has, a multiple of `batch`, all
    of which some step takes; 0 for one batch. lr, momentum: of `torch.optim.SGD`; the server that
    sent the weights knows them.
    batch_norm: "train" normalises by the statistics of the batch, as training does, "eval" by the
    running ones, which stay with the client.
    """

    steps: int = setting(5, least=1)
    batch: int = setting(8, least=1)
    held: int = setting(0, least=0)
    lr: float = setting(0.01, above=0)
    momentum: float = setting(0.0, least=0, below=1)
    batch_norm: BatchNorm = "train"

    def __post_init__(self) -> None:
        check_settings(self)
        if self.held % self.batch:
            raise SettingsError(f"held is a multiple of batch={self.batch}; got {self.held}.")
        reached = self.steps * self.batch
        if reached < self.held:
            raise SettingsError(
                f"{self.steps} steps take {reached} of {self.held} pictures, and an update tells "
                "nothing of the others; take more steps, or a smaller held."
            )

    @property
    def pictures(self) -> int:
        """As `Gradient.pictures`."""
        return self.held or self.batch

    @property
    def local(self) -> LocalSteps:
        """As `Gradient.local`."""
        return LocalSteps(
            steps=self.steps,
            batch=self.batch,
            lr=self.lr,
            momentum=self.momentum,
            batch_norm=self.batch_norm,
        )


Sharing = Gradient | BatchGradient | Update


def check_sharing(sharing: Sharing, attack: Any) -> None:
    """`SettingsError` where `attack`, with its settings, cannot work on what is shared."""
    if sharing.local is None:
        return
    name = type(attack).__name__
    if not hasattr(attack, "updates"):
        raise SettingsError(
            f"{name} works on the gradient of one picture alone. What a client shares of several "
            "pictures or steps is attacked by invgrad and prior."
        )
    if attack.batch_norm != "eval":
        raise SettingsError(
            "How batch norm works is said with what is shared, as batch_norm=train there; leave it "
            f"out of {name}'s settings."
        )
    if getattr(attack, "max_shift", 0):
        raise SettingsError(
            f"{name} looks for a shift of one picture alone; with several pictures or steps, take "
            "max_shift=0."
        )
