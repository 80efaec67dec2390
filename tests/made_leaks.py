"""A few smooth made-up images for attacks on federated learning."""

import torch

from semsim.systems.federated.data import FederatedData, of_images
from semsim.types import LabelledImages


def made_images(count: int = 12, side: int = 12, classes: int = 3) -> LabelledImages:
    """Smooth colour ramps with 8-bit values; each its own."""
    rng = torch.Generator().manual_seed(5)
    corners = torch.rand(count, 3, 2, 2, generator=rng)
    images = torch.nn.functional.interpolate(corners, (side, side), mode="bilinear")
    return LabelledImages(
        dataset="made",
        classes=tuple("abc"[:classes]),
        ids=tuple(f"made-{place}" for place in range(count)),
        images=(images * 255).round() / 255,
        labels=torch.arange(count) % classes,
    )


def made_data(count: int = 12, side: int = 12) -> FederatedData:
    """The same images as training and test examples."""
    images = made_images(count, side)
    return of_images(images, images)
