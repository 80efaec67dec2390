"""Titles of the choices on the pages of the attack lab, and a line on each.

The first of a list are what most people need; the others stand behind "More".
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from semsim.attacks import ATTACKS, SHARED
from semsim.datasets import DATASETS
from semsim.systems.split import SPLIT_DEFENCES, SPLIT_NETWORKS
from semsim.targets import TARGETS

# The plug-ins behind each list of a form, by the list's name.
LISTS: Mapping[str, Any] = {
    "datasets": DATASETS,
    "architectures": TARGETS,
    "attacks": ATTACKS,
    "shares": SHARED,
    "split-networks": SPLIT_NETWORKS,
    "split-defences": SPLIT_DEFENCES,
}


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One thing to choose. item: how programs call it. usual: for most people, not behind More."""

    item: str
    title: str
    line: str
    usual: bool = True


def _choices(usual: Mapping[str, tuple[str, str]], more: Mapping[str, tuple[str, str]]) -> Any:
    return tuple(
        Choice(item=item, title=title, line=line, usual=known is usual)
        for known in (usual, more)
        for item, (title, line) in known.items()
    )


PICTURES: tuple[Choice, ...] = _choices(
    {
        "symbols": ("Drawn symbols", "47 kinds of signs, made here."),
        "face-or-not": ("Faces or not", "Small grey faces beside other pictures."),
        "cifar100": ("CIFAR-100", "The papers' pictures: 100 kinds of things."),
        "folder": ("A folder of yours", "One folder a class; name it under More."),
    },
    {
        "digits": ("Handwritten digits", "1,797 digits of 8×8, scaled up."),
        "faces": ("People by name", "100 people; the task is who it is."),
        "caltech101": ("Caltech-101", "101 kinds of objects, scaled down."),
        "imagenette": ("Imagenette", "Ten kinds of things from ImageNet."),
        "celeba": ("CelebA", "Faces of 10,177 known people."),
        "stanford-dogs": ("Stanford Dogs", "120 breeds, hard to tell apart."),
    },
)

ARCHITECTURES: tuple[Choice, ...] = _choices(
    {
        "cnn4:activation=silu": ("Small, smooth", "SiLU: leaks most."),
        "cnn4:activation=relu": ("Small, kinked", "With ReLU."),
        "resnet20-4": ("ResNet20-4", "The papers' first."),
        "convnet8": ("ConvNet8", "The papers' second."),
    },
    {
        "lenet": ("LeNet", "Of the first attack's paper."),
        "cnn-small": ("Tiny", "Trained in seconds."),
        "cnn3": ("CNN3", "COPA's four variants."),
        "densenet40": ("DenseNet-40", "Deep, narrow, dense."),
        "resnet50": ("ResNet-50", "A GPU's work."),
        "resnet152": ("ResNet-152", "A GPU's work."),
        "torchvision": ("From torchvision", "Trained on ImageNet."),
    },
)

STRATEGIES: tuple[Choice, ...] = _choices(
    {
        "none": ("Nothing done", "The yardstick of every defence."),
        "crop-flip": ("Cropped and mirrored", "Shifted and flipped at random."),
        "3-1-7": ("Policy 3-1-7", "Moved and inverted."),
        "43-18-18": ("Policy 43-18-18", "Moved, their contrast stretched."),
        "hybrid": ("Both policies", "One of the two policies each time."),
        "pruning": ("Gradient pruned", "The smallest 70 % become zero."),
        "noise": ("Gradient noised", "Random noise is added to it."),
    },
    {
        "dp-sgd": ("DP-SGD", "Clipped and noised image by image, with an ε."),
        "3-1-7-code": ("Policy 3-1-7, as coded", "After cropping, as in the program."),
        "43-18-18-code": ("Policy 43-18-18, as coded", "After cropping, as in the program."),
        "hybrid-code": ("Both policies, as coded", "After cropping, as in the program."),
        "pruning-code": ("Pruned, as coded", "In training only: what leaks is whole."),
        "noise-code": ("Noise, as coded", "In training only: what leaks is clean."),
    },
)

ATTACK_CHOICES: tuple[Choice, ...] = _choices(
    {
        "invgrad": ("Inverting Gradients", "Matches the direction of the gradient."),
        "prior": ("With a natural-image prior", "Ours: the same, among natural pictures."),
        "dlg": ("Deep Leakage", "The first: gradient and label at once."),
        "copa-prior": ("COPA with a prior", "Ours: solves all layers' equations at once."),
    },
    {
        "idlg": ("Deep Leakage, label first", "Reads the label off the gradient, then matches."),
        "gradattack": ("GradAttack", "Matches batch norm statistics as well."),
        "rgap": ("R-GAP", "Solves layer by layer, last one first; for plain networks."),
        "copa": ("COPA", "R-GAP with what the activation can make."),
    },
)

SHARE_CHOICES: tuple[Choice, ...] = _choices(
    {
        "gradient": ("One picture's gradient", "What most papers attack."),
        "batch-gradient": ("The gradient of 8 pictures", "Their mean, as in training."),
        "update": ("Weights after 5 steps on 8", "Federated averaging: what is deployed."),
    },
    {},
)

PRESETS = (
    ("fast", "Fast, for a first look"),
    ("paper", "As published"),
    ("code", "As the authors' code"),
)

SPLIT_NETWORK_CHOICES: tuple[Choice, ...] = _choices(
    {"small:width=16": ("Small ResNet", "Minutes on a laptop.")},
    {"resnet18": ("ResNet-18", "The paper's; a GPU's work."), "vgg16": ("VGG-16", "A GPU's work.")},
)

SPLIT_DEFENCE_CHOICES: tuple[Choice, ...] = _choices(
    {
        "none": ("Nothing", "What every defence is compared with; always run."),
        "single": ("Fixed noise", "One noise picture is added to what is sent."),
        "ensembler:bodies=4,selected=2": ("Ensembler", "Many bodies answer, a secret few count."),
    },
    {
        "shredder": ("Fresh noise", "New noise on every picture, without retraining."),
        "dr-single": ("Dropout", "Parts of the server's answer are dropped in training."),
        "dr-ensemble:bodies=4": ("Dropout, several bodies", "Ensembler's shape, no secret."),
        "dr-ensemble:bodies=10": ("Dropout, ten bodies", "The same, as published."),
        "ensembler:bodies=10,selected=4": ("Ensembler, as published", "Four of ten bodies count."),
        "random-head": ("Untrained head", "What no training of the head can hide."),
    },
)

SPLIT_ATTACK_CHOICES: tuple[Choice, ...] = _choices(
    {
        "adaptive": ("Adaptive", "Trains a copy of the client's part through all bodies."),
        "adaptive-aligned": ("Adaptive, aligned", "Also matched to what is sent: stronger."),
    },
    {
        "one-body": ("One body at a time", "Tries each of the server's bodies alone."),
        "one-body-aligned": ("One body, aligned", "The same, matched to what is sent."),
        "oracle": ("Knows the secret", "No server can; the most that could leak."),
        "oracle-aligned": ("Knows the secret, aligned", "The same, matched to what is sent."),
    },
)

# As a comparison in federated learning runs them: each party's pictures are few.
LEAK_ATTACKS: tuple[Choice, ...] = tuple(
    replace(one, item="invgrad:steps=300,tv=0.002") if one.item == "invgrad" else one
    for one in ATTACK_CHOICES
)

FEDERATED_NETWORKS: tuple[Choice, ...] = _choices(
    {"lenet": ("LeNet", "Two convolutions."), "mlp-3": ("3 layers", "Also for tables.")},
    {
        "lenet-avg": ("LeNet, averaging", "Pools by means."),
        "mlp-5": ("5 layers", "All linear."),
        "mlp-7": ("7 layers", "All linear."),
        "resnet20": ("ResNet-20", "The paper's."),
        "resnet20-add": ("ResNet-20, added", "Shortcuts added."),
        "resnet56": ("ResNet-56", "Slow."),
        "resnet56-add": ("ResNet-56, added", "Slow."),
    },
)

TABLE_CHOICES: tuple[Choice, ...] = _choices(
    {},
    {
        "diabetes": ("Diabetes, a table", "442 people, ten measures; no pictures to attack."),
        "breast-cancer": ("Breast cancer, a table", "569 samples; no pictures to attack."),
    },
)

ARM_CHOICES: tuple[Choice, ...] = _choices(
    {
        "server-pbpfl": ("The server, masked training", "Sees each client's masked update."),
        "links-stripped": ("Eavesdropper on both links", "Takes the noise out, then attacks."),
        "uplink-closed-form": ("Eavesdropper on the uplink", "Solves the first layer; no search."),
        "client-same-mask": ("Another client, same mask", "Undoes the mask it shares."),
    },
    {
        "server-fedavg": ("The server, plain training", "The yardstick; always run."),
        "server-fedavg-canonical": ("The server, plain, rescaled", "Its yardstick; always run."),
        "links-naive": ("Both links, as seen", "Attacks what it sees, noise and all."),
        "links-canonical": ("Both links, rescaled", "Undoes the scale, not the noise."),
        "uplink": ("Uplink, as seen", "Attacks the masked update directly."),
        "client-own-mask": ("Another client, own mask", "Sees only what its own mask shows."),
        "server-zero-sum": ("The server, masks that cancel", "Masks add up to nothing."),
    },
)
