"""Coordinates in which natural images are small: cosine waves, opponent colours, around grey."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from semsim.base.errors import SettingsError

GREY = 0.5


@dataclass(frozen=True, kw_only=True)
class ImageBasis:
    """A fixed linear map between coefficients and images, with no training data behind it.

    image = 0.5 + inverse DCT of (amplitude × coefficients), turned from opponent colours to RGB.
    A natural image has coefficients of about unit size, so that all of them are equally easy to
    find for an optimiser that starts at 0, the grey image.

    Attributes:
        rows: (H, H) and columns: (W, W), orthonormal cosine transforms, one frequency a row.
        colours: (C, C), orthonormal, one opponent axis a row.
        amplitude: (C, H, W).
    """

    rows: Tensor
    columns: Tensor
    colours: Tensor
    amplitude: Tensor

    def to(self, like: Tensor) -> "ImageBasis":
        """The same basis in the device and precision of `like`, a tensor of any shape."""
        return ImageBasis(
            rows=self.rows.to(like),
            columns=self.columns.to(like),
            colours=self.colours.to(like),
            amplitude=self.amplitude.to(like),
        )

    def image(self, coefficients: Tensor) -> Tensor:
        """Images, not clamped, of `coefficients`; both (N, C, H, W)."""
        waves = self.rows.T @ (self.amplitude * coefficients) @ self.columns
        return GREY + torch.einsum("oc,nohw->nchw", self.colours, waves)

    def coefficients(self, images: Tensor) -> Tensor:
        """The coefficients that `image` turns into `images`; both (N, C, H, W)."""
        opponent = torch.einsum("oc,nchw->nohw", self.colours, images - GREY)
        return (self.rows @ opponent @ self.columns.T) / self.amplitude

    def boxed(self, coefficients: Tensor) -> Tensor:
        """Of the nearest image, by pixels, that is inside [0, 1]; both (N, C, H, W)."""
        return self.coefficients(self.image(coefficients).clamp(0, 1))


def image_basis(
    shape: tuple[int, int, int], *, spread: float, decay: float, chroma: tuple[float, float]
) -> ImageBasis:
    """The basis of images of `shape` (C, H, W), C being 1 or 3, in float64.

    Args:
        spread: Standard deviation of the mean brightness.
        decay: Exponent by which the amplitude of a wave falls with its frequency in cycles an
            image; natural images have about 1 to 1.2 (Field 1987, "Relations between the statistics
            of natural images").
        chroma: Scale of the blue-yellow and the red-green axis beside that of brightness.
    """
    channels, height, width = shape
    down = torch.arange(height, dtype=torch.float64)[:, None] / 2
    right = torch.arange(width, dtype=torch.float64)[None] / 2
    cycles = (down.square() + right.square()).sqrt()
    level = spread * math.sqrt(height * width) / (1 + 2 * cycles) ** decay
    scale = torch.tensor([1.0, *chroma][:channels], dtype=torch.float64)
    return ImageBasis(
        rows=cosine_waves(height),
        columns=cosine_waves(width),
        colours=opponent_colours(channels),
        amplitude=(scale[:, None, None] * level),
    )


def cosine_waves(size: int) -> Tensor:
    """The orthonormal DCT-II matrix, (size, size) in float64, one frequency a row."""
    place = torch.arange(size, dtype=torch.float64) + 0.5
    frequency = torch.arange(size, dtype=torch.float64)[:, None]
    waves = torch.cos(math.pi / size * frequency * place) * math.sqrt(2 / size)
    waves[0] /= math.sqrt(2)
    return waves


def opponent_colours(channels: int) -> Tensor:
    """Brightness, blue-yellow and red-green as orthonormal rows over R, G, B: (3, 3) float64.

    Args:
        channels: 1 or 3; of one channel brightness alone, (1, 1).

    Raises:
        SettingsError: For others.
    """
    if channels == 1:
        return torch.ones(1, 1, dtype=torch.float64)
    if channels != 3:
        raise SettingsError(
            f"This attack knows grey and colour pictures, of 1 or 3 channels; these have {channels}"
            ". Take an attack on pixels, such as invgrad."
        )
    axes = torch.tensor([[1.0, 1, 1], [1, 1, -2], [1, -1, 0]], dtype=torch.float64)
    return axes / axes.norm(dim=1, keepdim=True)
