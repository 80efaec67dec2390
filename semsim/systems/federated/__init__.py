"""Federated learning with a plain or a masked model, and what each party can see of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from semsim.base.registry import Registry

if TYPE_CHECKING:
    from semsim.systems.federated.data import OwnTable
    from semsim.systems.federated.networks import Network

TABLES = ("diabetes", "breast-cancer", "digit-values")
OWN: Registry[type[OwnTable]] = Registry(
    "table of one's own", {"table": "semsim.systems.federated.data:OwnTable"}
)


def is_table(data: str) -> bool:
    """Return whether `data` names numbers to predict, not classes of images."""
    return data.strip() in TABLES or data.strip().partition(":")[0] in OWN


NETWORKS: Registry[Network] = Registry(
    "federated network",
    {
        "mlp-3": "semsim.systems.federated.networks:MLP_3",
        "mlp-5": "semsim.systems.federated.networks:MLP_5",
        "mlp-7": "semsim.systems.federated.networks:MLP_7",
        "lenet": "semsim.systems.federated.networks:LENET",
        "lenet-avg": "semsim.systems.federated.networks:LENET_AVG",
        "resnet20": "semsim.systems.federated.networks:RESNET20",
        "resnet20-add": "semsim.systems.federated.networks:RESNET20_ADD",
        "resnet56": "semsim.systems.federated.networks:RESNET56",
        "resnet56-add": "semsim.systems.federated.networks:RESNET56_ADD",
    },
)
