"""Distances of pixels and structure that stand where a SemSim has its network.

Their weights are what the calibrated baseline learns; see `semsim.learning.calibration`.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# The blocks that are compared, in the order of their weights.
NAMES = ("pixels", "coarse pixels", "structure", "coarse structure")
_COARSE = 4  # pixels a side that become one
_WINDOW = 7  # pixels a side, of the mean and spread that structure is relative to
_FLAT = 0.03  # spread below which a window counts as flat, as in SSIM (Wang et al. 2004, C2)


class PixelBlocks(nn.Module):
    """Features of images (N, 3, S, S) in [0, 1]: their blocks, weighted; nothing in it learns.

    Attributes:
        weights: (B,) ≥ 0; the squared distance of two images is the weighted sum of the blocks'.
    """

    weights: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weights", torch.ones(len(NAMES)))

    def forward(self, images: Tensor) -> Tensor:
        """Weighted blocks (N, d) of images (N, 3, S, S) in [0, 1]."""
        parts = zip(pixel_blocks(images), self.weights.sqrt(), strict=True)
        return torch.cat([block * root for block, root in parts], dim=1)


def pixel_blocks(images: Tensor) -> list[Tensor]:
    """Of images (N, C, S, S) in [0, 1] the blocks of `NAMES`, (N, d) each.

    The squared distance of two images is, in "pixels", their mean squared error; in "coarse
    pixels" that of means of 4×4; in "structure" that of pixels less the mean of the window around
    them in units of its standard deviation, which is what SSIM's structure term correlates; in
    "coarse structure" that of an image of half the side.
    """
    half = F.avg_pool2d(images, 2) if images.shape[-1] >= 2 * _WINDOW else images
    side = min(_COARSE, images.shape[-1])
    parts = (images, F.avg_pool2d(images, side), _structure(images), _structure(half))
    return [part.flatten(1) / part[0].numel() ** 0.5 for part in parts]


def _structure(images: Tensor) -> Tensor:
    window = min(_WINDOW, images.shape[-1])

    def smooth(values: Tensor) -> Tensor:
        sides = (window // 2, (window - 1) // 2)
        padded = F.pad(values, (*sides, *sides), mode="replicate")
        return F.avg_pool2d(padded, window, stride=1)

    mean = smooth(images)
    spread = (smooth(images**2) - mean**2).clamp_min(0)
    found: Tensor = (images - mean) / (spread + _FLAT**2).sqrt()
    return found
