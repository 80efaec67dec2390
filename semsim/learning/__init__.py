"""SemSim: a distance learned from what people can still recognise (Sun et al. 2023, §3.4)."""

from collections.abc import Callable

from torch import nn

from semsim.learning.backbones import lenet, resnet18, resnet50
from semsim.learning.settings import TrainSettings
from semsim.registry import Registry

# Whether the stem suits small images to the network and its number of features.
BACKBONES: Registry[Callable[[bool], tuple[nn.Module, int]]] = Registry(
    "backbone", {"resnet50": resnet50, "resnet18": resnet18, "lenet": lenet}
)

PRESETS: Registry[TrainSettings] = Registry(
    "training preset",
    {
        "small": TrainSettings(
            backbone="resnet18",
            small_stem=False,  # ten times the speed, and enough for some hundred images
            lr=0.02,
            batch_size=16,
            epochs=30,
            triplets_per_original=8,
        ),
        "paper": TrainSettings(),
    },
)

__all__ = ["BACKBONES", "PRESETS", "TrainSettings"]
