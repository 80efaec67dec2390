"""Training strategies and defences: what a participant does before it shares anything."""

from semsim.defences.base import Augmented, Defence
from semsim.defences.crop_flip import CropFlip
from semsim.defences.gradient_noise import GradientNoise
from semsim.defences.none import NoDefence
from semsim.registry import Registry

DEFENCES: Registry[type[Defence]] = Registry(
    "defence",
    {
        "none": NoDefence,
        "crop-flip": CropFlip,
        "gradient-noise": GradientNoise,
    },
)

__all__ = ["DEFENCES", "Augmented", "Defence"]
