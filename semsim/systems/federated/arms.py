"""Arms of a comparison: parties that look at a federated training, and their methods."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from semsim.base.registry import Registry
from semsim.systems.federated.pbpfl_settings import NoiseScope, Pbpfl

View = Literal["server", "uplink", "up_and_downlink", "client"]
Treatment = Literal["plain", "canonical", "stripped", "closed-form"]


@dataclass(frozen=True, kw_only=True)
class Arm:
    """A party and what it does.

    title: for people. treatment: "plain" runs the attack on what is seen; "canonical" rescales
    hidden rows first; "stripped" takes the additive noise out and then rescales; "closed-form"
    needs no attack.
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
ARMS: Registry[Arm] = Registry(
    "arm",
    {
        REFERENCE: Arm(title="FedAvg, server", scheme="fedavg", view="server"),
        RESCALED: Arm(
            title="FedAvg, server, rows rescaled",
            scheme="fedavg",
            view="server",
            treatment="canonical",
        ),
        "server-pbpfl": Arm(title="PBPFL, server", view="server"),
        "links-naive": Arm(title="PBPFL, eavesdropper on both links", view="up_and_downlink"),
        "links-canonical": Arm(
            title="PBPFL, eavesdropper on both links, rows rescaled",
            view="up_and_downlink",
            treatment="canonical",
        ),
        "links-stripped": Arm(
            title="PBPFL, eavesdropper on both links, noise removed and rows rescaled",
            view="up_and_downlink",
            treatment="stripped",
        ),
        "uplink": Arm(title="PBPFL, eavesdropper on the uplink", view="uplink"),
        "uplink-closed-form": Arm(
            title="PBPFL, eavesdropper on the uplink, first layer solved",
            view="uplink",
            treatment="closed-form",
        ),
        "client-own-mask": Arm(title="PBPFL, another client with a mask of its own", view="client"),
        "client-same-mask": Arm(
            title="PBPFL, another client with the same mask, rows rescaled",
            view="client",
            treatment="canonical",
            noise_scope="round",
        ),
        "server-zero-sum": Arm(
            title="PBPFL with zero-sum masks, server",
            view="server",
            noise_scope="round",
            zero_sum=True,
        ),
    },
)

# Who may choose among which arms.
PARTIES: Mapping[str, tuple[str, ...]] = {
    "The server": ("server-pbpfl",),
    "An eavesdropper on both links": ("links-naive", "links-canonical", "links-stripped"),
    "An eavesdropper on the uplink alone": ("uplink", "uplink-closed-form"),
    "Another client": ("client-own-mask", "client-same-mask"),
    "The server under zero-sum masks": ("server-zero-sum",),
}


def yardstick(arm: str) -> str:
    """The arm of FedAvg's server that uses the same treatment as `arm`."""
    return RESCALED if ARMS[arm].treatment in ("canonical", "stripped") else REFERENCE
