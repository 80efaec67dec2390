"""Random crop after padding, and horizontal flip: augmentation as a training strategy."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from semsim.base.registry import Checked, setting
from semsim.defences.base import Augmented, Defence


@dataclass(frozen=True, kw_only=True)
class CropFlip(Defence, Checked):
    """Mirror with probability `flip`, then shift by up to `padding` pixels each way.

    The vacated border is black, as with padding by zeros before a random crop.
    """

    padding: int = setting(4, least=0)
    flip: float = setting(0.5, least=0, most=1)

    def images(self, images: Tensor, rng: torch.Generator) -> Augmented:
        """As `Defence.images`: moved, and some mirrored."""
        count, p = len(images), self.padding
        flipped = torch.rand(count, generator=rng) < self.flip
        shift_x, shift_y = torch.randint(-p, p + 1, (2, count), generator=rng)
        mirrored = torch.where(flipped.view(-1, 1, 1, 1).to(images.device), images.flip(-1), images)
        padded = F.pad(mirrored, (p, p, p, p))
        height, width = images.shape[-2:]
        moved = torch.stack(
            [
                picture[:, p - dy : p - dy + height, p - dx : p - dx + width]
                for picture, dx, dy in zip(padded, shift_x.tolist(), shift_y.tolist(), strict=True)
            ]
        )
        return Augmented(images=moved, shift_x=shift_x, shift_y=shift_y, flipped=flipped)
