"""Images are (N, C, H, W) float32 RGB in [0, 1]; this file is where they meet the disk."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from semsim.errors import DataError

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".webp", ".tif", ".tiff"}


def read_image(path: Path, size: tuple[int, int] | None = None) -> Tensor:
    """The image at `path` as (3, H, W) float32 in [0, 1]; grey becomes RGB.

    size: (H, W) to resize to (bicubic, antialiased), or None to keep the image's own.
    Raises `DataError` that names the file when it is missing or not an image.
    """
    try:
        with Image.open(path) as file:
            picture = file.convert("RGB")
    except FileNotFoundError:
        raise DataError(f"No image at {path}.") from None
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        raise DataError(f"{path} is not a readable image ({error}).") from error
    if size is not None and picture.size != (size[1], size[0]):
        picture = picture.resize((size[1], size[0]), Image.Resampling.BICUBIC)
    return torch.from_numpy(np.asarray(picture, dtype=np.float32) / 255).permute(2, 0, 1)


def read_images(paths: Sequence[Path], size: tuple[int, int] | None = None) -> Tensor:
    """Images at `paths` as (N, 3, H, W); `DataError` names the first of another size."""
    if not paths:
        raise DataError("No images were given.")
    images = [read_image(path, size) for path in paths]
    for path, image in zip(paths, images, strict=True):
        if image.shape != images[0].shape:
            raise DataError(
                f"{path} is {_size(image)} but {paths[0]} is {_size(images[0])}; "
                "all images of a set need one size."
            )
    return torch.stack(images)


def to_uint8(image: Tensor) -> np.ndarray:
    """(C, H, W) in [0, 1] as (H, W, C) uint8, rounded to nearest."""
    return (image.detach().clamp(0, 1) * 255).round().byte().permute(1, 2, 0).cpu().numpy()


def write_png(image: Tensor, path: Path) -> None:
    """Write (3, H, W) in [0, 1] as a lossless PNG without metadata."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(to_uint8(image)).save(path, format="PNG", optimize=True)


def is_image_file(path: Path) -> bool:
    """Whether the name of `path` ends like an image's and is not hidden."""
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".")


def _size(image: Tensor) -> str:
    return f"{image.shape[2]}×{image.shape[1]}"
