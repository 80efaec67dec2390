"""Images and settings for tests of federated learning: noise about a colour for each class."""

import torch

from semsim.federated.data import FederatedData, of_images
from semsim.federated.settings import FederatedSettings
from semsim.types import LabelledImages

# What the processes of `flower_process` and the test that starts them agree on.
SETTINGS = FederatedSettings(scheme="pbpfl", clients=2, rounds=3, batch_size=4)


def made_images(count: int, seed: int, side: int = 8) -> LabelledImages:
    """`count` images of three classes in turn, each of which has a colour of its own."""
    rng = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % 3
    noise = torch.rand(count, 3, side, side, generator=rng)
    return LabelledImages(
        dataset="noise",
        classes=("a", "b", "c"),
        ids=tuple(f"{seed}-{place}" for place in range(count)),
        images=(0.5 * torch.eye(3)[labels][:, :, None, None] + 0.5 * noise),
        labels=labels,
    )


def made_data(count: int = 24, side: int = 8) -> FederatedData:
    """`count` training examples and twelve for testing."""
    return of_images(made_images(count, 0, side), made_images(12, 1, side))
