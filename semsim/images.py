"""Images are (N, C, H, W) float32 RGB in [0, 1]; this file is where they meet the disk."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from semsim.base.errors import DataError
from semsim.base.picture_files import SUFFIXES, read_pixels
from semsim.base.storage.folders import is_hidden

if TYPE_CHECKING:
    from torch import Tensor

# Pictures that nobody would miss unless they are named.
_UNREAD_KINDS = {
    *(".gif", ".jfif", ".jpe", ".apng", ".avif", ".heic", ".heif", ".jp2", ".jxl", ".svg", ".tga"),
    *(".pjpeg", ".pjp", ".pcx", ".qoi", ".pam", ".pfm", ".xcf", ".raw", ".arw", ".cr3", ".npy"),
    *(".psd", ".ico", ".exr", ".hdr", ".dng", ".cr2", ".nef", ".eps", ".pbm", ".pnm", ".dib"),
}


def read_image(path: Path, size: tuple[int, int] | None = None) -> Tensor:
    """The image at `path` as (3, H, W) float32 in [0, 1], read as `read_pixels` does."""
    return from_uint8(read_pixels(path, size))


def why_unread(path: Path) -> str:
    """Return why a picture is of no kind that is read, behind its name; "" for all else."""
    if path.suffix.lower() not in _UNREAD_KINDS or is_hidden(PurePath(path.name)):
        return ""
    return f"is a picture of a kind that is not read ({path.suffix}): save it as PNG."


def read_images(paths: Sequence[Path], size: tuple[int, int] | None = None) -> Tensor:
    """Images at `paths` as (N, 3, H, W); `DataError` names the first of another size."""
    import torch  # a page that opens a picture needs none

    if not paths:
        raise DataError("No images were given.")
    images = [read_image(path, size) for path in paths]
    for path, image in zip(paths, images, strict=True):
        if image.shape != images[0].shape:
            raise DataError(
                f"{path} is {size_words(image)} but {paths[0]} is {size_words(images[0])}; "
                "all images of a set need one size."
            )
    return torch.stack(images)


def from_uint8(picture: np.ndarray) -> Tensor:
    """(H, W, C) uint8 as (C, H, W) float32 in [0, 1]."""
    import torch

    return torch.from_numpy(picture.astype(np.float32) / 255).permute(2, 0, 1)


def to_uint8(image: Tensor) -> np.ndarray:
    """(C, H, W) in [0, 1] as (H, W, C) uint8, rounded to nearest."""
    return (image.detach().clamp(0, 1) * 255).round().byte().permute(1, 2, 0).cpu().numpy()


def png_of(picture: np.ndarray, side: int | None = None) -> bytes:
    """(H, W, 3) uint8 as a PNG file;

    Args:
        side: Pixels of the longer side at most, None for its own.
    """
    drawn, packed = Image.fromarray(picture), io.BytesIO()
    if side is not None:
        drawn.thumbnail((side, side))
    drawn.save(packed, format="PNG")
    return packed.getvalue()


def write_png(image: Tensor, path: Path) -> None:
    """Write an image, (3, H, W) in [0, 1], as a lossless PNG without metadata.

    Values are rounded to the nearest of 256; folders that are missing are made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(to_uint8(image)).save(path, format="PNG", optimize=True)


def is_image_file(path: Path) -> bool:
    """Return whether the name of `path` ends like an image's and is not hidden."""
    return path.suffix.lower() in SUFFIXES and not is_hidden(PurePath(path.name))


def size_words(image: Tensor) -> str:
    """Width and height of an image (C, H, W), as "32×24"."""
    return f"{image.shape[2]}×{image.shape[1]}"
