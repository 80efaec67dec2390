"""Random crop brought back to full size, and horizontal flip: what the SemSim paper names.

Its authors' program shifts within a black border instead, which is `crop-flip`.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from semsim.base.errors import SettingsError
from semsim.defences.base import Augmented, Defence, unchanged

_TRIES = 10  # draws of a box before the largest one of an allowed shape is taken


@dataclass(frozen=True, kw_only=True)
class ResizedCropFlip(Defence):
    """Mirror with probability `flip`, then magnify a random box of the image to its full size.

    Attributes:
        least, most: Share of the image's area that the box has.
        longest: The most that the box is wider than high, or higher than wide; its logarithm is
            drawn evenly. The usual values are those of torchvision's RandomResizedCrop, after
            Szegedy et al. 2014, arXiv:1409.4842. Resampling is bilinear and antialiased. A
            magnification is no shift, so none is recorded.
    """

    least: float = 0.08
    most: float = 1.0
    longest: float = 4 / 3
    flip: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.least <= self.most <= 1 or self.longest < 1 or not 0 <= self.flip <= 1:
            raise SettingsError(
                "resized-crop-flip takes 0 < least <= most <= 1, longest of 1 or more and flip "
                f"from 0 to 1; got least={self.least}, most={self.most}, longest={self.longest}, "
                f"flip={self.flip}."
            )

    def images(self, images: Tensor, rng: torch.Generator) -> Augmented:
        """Return the images to train on, and whether each is mirrored;

        Args:
            images: (N, C, H, W).
        """
        flipped = torch.rand(len(images), generator=rng) < self.flip
        mirrored = torch.where(flipped.view(-1, 1, 1, 1).to(images.device), images.flip(-1), images)
        size = (images.shape[-2], images.shape[-1])
        made = [_magnified(picture, *self._box(size, rng), size) for picture in mirrored]
        still = unchanged(images).shift_x
        return Augmented(images=torch.stack(made), shift_x=still, shift_y=still, flipped=flipped)

    def _box(self, size: tuple[int, int], rng: torch.Generator) -> tuple[int, int, int, int]:
        """Top, left, height and width of a box in an image of `size`."""
        height, width = size
        for _ in range(_TRIES):
            share, stretch = torch.rand(2, generator=rng).tolist()
            area = height * width * (self.least + share * (self.most - self.least))
            ratio = self.longest ** (2 * stretch - 1)
            wide, high = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < high <= height and 0 < wide <= width:
                top = int(torch.randint(height - high + 1, (1,), generator=rng))
                left = int(torch.randint(width - wide + 1, (1,), generator=rng))
                return top, left, high, wide
        high, wide = (
            min(height, round(width * self.longest)),
            min(width, round(height * self.longest)),
        )
        return (height - high) // 2, (width - wide) // 2, high, wide


def _magnified(
    picture: Tensor, top: int, left: int, high: int, wide: int, size: tuple[int, int]
) -> Tensor:
    box = picture[None, :, top : top + high, left : left + wide]
    return F.interpolate(box, size=size, mode="bilinear", antialias=True)[0]
