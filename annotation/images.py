"""Images as a study keeps them: plain RGB PNG files named by the SHA-256 of their content."""

import hashlib
import io
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from annotation.errors import StudyError
from annotation.kept.whole import whole

LIMIT = "SEMSIM_MAX_MEGAPIXELS"  # environment variable: the largest picture that is read
USUAL_LIMIT = 50.0
# Whose headers tell their size; an icon, for one, holds a picture of another, decoded when opened.
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "PPM", "TIFF", "WEBP")


def read_pixels(path: Path) -> np.ndarray:
    """The image at `path` as (H, W, 3) uint8; raises `StudyError` if there is none to read.

    So it does for one that is too large by its header (see `LIMIT`), before anything is decoded.
    """
    try:
        with Image.open(path, formats=FORMATS) as image:
            _check_size(path, *image.size)
            return np.asarray(image.convert("RGB"))
    except FileNotFoundError:
        raise StudyError(f"{path} is missing.") from None
    except Image.DecompressionBombError as error:  # comes before the size is known
        raise StudyError(f"{path} is too large to be read: {error}") from error
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise StudyError(f"{path} is not a readable image: {error}") from error


def _check_size(path: Path, width: int, height: int) -> None:
    # By the header, so that a small file cannot fill the memory with pixels.
    megapixels, most = width * height / 1e6, _most_megapixels()
    if megapixels > most:
        raise StudyError(
            f"{path} is too large: {width}×{height} is {megapixels:.10g} megapixels; at most "
            f"{most:.10g} are read. Make it smaller, or set {LIMIT} higher."
        )


def _most_megapixels() -> float:
    text = os.environ.get(LIMIT, str(USUAL_LIMIT))
    try:
        most = float(text)
    except ValueError:
        most = 0.0
    if not most > 0:
        raise StudyError(f"{LIMIT} must be a number of megapixels above 0; got {text!r}.")
    return most


def encode(pixels: np.ndarray) -> bytes:
    """`pixels`, (H, W, 3) uint8, as PNG with nothing in it but the pixels: no name, no EXIF."""
    buffer = io.BytesIO()
    Image.fromarray(pixels, "RGB").save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()


def decode(content: bytes) -> np.ndarray:
    """The pixels, (H, W, 3) uint8, that `encode` made `content` of."""
    with Image.open(io.BytesIO(content)) as image:
        return np.asarray(image.convert("RGB"))


def shuffled(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The same pixels, (H, W, 3) uint8, in an order drawn by `rng`: all colours, nothing to see."""
    return rng.permutation(pixels.reshape(-1, pixels.shape[2])).reshape(pixels.shape)


def strip(paths: Sequence[Path], side: int = 64, gap: int = 4) -> bytes:
    """Some pictures side by side as one PNG, none longer than `side`; nothing is smoothed away.

    Raises `StudyError` for a picture that cannot be read.
    """
    pictures = [Image.fromarray(read_pixels(path), "RGB") for path in paths]
    for picture in pictures:
        picture.thumbnail((side, side))
    width, height = (max(one.size[axis] for one in pictures) for axis in (0, 1))
    whole = Image.new("RGBA", (len(pictures) * (width + gap) - gap, height))
    for place, picture in enumerate(pictures):
        whole.paste(picture, (place * (width + gap), 0))
    buffer = io.BytesIO()
    whole.save(buffer, format="PNG")
    return buffer.getvalue()


def sha256(content: bytes) -> str:
    """Hexadecimal SHA-256 of `content`."""
    return hashlib.sha256(content).hexdigest()


def folder_of(kept: str, root: Path) -> Path:
    """The folder of a study's images, where `kept` is its path from `root` on.

    Studies made by earlier versions say where it was on the machine they were made on; if it is
    there no more, it has been moved, and `root` is where it is now.
    """
    folder = root / kept
    return folder if folder.is_dir() else root


def path_of(folder: Path, digest: str) -> Path:
    """Where the image with that SHA-256 lies."""
    return folder / f"{digest}.png"


def keep(folder: Path, content: bytes) -> Path:
    """Write `content` under its SHA-256, whole or not at all; nothing to do if it is there."""
    path = path_of(folder, sha256(content))
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with whole(path) as part:
            part.write_bytes(content)
    return path


def mean_squared_error(a: np.ndarray, b: np.ndarray) -> float:
    """MSE of two (H, W, 3) uint8 images of the same size, on the scale [0, 1]."""
    return float(np.mean((a.astype(np.float64) - b.astype(np.float64)) ** 2) / 255**2)
