"""Target classifiers: what is trained, and later attacked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from semsim.base.registry import Registry

if TYPE_CHECKING:
    from semsim.targets.model import Architecture

Activation = Literal["relu", "leaky-relu", "silu", "softplus", "tanh", "sigmoid"]
_NAMED = {
    "resnet20-4": "semsim.targets.resnet:ResNet20x4",
    "convnet8": "semsim.targets.convnet:ConvNet8",
    "resnet50": "semsim.targets.resnet:ResNet50",
    "resnet152": "semsim.targets.resnet:ResNet152",
    "densenet40": "semsim.targets.densenet:DenseNet40",
    "lenet": "semsim.targets.lenet:LeNet",
    "cnn3": "semsim.targets.cnn3:CNN3",
    "cnn4": "semsim.targets.lenet:CNN4",
    "mlp": "semsim.targets.mlp:MLP",
    "cnn-small": "semsim.targets.convnet:SmallCNN",
    "cnn-pooled": "semsim.targets.convnet:PooledCNN",
    "imprint": "semsim.targets.imprint:Imprinted",
    "torchvision": "semsim.targets.pretrained:Torchvision",
}
TARGETS: Registry[type[Architecture]] = Registry("target architecture", _NAMED)
# And those of somebody's own, which run code of theirs: from a command line alone, never a page.
NETWORKS: Registry[type[Architecture]] = Registry(
    "target architecture", {**_NAMED, "own": "semsim.targets.own:OwnNetwork"}
)
