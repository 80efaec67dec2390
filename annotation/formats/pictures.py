"""The images that go along with a table: copied beside it, under names that tell nothing."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from annotation.errors import NotFoundError

FOLDER = "images"


def with_images(table: pd.DataFrame, columns: Sequence[str], folder: Path) -> pd.DataFrame:
    """`table` with the images of `columns` copied into `folder`/images, and paths from `folder` on.

    Files keep their names, the SHA-256 of their content, so each is there once. Raises
    `NotFoundError` for an image that is gone.
    """
    paths = pd.unique(pd.concat([table[name].dropna() for name in columns], ignore_index=True))
    (folder / FOLDER).mkdir()
    for path in map(Path, paths):
        copy_image(path, folder / FOLDER / path.name)
    below = {path: f"{FOLDER}/{Path(path).name}" for path in paths}
    return table.assign(**{name: table[name].map(below).astype("str") for name in columns})


def copy_image(source: Path, target: Path) -> None:
    """Copy one image as it is; raises `NotFoundError` where it is gone."""
    try:
        shutil.copyfile(source, target)
    except FileNotFoundError:
        raise NotFoundError(f"The image file {source.name} is gone from {source.parent}.") from None
