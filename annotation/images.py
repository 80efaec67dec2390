"""Images as a study keeps them: plain RGB PNG files named by the SHA-256 of their content."""

import hashlib
import io
from collections.abc import Iterable
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from PIL import Image

from annotation.errors import StudyError
from semsim.base.picture_files import read_pixels
from semsim.base.storage.atomic import settle, together, write_bytes
from semsim.base.storage.remote import Remote

GAP = 4  # pixels between two pictures side by side
Shelf = Path | Remote  # where studies keep their images: a folder, or an address others share


def shelf(address: str, data: Path, *, write: bool = False) -> Shelf:
    """The images at an address such as s3://bucket/prefix; of an empty one, in the data folder.

    Raises `StudyError` for what is no address, and `StoreError`, which says what to set, for one
    that does not let itself be used.

    Args:
        write: Whether images will be kept there, not only read; makes the data folder.
    """
    if write:
        try:
            data.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StudyError(
                f"{data} can be no folder of studies ({error.strerror}). "
                "Name another one with --data-dir."
            ) from error
    if not address:
        return data / "images"
    if "://" not in address:
        raise StudyError(
            f"--image-store takes an address that several servers share, such as "
            f"s3://bucket/prefix; got {address!r}. Without it images lie in {data / 'images'}."
        )
    images = Remote(address, data / "copies")
    images.check(write=write)
    return images


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


@lru_cache(maxsize=1500)
def strip(paths: tuple[Path, ...], side: int = 64) -> bytes:
    """Some pictures side by side as one PNG, none longer than `side`; nothing is smoothed away.

    Raises `PictureError` for a picture that cannot be read.
    """
    pictures = [Image.fromarray(read_pixels(path), "RGB") for path in paths]
    for picture in pictures:
        picture.thumbnail((side, side))
    width, height = (max(one.size[axis] for one in pictures) for axis in (0, 1))
    whole = Image.new("RGBA", (len(pictures) * (width + GAP) - GAP, height))
    for place, picture in enumerate(pictures):
        whole.paste(picture, (place * (width + GAP), 0))
    buffer = io.BytesIO()
    whole.save(buffer, format="PNG")
    return buffer.getvalue()


def sha256(content: bytes) -> str:
    """Hexadecimal SHA-256 of `content`."""
    return hashlib.sha256(content).hexdigest()


def name_of(digest: str) -> str:
    """Return the name of the file of the image with that SHA-256."""
    return f"{digest}.png"


def here(images: Shelf) -> Path:
    """The folder of this machine with the images, or with copies of those that were used here."""
    return images.copies if isinstance(images, Remote) else images


def path_of(images: Shelf, digest: str) -> Path:
    """Return the path on this machine of the image with that SHA-256, once it has been fetched."""
    return here(images) / name_of(digest)


def fetch(images: Shelf, digests: Iterable[str]) -> None:
    """Have the images with those SHA-256s on this machine, but for those that are gone.

    Raises `StoreError` where they lie elsewhere and that does not answer.
    """
    if isinstance(images, Remote):
        images.fetch(map(name_of, digests))


def answers(images: Shelf) -> bool:
    """Check whether a studio keeps images there; a folder is made when one does.

    Raises `StoreError` where they lie elsewhere and that does not answer.
    """
    return not isinstance(images, Remote) or images.check()


def find(digest: str, images: Shelf) -> Path:
    """Name a file of this machine with that image, which need not be there if it is gone.

    Raises `StoreError` as `fetch` does.
    """
    fetch(images, [digest])
    return path_of(images, digest)


def keep(folder: Path, content: bytes) -> Path:
    """Write `content` under its SHA-256, whole or not at all; nothing to do if it is there."""
    path = path_of(folder, sha256(content))
    if not path.exists() or path.stat().st_size != len(content):  # as a power cut may leave it
        write_bytes(path, content)
    return path


def keep_all(images: Shelf, contents: Iterable[bytes]) -> None:
    """Write each of `contents` under its SHA-256, to survive a power cut.

    Raises `StoreError` as `fetch` does.
    """
    if isinstance(images, Remote):
        images.put({name_of(sha256(content)): content for content in contents})
        return
    paths = set(together(partial(keep, images), contents))
    settle([*paths, images] if paths else [])


def mean_squared_error(a: np.ndarray, b: np.ndarray) -> float:
    """MSE of two (H, W, 3) uint8 images of the same size, on the scale [0, 1]."""
    return float(np.mean((a.astype(np.float64) - b.astype(np.float64)) ** 2) / 255**2)
