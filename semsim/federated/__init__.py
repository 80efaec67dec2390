"""Federated learning with a plain or a masked model, and what each party can see of it."""

from semsim.federated.data import Examples, FederatedData, of_images, of_table
from semsim.federated.networks import NETWORKS
from semsim.federated.rounds import FederatedRun, Point, train
from semsim.federated.settings import FederatedSettings
from semsim.federated.views import VIEWS, View, observe

__all__ = [
    "NETWORKS",
    "VIEWS",
    "Examples",
    "FederatedData",
    "FederatedRun",
    "FederatedSettings",
    "Point",
    "View",
    "observe",
    "of_images",
    "of_table",
    "train",
]
