"""Picture files, read as viewers show them; both halves refuse the same ones."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from semsim.base.errors import PictureError, SemsimError, SettingsError
from semsim.base.storage.records import require_file
from semsim.base.words import first_of

LIMIT = "SEMSIM_MAX_MEGAPIXELS"  # environment variable: the largest picture that is read
USUAL_LIMIT = 50.0
# Of the names of pictures.
SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".webp", ".tif", ".tiff"}
# Their headers hold their size. An icon, for one, holds a picture of another, decoded when opened.
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "PPM", "TIFF", "WEBP")
_ORIENTATION = 0x0112  # of EXIF: 1 is upright
# Of 8 bits a channel. Of others PIL cuts off what is above 255: 16 bits of grey become white.
_MODES = {"1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr"}


@contextmanager
def opened_picture(path: Path) -> Iterator[Image.Image]:
    """Yield the picture at `path` as PIL opens it: its header is read, its pixels are not yet.

    Raises:
        PictureError: the file is missing, no picture, of other than 8 bits a channel, or so large
            by its header that it could fill the memory; also what goes wrong with the pixels
            within the block.
        SettingsError: the value of `LIMIT` is no number above 0.
    """
    require_file(path, PictureError, "is not a readable image: {}.")
    try:
        with Image.open(path, formats=FORMATS) as file:
            _check_size(path, *file.size)
            deep = re.search(r"\b[A-Z]+;16[BLN]", str(file.tile))  # of which PIL keeps 8 bits
            kind = deep[0] if deep else file.mode
            if deep or kind not in _MODES:
                raise PictureError(
                    f"{path} has pixels of kind {kind}; expected 8 bits a channel. Save it so."
                )
            yield file
    except FileNotFoundError:
        raise PictureError(f"No image at {path}.") from None
    except Image.DecompressionBombError as error:  # comes before the size is known
        raise PictureError(f"{path} is too large to be read: {error}") from error
    except SemsimError:
        raise
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise PictureError(f"{path} is not a readable image: {error}") from error


def _check_size(path: Path, width: int, height: int) -> None:
    megapixels, most = width * height / 1e6, _most_megapixels()
    if megapixels > most:
        raise PictureError(
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
        raise SettingsError(f"{LIMIT} must be a number of megapixels above 0; got {text!r}.")
    return most


def _check_opaque(path: Path, file: Image.Image) -> None:
    """Raise `PictureError` if the open picture is partly transparent.

    A viewer does not show what such a pixel holds; often it is black.
    """
    if file.has_transparency_data and np.asarray(file.convert("RGBA"))[..., 3].min() < 255:
        raise PictureError(f"{path} is partly transparent; save it without that.")


class PictureFacts(NamedTuple):
    """Facts of a picture.

    Attributes:
        size: (H, W), as it is read.
        turn: How its camera says that it was held (EXIF), 1 upright to 8.
        frames: Whether it has several frames or pages.
    """

    size: tuple[int, int]
    turn: int
    frames: bool


def read_pixels(path: Path, size: tuple[int, int] | None = None) -> np.ndarray:
    """The image at `path` as (H, W, 3) uint8, `upright`; grey becomes RGB.

    Args:
        size: (H, W) to resize to (bicubic, antialiased), or None to keep the image's own. Raises as
            `read_picture` does.
    """
    picture, _ = read_picture(path)
    if size is not None and picture.size != (size[1], size[0]):
        picture = picture.resize((size[1], size[0]), Image.Resampling.BICUBIC)
    return np.asarray(picture)


def read_picture(path: Path) -> tuple[Image.Image, PictureFacts]:
    """Return the picture at `path`, in RGB and turned as its camera says, and what it is.

    Raises as `opened_picture`, and `PictureError` for one that is partly transparent.
    """
    turn = 1
    with opened_picture(path) as file:
        _check_opaque(path, file)
        frames = bool(getattr(file, "is_animated", False))
        with suppress(Exception):  # of a camera's notes that nobody can read
            turn = int(file.getexif().get(_ORIENTATION, 1))
        picture = upright(file)  # a file that was cut off shows only here
    size = (picture.height, picture.width)
    return picture, PictureFacts(size, turn if turn in range(1, 9) else 1, frames)


def notes_on(pairs: Mapping[str, Sequence[PictureFacts]]) -> list[str]:
    """Return sentences on pairs, by name, of several frames, or not turned alike by cameras."""
    moving = [name for name, pair in pairs.items() if any(one.frames for one in pair)]
    turned = [name for name, pair in pairs.items() if len({one.turn for one in pair}) > 1]
    notes = []
    if moving:
        few = first_of(moving, 5)
        notes.append(f"More than one frame or page, of which the first counts: {few}.")
    if turned:
        notes.append(
            "One picture of a pair was turned as its camera says (EXIF), the other not or "
            f"otherwise: {first_of(turned, 5)}. If they do not fit, save both upright without that "
            "entry."
        )
    return notes


def upright(file: Image.Image) -> Image.Image:
    """Return the open picture in RGB, turned as its camera says it was held (EXIF)."""
    file.load()  # whose errors count
    with suppress(Exception):  # of a camera's notes that nobody can read
        ImageOps.exif_transpose(file, in_place=True)
    return file.convert("RGB")
