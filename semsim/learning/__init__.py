"""SemSim: a distance learned from what people can still recognise (Sun et al. 2023, §3.4)."""

from semsim.base.registry import Registry
from semsim.learning.settings import TrainSettings

PRESETS: Registry[TrainSettings] = Registry(
    "training preset",
    {
        # For studies of some ten to a hundred originals: distances of different originals are made
        # comparable, and the weights of the epoch with the best held-out AUC are kept.
        "pooled": TrainSettings(
            backbone="resnet18",
            loss="pooled",
            normalize=True,
            margin=0.3,
            augmentation="joint",
            lr=0.01,
            batch_size=32,
            epochs=30,
            triplets_per_original=8,
            patience=10,
        ),
        "triplet": TrainSettings(
            backbone="resnet18",
            small_stem=False,  # ten times the speed, and enough for some hundred images
            lr=0.02,
            batch_size=16,
            epochs=30,
            triplets_per_original=8,
        ),
        "paper": TrainSettings(),
        # As the authors' released code, but for what it does by mistake: its loss leaves out the
        # original, and it normalises in training only.
        "code": TrainSettings(
            backbone="resnet18", normalize=True, lr=0.05, batch_size=64, epochs=100
        ),
    },
)

__all__ = ["PRESETS", "TrainSettings"]
