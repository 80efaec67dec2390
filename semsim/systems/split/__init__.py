"""Split inference: a client keeps the ends of a network, a server runs the middle and looks on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from semsim.base.registry import Registry

if TYPE_CHECKING:
    from semsim.systems.split.defences import SplitDefence
    from semsim.systems.split.networks import SplitNetwork

SPLIT_NETWORKS: Registry[type[SplitNetwork]] = Registry(
    "split network",
    {
        "small": "semsim.systems.split.networks:SmallResNet",
        "resnet18": "semsim.systems.split.networks:ResNet18",
        "vgg16": "semsim.systems.split.networks:Vgg16",
    },
)
SPLIT_DEFENCES: Registry[type[SplitDefence]] = Registry(
    "defence of split inference",
    {
        "none": "semsim.systems.split.defences:Undefended",
        "shredder": "semsim.systems.split.defences:Shredder",
        "single": "semsim.systems.split.defences:Single",
        "dr-single": "semsim.systems.split.defences:DropoutSingle",
        "dr-ensemble": "semsim.systems.split.defences:DropoutEnsemble",
        "ensembler": "semsim.systems.split.defences:Ensembler",
        "random-head": "semsim.systems.split.defences:RandomHead",
    },
)
