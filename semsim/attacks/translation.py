"""Undoing a shift: augmentation moves the private image, and the border it leaves gives it away.

Random crops and the translations of ATS (Gao et al. 2021, arXiv:2011.12505) move the image before
its gradient is taken. The vacated border has one colour, black, or a grey where the contrast was
changed afterwards, so an attacker can read the move off a first reconstruction.
"""

import math
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

_ERROR = 0.03  # of a pixel in a good reconstruction; below it nothing is told apart


@dataclass(frozen=True, kw_only=True)
class Move:
    """By how many pixels an image was moved, right and down positive, and what fills the border.

    fill_right, fill_down: brightness, 0 to 1, of the columns and of the rows left behind.
    """

    right: int = 0
    down: int = 0
    fill_right: float = 0.0
    fill_down: float = 0.0

    @property
    def shift(self) -> tuple[int, int]:
        """(right, down) in pixels."""
        return self.right, self.down


STILL = Move()


def moved(images: Tensor, move: Move) -> Tensor:
    """Images (…, H, W) moved by `move`, first sideways; of the same shape, differentiable.

    What leaves the frame is lost; what is left behind has the fill.
    """
    across = _shifted(images, move.right, move.fill_right)
    return _shifted(across.mT, move.down, move.fill_down).mT


def estimate_move(image: Tensor, *, limit: int, fill: float | None = 0.0) -> Move:
    """The move that explains the border of a reconstruction best; none where there is no border.

    image: (C, H, W) in [0, 1], a reconstruction of the moved image. limit: the longest move tried,
    in pixels. fill: brightness of the border, or None for any one grey, which is then read off.
    Each width of border splits the image into a strip of one grey with small errors and a picture
    with errors as large as its contrast; the split of the highest Gaussian likelihood wins.
    A dark rim of the picture itself can look the same: let the attack's objective decide between
    the image with and without the move.
    """
    down, fill_down = _best_border(image.mT, limit, fill)
    # Rows come last in a move, so they are whole, and would spoil the columns' grey.
    rows = image[:, max(down, 0) : image.shape[1] + min(down, 0)]
    right, fill_right = _best_border(rows, limit, fill)
    return Move(right=right, down=down, fill_right=fill_right, fill_down=fill_down)


def _best_border(image: Tensor, limit: int, fill: float | None) -> tuple[int, float]:
    """Columns of the best border, negative on the right side, and its brightness."""
    limit = min(limit, image.shape[-1] - 1)
    widths = [side * width for width in range(1, limit + 1) for side in (1, -1)]
    best, best_fill = 0, 0.0
    highest = _likelihood(image[..., :0], 0.0, image)
    for width in widths:
        strip = image[..., :width] if width > 0 else image[..., width:]
        picture = image[..., width:] if width > 0 else image[..., :width]
        level = float(strip.median()) if fill is None else fill
        likelihood = _likelihood(strip, level, picture)
        if likelihood > highest:
            best, best_fill, highest = width, level, likelihood
    return best, best_fill


def _likelihood(strip: Tensor, level: float, picture: Tensor) -> float:
    """Log-likelihood, but for a constant, of a strip around `level` beside a picture."""
    contrast = picture - picture.mean(dim=(-2, -1), keepdim=True)
    found = -picture.numel() * math.log(max(float(contrast.square().mean()), _ERROR**2)) / 2
    if strip.numel():
        found -= (
            strip.numel() * math.log(max(float((strip - level).square().mean()), _ERROR**2)) / 2
        )
    return found


def _shifted(images: Tensor, shift: int, level: float) -> Tensor:
    """Columns moved right by `shift`, or left where it is negative."""
    if shift == 0:
        return images
    kept = images[..., : images.shape[-1] - shift] if shift > 0 else images[..., -shift:]
    return F.pad(kept, (max(shift, 0), max(-shift, 0)), value=level)
