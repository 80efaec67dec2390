"""Training strategies and defences: what a participant does before it shares anything."""

from semsim.defences.base import Augmented, Defence
from semsim.defences.composed import Composed
from semsim.defences.crop_flip import CropFlip
from semsim.defences.gradient_noise import GradientNoise
from semsim.defences.gradient_pruning import GradientPruning
from semsim.defences.none import NoDefence
from semsim.defences.policies import Ats, Operations
from semsim.defences.spec import Spec, make, parse, spell
from semsim.defences.strategies import STRATEGIES
from semsim.registry import Registry

DEFENCES: Registry[type[Defence]] = Registry(
    "defence",
    {
        "none": NoDefence,
        "crop-flip": CropFlip,
        "ats": Ats,
        "ops": Operations,
        "gradient-noise": GradientNoise,
        "gradient-pruning": GradientPruning,
        "composed": Composed,
    },
)

__all__ = [
    "DEFENCES",
    "STRATEGIES",
    "Augmented",
    "Defence",
    "Spec",
    "make",
    "parse",
    "spell",
]
