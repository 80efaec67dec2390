"""Setup and printed results of the SemSim paper (Sun et al. 2023, arXiv:2309.13038).

Where the paper is silent the number is of its authors' released code, and said to be.
"""

from collections.abc import Mapping
from typing import NamedTuple

from semsim.base.storage.places import toml_of

METRICS = ("PSNR", "MSE", "SSIM", "LPIPS", "FID", "SemSim")  # the columns of Tables 1 and 2
VOTES_PER_IMAGE = 5
LIST_SIZE = 20  # words offered for a picture, the right one among them


class DataSet(NamedTuple):
    """One of the five data sets, and the targets trained on it.

    title: as the paper has it. dataset: as in `semsim.datasets`. classes, pixels: of the code.
    images: annotated for each target. task: what people were asked. architectures: the two of
    Table 3. epochs, batch_size: of the code, which names no epochs for Imagenette.
    """

    title: str
    dataset: str
    classes: int
    pixels: int
    images: int
    task: str
    architectures: tuple[str, str]
    epochs: int
    batch_size: int


_NAMED, _PAIRED = "recognition", "pair"
_SMALL, _LARGE = ("resnet20-4", "densenet40"), ("resnet50", "resnet152")
_TINY = ("resnet20-4", "convnet8")
DATA_SETS: tuple[DataSet, ...] = (
    DataSet("CIFAR-100", "cifar100", 100, 32, 600, _NAMED, _TINY, 200, 64),
    DataSet("Caltech-101", "caltech101", 101, 64, 700, _NAMED, _SMALL, 100, 64),
    DataSet("Imagenette", "imagenette", 10, 112, 100, _NAMED, _LARGE, 100, 8),
    DataSet("CelebA", "celeba", 476, 64, 100, _PAIRED, _SMALL, 100, 64),
    DataSet("Stanford Dogs", "stanford-dogs", 120, 64, 100, _PAIRED, _LARGE, 100, 16),
)
LR, LOSS_SCALE = 0.1, 0.5  # Appendix C; the code halves the loss

# Table 3, column by column: its words, what we train, and what the authors' code trains instead.
STRATEGIES: tuple[tuple[str, str, str], ...] = (
    ("vanilla", "none", "none"),
    ("RandomResizedCrop & RandomHorizontalFlip", "resized-crop-flip", "crop-flip"),
    ("TranslateX & Invert & TranslateY", "3-1-7", "3-1-7-code"),
    ("TranslateY & Autocontrast & Autocontrast", "43-18-18", "43-18-18-code"),
    ("[7], Gao et al. 2021", "hybrid", "hybrid-code"),
    ("Gaussian (10⁻³)", "noise", "noise-code"),
    ("Pruning (70 %)", "pruning", "pruning-code"),
)


class Attack(NamedTuple):
    """One of the four attacks. text: as in `semsim.attacks`. source: of its settings."""

    title: str
    text: str
    source: str


# The first attacks every data set, the others CIFAR-100. The paper states no setting of any.
MAIN_ATTACK = Attack("InvGrad", "invgrad:code", "the SemSim authors' code: 8000 steps, TV 1e-4")
OTHER_ATTACKS: tuple[Attack, ...] = (
    Attack("DLG", "dlg:paper", "DLG's own paper: 1200 calls of L-BFGS, image and label together"),
    Attack("CAFE", "cafe:paper", "CAFE's code: 20,000 steps; vertical federated learning"),
    Attack("GradAttack", "gradattack:paper", "GradAttack's examples: 10,000 steps, label known"),
)


_PRINTED = toml_of("semsim.papers", "printed.toml")["semsim"]
# |ρ| and |τ| of each of `METRICS` over 14 targets, by table, row and sign. Table 2 is on CIFAR-100.
PRINTED: Mapping[tuple[int, str, str], tuple[float, ...]] = {
    (table, row, sign): tuple(cells) for table, row, sign, *cells in _PRINTED["printed"]
}
# What the text says of figures whose points it does not print.
SAID: Mapping[str, str] = _PRINTED["said"]
