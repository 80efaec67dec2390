"""Settings of a federated training, and the order for a comparison of two."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from semsim.base.errors import SettingsError
from semsim.base.registry import setting
from semsim.systems.federated import NETWORKS, TABLES
from semsim.systems.federated.arms import ARMS
from semsim.systems.federated.pbpfl_settings import NoiseScope, Pbpfl

if TYPE_CHECKING:
    import torch

Scheme = Literal["fedavg", "pbpfl"]
Loss = Literal["mse", "cross-entropy"]
Split = Literal["iid", "dirichlet"]
Dtype = Literal["float64", "float32"]
_CHOICES = {"scheme": Scheme, "loss": Loss, "split": Split, "dtype": Dtype}


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
        for name, kind in _CHOICES.items():
            choices = get_args(kind)
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
        import torch  # an order needs none

        return torch.float64 if self.dtype == "float64" else torch.float32

    @property
    def hides_updates(self) -> bool:
        """True if clients add zero-sum masks, so that the server learns only their sum."""
        return self.scheme == "pbpfl" and self.masks.zero_sum

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


@dataclass(frozen=True, kw_only=True)
class FederatedOrder:
    """Order of a comparison of federated trainings.

    data: a data set with its settings, as in "symbols:train_per_class=4", or one of `TABLES`.
    network to seed: see `FederatedSettings`; both schemes start from the same weights.
    cross_entropy: train FedAvg with it too. arms: names in `ARMS`, attacked in rounds of their own
    with as many clients as `images` and one image each; empty attacks nothing. attack: as in
    "invgrad:steps=300". attack_round: whose messages are attacked; 1 is an untrained network.
    """

    data: str = setting(
        "digits",
        "Data",
        "digits, symbols, folder:root=… for images of your own, or a table, which has no pictures "
        f"to attack: {', '.join(TABLES)}, or your own, table:path=bank.csv,target=y.",
    )
    network: str = setting("lenet", "Network", f"{', '.join(NETWORKS)}. Of these mlp-3 for tables.")
    clients: int = setting(3, "Clients", "Clients of the training.", least=1)
    split: Split = setting("iid", "Split of the data", "iid or dirichlet.")
    dirichlet_alpha: float = setting(0.5, "Dirichlet α", "Small: uneven.")
    rounds: int = setting(50, "Rounds", "Rounds of the training.", least=1)
    batch_size: int = setting(32, "Batch size of a client", least=1)
    lr: float = setting(0.05, "Step size", "The server's step size.")
    seed: int = setting(0, "Seed", "Seed of everything.")
    noise_scope: NoiseScope = setting(
        "client", "Masks", "client: each client its own. round: one for all."
    )
    cross_entropy: bool = setting(
        False, "FedAvg with cross-entropy too", "Train FedAvg with cross-entropy too."
    )
    arms: tuple[str, ...] = setting(
        tuple(ARMS), "Who looks, and how", f"With commas, all or none: {', '.join(ARMS)}."
    )
    images: int = setting(5, "Images each", "Images attacked in each arm.", least=1)
    attack: str = setting("invgrad:steps=300,tv=0.002", "Attack", "As in invgrad:steps=300.")
    attack_round: int = setting(
        1, "Attacked round", "Whose messages are attacked; 1: an untrained network.", least=1
    )

    def training(self, scheme: Scheme, loss: Loss = "mse") -> FederatedSettings:
        """The settings of one of the trainings; raises `SettingsError` where they cannot be."""
        return FederatedSettings(
            network=self.network,
            scheme=scheme,
            loss=loss,
            clients=self.clients,
            split=self.split,
            dirichlet_alpha=self.dirichlet_alpha,
            rounds=self.rounds,
            batch_size=self.batch_size,
            lr=self.lr,
            seed=self.seed,
            evaluate_every=max(1, self.rounds // 20),
            keep=(self.rounds,),
            masks=Pbpfl(noise_scope=self.noise_scope),
        )


def generator(*parts: int | str) -> torch.Generator:
    """A generator whose draws depend on all of `parts` and on nothing else."""
    import torch

    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))
