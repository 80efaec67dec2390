"""What the SemSim paper did and what it prints (Sun et al. 2023, arXiv:2309.13038).

Where the paper is silent the number is of its authors' released code, and said to be.
"""

from collections.abc import Mapping
from typing import NamedTuple

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


# |ρ| and |τ| of each of `METRICS` over 14 targets, by table, row and sign. Table 2 is on CIFAR-100.
PRINTED: Mapping[tuple[int, str, str], tuple[float, ...]] = {
    (1, "CIFAR-100", "rho"): (0.6703, 0.6176, 0.3939, 0.5127, 0.7363, 0.8637),
    (1, "CIFAR-100", "tau"): (0.4725, 0.4286, 0.2904, 0.3978, 0.5604, 0.7143),
    (1, "Caltech-101", "rho"): (0.6970, 0.7349, 0.7218, 0.5127, 0.2242, 0.8182),
    (1, "Caltech-101", "tau"): (0.5556, 0.5525, 0.5244, 0.4072, 0.1556, 0.6889),
    (1, "Imagenette", "rho"): (0.5382, 0.6395, 0.6433, 0.6539, 0.4791, 0.8257),
    (1, "Imagenette", "tau"): (0.4349, 0.5525, 0.5108, 0.5922, 0.4252, 0.7012),
    (1, "CelebA", "rho"): (0.7495, 0.7349, 0.6846, 0.5824, 0.1516, 0.8263),
    (1, "CelebA", "tau"): (0.5604, 0.5525, 0.5264, 0.4505, 0.0989, 0.6923),
    (1, "Stanford Dogs", "rho"): (0.4023, 0.3968, 0.4782, 0.5031, 0.3969, 0.7120),
    (1, "Stanford Dogs", "tau"): (0.3537, 0.2743, 0.3048, 0.3929, 0.3196, 0.5938),
    (2, "DLG", "rho"): (0.6515, 0.6367, 0.4069, 0.5477, 0.7268, 0.8749),
    (2, "DLG", "tau"): (0.4857, 0.4174, 0.2858, 0.4294, 0.5237, 0.7342),
    (2, "CAFE", "rho"): (0.7104, 0.6916, 0.5870, 0.6793, 0.6925, 0.8864),
    (2, "CAFE", "tau"): (0.5392, 0.4259, 0.3318, 0.4762, 0.4735, 0.7510),
    (2, "GradAttack", "rho"): (0.6831, 0.6944, 0.5753, 0.6841, 0.7204, 0.8437),
    (2, "GradAttack", "tau"): (0.4943, 0.4980, 0.3495, 0.4531, 0.4819, 0.7260),
}
# What the text says of figures whose points it does not print.
SAID = {
    "budget": "50 originals beat PSNR and FID; fewer originals agree less (Figure 7A).",
    "backbone": "LeNet has |τ| above 0.65, larger networks more (Figure 7B).",
    "loss": "triplet and contrastive agree with people about alike (Figure 7C).",
    "margin": "a margin near 1 agrees best (Figure 9).",
    "pictures": "metrics agree weakly with each other (|τ| 0.29 of PSNR and LPIPS) and with people "
    "(0.29 SSIM, 0.40 LPIPS; Figure 3). People fail on pictures that PSNR puts first (Figure 5). "
    "SemSim puts all that they recognise before all that they do not, in two examples, and PSNR "
    "does not (Figure 6).",
}
