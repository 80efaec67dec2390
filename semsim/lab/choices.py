"""Titles of the choices on the pages of the attack lab, and a line on each.

The first of a list are what most people need; the others stand behind "More".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semsim.datasets.fetch_job import fetchable
from semsim.distractors.model_card import tested
from semsim.distractors.registry import judges


@dataclass(frozen=True, kw_only=True)
class FormChoice:
    """One thing to choose.

    Attributes:
        item: How programs call it.
        usual: For most people, not behind More.
    """

    item: str
    title: str
    line: str
    usual: bool = True


def choices_from(
    usual: Mapping[str, tuple[str, str]], more: Mapping[str, tuple[str, str]]
) -> tuple[FormChoice, ...]:
    """Return choices from their title and line by item: the usual ones, then those behind More."""
    return tuple(
        FormChoice(item=item, title=title, line=line, usual=known is usual)
        for known in (usual, more)
        for item, (title, line) in known.items()
    )


PICTURES = choices_from(
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

ARCHITECTURES = choices_from(
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

STRATEGIES = choices_from(
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

ATTACK_CHOICES = choices_from(
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

SHARE_CHOICES = choices_from(
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


def absent() -> dict[str, str]:
    """Return, by name, why data sets cannot be chosen: their files are not on this machine."""
    return {name: why for name, why in reasons().items() if why}


def reasons() -> dict[str, str]:
    """Return why each data set that has to be fetched cannot be chosen; "" where it can."""
    return {
        name: "" if one.present() else f"Not on this machine ({_size(one)})."
        for name, one in fetchable().items()
    }


def _size(data: Any) -> str:
    return str(type(data).about).rpartition(", ")[2]


def judge_choices(checkpoints: Path) -> list[tuple[str, str]]:
    """No judge first, then each with what it is of and how good it is on spoilt pictures."""
    known = {name: facts for name, facts in judges(checkpoints).items() if facts}
    words = {
        name: f"{one['dataset']['name']}, {tested(one['degraded'])}" for name, one in known.items()
    }
    return [("", "None: random lists"), *((name, f"{name}: {of}") for name, of in words.items())]
