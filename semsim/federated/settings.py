"""Settings of a federated training."""

import hashlib
from dataclasses import dataclass, field
from typing import Literal

import torch

from semsim.defences.pbpfl import Pbpfl
from semsim.errors import SettingsError

Scheme = Literal["fedavg", "pbpfl"]
Loss = Literal["mse", "cross-entropy"]
Split = Literal["iid", "dirichlet"]
Dtype = Literal["float64", "float32"]

_CHOICES = {
    "scheme": ("fedavg", "pbpfl"),
    "loss": ("mse", "cross-entropy"),
    "split": ("iid", "dirichlet"),
    "dtype": ("float64", "float32"),
}


@dataclass(frozen=True, kw_only=True)
class FederatedSettings:
    """A server and K clients that train one network for some rounds.

    network: a name in `NETWORKS`. loss: "mse" is ½‖y − ȳ‖², classes being one-hot.
    split: "iid" deals the data out at random; "dirichlet" gives every client its own mixture of
        classes, the more uneven the smaller `dirichlet_alpha` is.
    local_steps: of one client in one round; 1 is FedSGD, more is FedAvg (McMahan et al. 2017).
    batch_size: of one client. A client's data is walked through in a new order each epoch.
    evaluate_every: rounds between two points of the curves. keep: rounds whose messages are kept,
        counted from 1, for looking at what leaks.
    masks: of PBPFL; unused by FedAvg.
    """

    network: str = "mlp-3"
    scheme: Scheme = "fedavg"
    loss: Loss = "mse"
    clients: int = 3
    split: Split = "iid"
    dirichlet_alpha: float = 0.5
    rounds: int = 100
    local_steps: int = 1
    batch_size: int = 32
    lr: float = 0.05
    seed: int = 0
    dtype: Dtype = "float64"
    evaluate_every: int = 10
    keep: tuple[int, ...] = (1,)
    masks: Pbpfl = field(default_factory=Pbpfl)

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise SettingsError(
                    f"{name} is one of {', '.join(choices)}; got {getattr(self, name)!r}."
                )
        for name in ("clients", "rounds", "local_steps", "batch_size", "evaluate_every"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} is 1 or more; got {getattr(self, name)}.")
        for name in ("lr", "dirichlet_alpha"):
            if not getattr(self, name) > 0:
                raise SettingsError(f"{name} is a positive number; got {getattr(self, name)}.")
        if self.scheme == "pbpfl":
            self._check_pbpfl()

    @property
    def torch_dtype(self) -> torch.dtype:
        """The precision of weights, gradients and messages."""
        return torch.float64 if self.dtype == "float64" else torch.float32

    def _check_pbpfl(self) -> None:
        if self.loss != "mse":
            raise SettingsError(
                "PBPFL recovers the gradient of a quadratic loss only: the noise in the outputs "
                "cannot be taken back out of a cross-entropy. Take loss='mse'."
            )
        if self.local_steps != 1:
            raise SettingsError(
                f"PBPFL takes one local step a round, since a second one would start from masked "
                f"weights that no longer match the key; got local_steps={self.local_steps}."
            )
        if self.masks.zero_sum and self.clients < 2:
            raise SettingsError("Zero-sum masks need 2 clients or more; got 1.")


def generator(*parts: int | str) -> torch.Generator:
    """A generator whose draws depend on all of `parts` and on nothing else."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))
