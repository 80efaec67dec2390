"""A few pairs of a set as one small picture: originals above, what came back below."""

import io
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from semsim.base.errors import DataError
from semsim.base.picture_files import opened_picture, upright

SHOWN = 6  # pairs of a strip
_LARGEST = 96  # pixels of a side
_GAP = 2
Pair = tuple[Path | None, Path | None]


def spread(n: int, most: int = SHOWN) -> list[int]:
    """Up to `most` places out of `n`, from the first on and evenly spread."""
    wanted = min(n, most)
    return [i * n // wanted for i in range(wanted)]


def strip(pairs: Sequence[Pair]) -> bytes:
    """A PNG file with a column a pair, all pictures of one size and nothing smoothed.

    What is missing or cannot be read stays clear. Raises `DataError` where nothing can be.
    """
    read = [tuple(_read(path) for path in pair) for pair in pairs]
    sizes = [one.size for pair in read for one in pair if one is not None]
    if not sizes:
        raise DataError("None of the pictures can be read.")
    width, height = (max(sides) for sides in zip(*sizes, strict=True))
    whole = Image.new("RGBA", (len(read) * (width + _GAP) - _GAP, 2 * height + _GAP), (0, 0, 0, 0))
    for column, pair in enumerate(read):
        for row, one in enumerate(pair):
            if one is not None:
                whole.paste(one, (column * (width + _GAP), row * (height + _GAP)))
    packed = io.BytesIO()
    whole.save(packed, format="PNG", optimize=True)
    return packed.getvalue()


def _read(path: Path | None) -> Image.Image | None:
    if path is None:
        return None
    try:
        with opened_picture(path) as file:
            picture = upright(file)
    except DataError:
        return None
    picture.thumbnail((_LARGEST, _LARGEST))
    return picture
