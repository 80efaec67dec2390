"""Target classifiers: what is trained, and later attacked."""

from semsim.registry import Registry
from semsim.targets.bottleneck import ResNet50, ResNet152
from semsim.targets.cnn3 import CNN3
from semsim.targets.convnet import ConvNet8, SmallCNN
from semsim.targets.densenet import DenseNet40
from semsim.targets.lenet import CNN4, LeNet
from semsim.targets.model import Architecture, TargetModel, load_target, save_target, target_facts
from semsim.targets.pretrained import Torchvision
from semsim.targets.resnet import ResNet20x4

TARGETS: Registry[type[Architecture]] = Registry(
    "target architecture",
    {
        "resnet20-4": ResNet20x4,
        "convnet8": ConvNet8,
        "resnet50": ResNet50,
        "resnet152": ResNet152,
        "densenet40": DenseNet40,
        "lenet": LeNet,
        "cnn3": CNN3,
        "cnn4": CNN4,
        "cnn-small": SmallCNN,
        "torchvision": Torchvision,
    },
)

__all__ = ["TARGETS", "Architecture", "TargetModel", "load_target", "save_target", "target_facts"]
