"""A network of somebody's own, in files of theirs."""

from pathlib import Path

NETWORK = """
from torch import nn
from {package}parts import activation


class Tiny(nn.Module):
    def __init__(self, num_classes, image_size, width=4):
        super().__init__()
        height, wide = image_size
        self.layers = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=4), nn.BatchNorm2d(width), activation(), nn.Flatten(),
        )
        self.last = nn.Linear(width * ((height - 3) // 4 + 1) * ((wide - 3) // 4 + 1), num_classes)

    def forward(self, images):
        return self.last(self.layers(images))


def wrong_shape(num_classes, image_size):
    return Tiny(num_classes + 1, image_size)


def no_module(num_classes, image_size):
    return lambda images: images


def no_size(num_classes):
    return Tiny(num_classes, (32, 32))


def for_small_images(num_classes, image_size):
    return Tiny(num_classes, (8, 8))


def idle(num_classes, image_size):
    made = Tiny(num_classes, image_size)
    made.spare = nn.Linear(2, 2)
    return made


def frozen(num_classes, image_size):
    made = Tiny(num_classes, image_size)
    made.last.requires_grad_(False)
    return made


class Overwriting(Tiny):
    def forward(self, images):
        features = self.layers[0](images)
        return self.last((self.layers[2](features) + features).flatten(1))


def overwriting(num_classes, image_size):
    made = Overwriting(num_classes, image_size)
    made.layers[1] = nn.Identity()
    return made


def empty(num_classes, image_size):
    return nn.Flatten()
"""
PARTS = """
from torch import nn


def activation():
    return nn.ReLU(inplace=True)
"""


def write_network(folder: Path, module: str) -> str:
    """`module` with the class Tiny, beside what it imports; a package's where it has a dot."""
    package, _, name = module.rpartition(".")
    place = folder / package if package else folder
    place.mkdir(parents=True, exist_ok=True)
    if package:
        (place / "__init__.py").write_text("")
    (place / f"{name}.py").write_text(NETWORK.format(package=f"{package}." if package else ""))
    (place / "parts.py").write_text(PARTS)
    return f"{module}:Tiny"
