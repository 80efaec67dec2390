"""Target classifiers: what is trained, and later attacked."""

from semsim.registry import Registry
from semsim.targets.convnet import ConvNet8, SmallCNN
from semsim.targets.model import Architecture, TargetModel, load_target, save_target, target_facts
from semsim.targets.resnet import ResNet20x4

TARGETS: Registry[type[Architecture]] = Registry(
    "target architecture",
    {
        "resnet20-4": ResNet20x4,
        "convnet8": ConvNet8,
        "cnn-small": SmallCNN,
    },
)

__all__ = ["TARGETS", "Architecture", "TargetModel", "load_target", "save_target", "target_facts"]
