"""Split inference: a client keeps the ends of a network, a server runs the middle and looks on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from semsim.registry import Registry

if TYPE_CHECKING:
    from semsim.split.defences import SplitDefence
    from semsim.split.networks import SplitNetwork

SPLIT_NETWORKS: Registry[type[SplitNetwork]] = Registry(
    "split network",
    {
        "small": "semsim.split.networks:SmallResNet",
        "resnet18": "semsim.split.networks:ResNet18",
        "vgg16": "semsim.split.networks:Vgg16",
    },
)
SPLIT_DEFENCES: Registry[type[SplitDefence]] = Registry(
    "defence of split inference",
    {
        "none": "semsim.split.defences:Undefended",
        "shredder": "semsim.split.defences:Shredder",
        "single": "semsim.split.defences:Single",
        "dr-single": "semsim.split.defences:DropoutSingle",
        "dr-ensemble": "semsim.split.defences:DropoutEnsemble",
        "ensembler": "semsim.split.defences:Ensembler",
        "random-head": "semsim.split.defences:RandomHead",
    },
)
