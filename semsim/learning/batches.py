"""Images as training sees them: decoded once, drawn by number, augmented by a generator."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from semsim.images import read_image
from semsim.metrics.network import resize


def load_table(paths: Sequence[Path], side: int) -> Tensor:
    """All images as (N, 3, side, side) uint8, a quarter of what floats would take.

    They are resized as `SemSimModel` does in scoring. Raises `DataError` for one that is missing
    or broken.
    """
    rows = [resize(read_image(path)[None], (side, side))[0] for path in paths]
    return torch.stack([(row * 255).round().byte() for row in rows])


def take(table: Tensor, numbers: np.ndarray) -> Tensor:
    """The numbered images of `table`: (M, 3, S, S) float32 in [0, 1].

    Args:
        table: (N, 3, S, S) uint8, as of `load_table`.
        numbers: (M,) int, each below N.
    """
    return table[torch.from_numpy(numbers)].float() / 255


def channel_statistics(table: Tensor) -> tuple[list[float], list[float]]:
    """Mean and standard deviation of each channel of a table, in units of [0, 1].

    Args:
        table: (N, C, H, W) uint8. A channel that never changes has 1/255 for its deviation.
    """
    values = table.permute(1, 0, 2, 3).flatten(1).double() / 255
    # A channel that never changes must not be divided by nothing.
    return values.mean(1).tolist(), values.std(1).clamp_min(1 / 255).tolist()


def crop_and_flip(
    images: Tensor, rng: np.random.Generator, alike: np.ndarray | None = None
) -> Tensor:
    """Each image moved by up to an eighth of its side, black behind it, and maybe mirrored.

    Args:
        images: (N, C, S, S). The usual crop of 32×32 after padding by 4, at any size.
        alike: (N,) int; images of the same number are moved alike. Each on its own if None.
    """
    n, _, _, side = images.shape
    moves, move = np.unique(np.arange(n) if alike is None else alike, return_inverse=True)
    pad = side // 8
    rows = _windows(rng, len(moves), side, pad)
    columns = _windows(rng, len(moves), side, pad)
    mirrored = rng.random(len(moves)) < 0.5
    columns[mirrored] = columns[mirrored, ::-1]
    return _cut(F.pad(images, (pad, pad, pad, pad)), rows[move], columns[move])


def mildly_changed(images: Tensor, rng: np.random.Generator) -> Tensor:
    """Each image moved by a pixel or so, a little lighter or darker, with a little noise.

    Args:
        images: (N, C, S, S) in [0, 1]. Moved by up to a 32nd of the side, edges repeated;
            brightness times 0.95 to 1.05; noise of standard deviation 0.02. People would not see
            another image.
    """
    n, _, _, side = images.shape
    pad = max(1, side // 32)
    rows, columns = _windows(rng, n, side, pad), _windows(rng, n, side, pad)
    light = torch.from_numpy(rng.uniform(0.95, 1.05, size=(n, 1, 1, 1)).astype(np.float32))
    noise = torch.from_numpy(rng.normal(0, 0.02, size=images.shape).astype(np.float32))
    moved = _cut(F.pad(images, (pad, pad, pad, pad), mode="replicate"), rows, columns)
    return (moved * light + noise).clamp(0, 1)


def _windows(rng: np.random.Generator, n: int, side: int, pad: int) -> np.ndarray:
    """For each of `n` images the `side` consecutive pixels that are kept, (n, side)."""
    return rng.integers(0, 2 * pad + 1, size=(n, 1)) + np.arange(side)


def _cut(padded: Tensor, rows: np.ndarray, columns: np.ndarray) -> Tensor:
    """Of each image the pixels in its own rows and columns, (N, C, S, S)."""
    which = torch.arange(len(padded))[:, None, None]
    picked = padded[
        which, :, torch.from_numpy(rows)[:, :, None], torch.from_numpy(columns)[:, None, :]
    ]
    return picked.permute(0, 3, 1, 2).contiguous()
