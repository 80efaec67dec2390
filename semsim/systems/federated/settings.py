"""Settings of a federated training, of who looks at it and how, and the order to compare two."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from semsim.base.errors import JobError, SettingsError
from semsim.base.jobs.orders import from_record, to_record
from semsim.base.registry import Registry, check_settings, setting
from semsim.base.storage.places import toml_of
from semsim.base.storage.records import read_object, read_record
from semsim.systems.federated import NETWORKS, TABLES

if TYPE_CHECKING:
    import torch

NoiseScope = Literal["round", "client"]


@dataclass(frozen=True, kw_only=True)
class Pbpfl:
    """Strength of the server's masks, and the largest error of the recovery.

    Attributes:
        r_low, r_high: Range of the multiplicative noise, which is drawn uniformly.
        a_high: The additive noise vector is drawn uniformly from 0 to this.
        gamma_low, gamma_high: Range of the secret coefficient γ.
        noise_scope: "client" draws anew for every client, as the authors' program does; "round"
            gives all clients of a round the same masked model.
        zero_sum: Clients add masks that sum to zero over all of them, so that the server learns
            only the sum (the paper's extension). It needs noise_scope "round": recovery is linear,
            but only under one mask.
        zero_sum_digits: Binary digits after the point that the hidden numbers keep, of 62; the
            others hold what is before it.
        tolerance: Largest relative rounding error of the recovered gradient that is accepted.
    """

    r_low: float = 0.5
    r_high: float = 2.0
    a_high: float = setting(1.0, above=0, below=math.inf)
    gamma_low: float = 0.5
    gamma_high: float = 1.5
    noise_scope: NoiseScope = "client"
    zero_sum: bool = False
    zero_sum_digits: int = setting(40, least=1, most=60)
    tolerance: float = setting(1e-6, above=0, below=math.inf)

    def __post_init__(self) -> None:
        check_settings(self)
        _check_range("r_low", self.r_low, "r_high", self.r_high)
        _check_range("gamma_low", self.gamma_low, "gamma_high", self.gamma_high)
        if self.zero_sum and self.noise_scope == "client":
            raise SettingsError(
                "Zero-sum masks cancel only where every client has the same masked model: "
                "take noise_scope='round', or zero_sum=False."
            )


def _check_range(low_name: str, low: float, high_name: str, high: float) -> None:
    if not 0 < low <= high < math.inf:
        raise SettingsError(
            f"{low_name} and {high_name} are positive and in order; got {low} and {high}."
        )


View = Literal["server", "uplink", "up_and_downlink", "client"]
Treatment = Literal["plain", "canonical", "stripped", "closed-form"]


@dataclass(frozen=True, kw_only=True)
class PartyArm:
    """A party and what it does.

    Attributes:
        title: For people.
        treatment: "plain" runs the attack on what is seen; "canonical" rescales hidden rows first;
            "stripped" takes the additive noise out and then rescales; "closed-form" needs no
            attack.
    """

    title: str
    scheme: Literal["fedavg", "pbpfl"] = "pbpfl"
    view: View
    treatment: Treatment = "plain"
    noise_scope: NoiseScope = "client"
    zero_sum: bool = False

    @property
    def masks(self) -> Pbpfl:
        """Mask settings of its training; FedAvg's does not mask."""
        return Pbpfl(noise_scope=self.noise_scope, zero_sum=self.zero_sum)

    @property
    def needs_another_client(self) -> bool:
        """True if there is nothing to see with a single client, and so with a single image."""
        return self.view == "client" or self.zero_sum


REFERENCE, RESCALED = "server-fedavg", "server-fedavg-canonical"
ALWAYS = (REFERENCE, RESCALED)  # with which the others are compared
_DECLARED = toml_of("semsim.systems.federated", "arms.toml")
ARMS: Registry[PartyArm] = Registry(
    "arm",
    {name: from_record(PartyArm, one, by_hand=True) for name, one in _DECLARED["arms"].items()},
)
# Who may choose among which arms.
PARTIES: Mapping[str, tuple[str, ...]] = {
    party: tuple(arms) for party, arms in _DECLARED["parties"].items()
}


def yardstick(arm: str) -> str:
    """The arm of FedAvg's server that uses the same treatment as `arm`."""
    return RESCALED if ARMS[arm].treatment in ("canonical", "stripped") else REFERENCE


def with_yardsticks(arms: Iterable[str]) -> tuple[str, ...]:
    """Return `arms` and those they are compared with, in the order of `ARMS`."""
    wanted = {*arms, *ALWAYS}
    return tuple(arm for arm in ARMS if arm in wanted)


Scheme = Literal["fedavg", "pbpfl"]
Loss = Literal["mse", "cross-entropy"]
Split = Literal["iid", "dirichlet"]
Dtype = Literal["float64", "float32"]


@dataclass(frozen=True, kw_only=True)
class FederatedSettings:
    """A server and K clients that train one network for some rounds.

    Attributes:
        network: A name in `NETWORKS`.
        loss: "mse" is ½‖y − ȳ‖², classes being one-hot.
        split: "iid" deals the data out at random; "dirichlet" gives every client its own mixture of
            classes, the more uneven the smaller `dirichlet_alpha` is.
        local_steps: Of one client in one round; 1 is FedSGD, more is FedAvg (McMahan et al. 2017).
        batch_size: Of one client. A client's data is walked through in a new order each epoch.
        evaluate_every: Rounds between two points of the curves.
        keep: Rounds whose messages are kept, counted from 1, for looking at what leaks.
        masks: Of PBPFL; unused by FedAvg.
    """

    network: str = "mlp-3"
    scheme: Scheme = "fedavg"
    loss: Loss = "mse"
    clients: int = setting(3, least=1)
    split: Split = "iid"
    dirichlet_alpha: float = setting(0.5, above=0)
    rounds: int = setting(100, least=1)
    local_steps: int = setting(1, least=1)
    batch_size: int = setting(32, least=1)
    lr: float = setting(0.05, above=0)
    seed: int = 0
    dtype: Dtype = "float64"
    evaluate_every: int = setting(10, least=1)
    keep: tuple[int, ...] = (1,)
    masks: Pbpfl = field(default_factory=Pbpfl)

    def __post_init__(self) -> None:
        check_settings(self)
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

    Attributes:
        data: A data set with its settings, as in "symbols:train_per_class=4", or one of `TABLES`.
            network to seed: see `FederatedSettings`; both schemes start from the same weights.
        cross_entropy: Train FedAvg with it too.
        arms: Names in `ARMS`, attacked in rounds of their own with as many clients as `images` and
            one image each; empty attacks nothing.
        attack: As in "invgrad:steps=300".
        attack_round: Whose messages are attacked; 1 is an untrained network.
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
    seed: int = setting(0, "Seed", "Seed of all random draws.")
    noise_scope: NoiseScope = setting(
        "client", "Masks", "client: each client its own. round: one for all."
    )
    cross_entropy: bool = setting(
        False, "FedAvg with cross-entropy too", "Train FedAvg with cross-entropy too."
    )
    arms: tuple[str, ...] = setting(
        tuple(ARMS), "Parties and their attacks", f"With commas, all or none: {', '.join(ARMS)}."
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


FIRST_LOOK = FederatedOrder(
    rounds=50,
    lr=0.02,
    images=3,
    attack_round=400,  # of three clients with a picture each: by then LeNet names 9 digits of 10
    arms=(*ALWAYS, "server-pbpfl", "links-stripped"),
)


def generator(*parts: int | str) -> torch.Generator:
    """A generator whose draws depend on all of `parts` and on nothing else."""
    import torch

    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))


KIND = "federated"
FORMAT = "semsim-federated/1"  # of the folder of the results: `ORDER` says it
ORDER, TRAINING = "order.json", "training.json"  # what was asked for; curves and costs


@dataclass(frozen=True, kw_only=True)
class FederatedJob:
    """A comparison and the folder its results go to."""

    order: FederatedOrder
    out: Path


def kept_training(out: Path) -> dict[str, Any] | None:
    """The curves and costs in the folder of the results; None while there are none.

    Raises `JobError` where they are broken or of another format.
    """
    if not (out / TRAINING).exists():
        return None
    read_record(out / ORDER, FORMAT, JobError)
    return read_object(out / TRAINING, JobError)


def like(order: FederatedOrder) -> Mapping[str, Any]:
    """Return what jobs have that carry out the same comparison."""
    return {"order": to_record(order)}
