"""Training strategies and defences: what a participant does before it shares anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from semsim.base.registry import Registry
from semsim.defences.as_text import make, parse, spell
from semsim.defences.strategies import STRATEGIES

if TYPE_CHECKING:
    from semsim.defences.base import Defence

DEFENCES: Registry[type[Defence]] = Registry(
    "defence",
    {
        "none": "semsim.defences.none:NoDefence",
        "crop-flip": "semsim.defences.crop_flip:CropFlip",
        "resized-crop-flip": "semsim.defences.resized_crop_flip:ResizedCropFlip",
        "ats": "semsim.defences.policies:Ats",
        "ops": "semsim.defences.policies:Operations",
        "gradient-noise": "semsim.defences.gradient_noise:GradientNoise",
        "gradient-pruning": "semsim.defences.gradient_pruning:GradientPruning",
        "dp-sgd": "semsim.defences.dp_sgd:DpSgd",
        "composed": "semsim.defences.composed:Composed",
    },
)

__all__ = ["DEFENCES", "STRATEGIES", "make", "parse", "spell"]
