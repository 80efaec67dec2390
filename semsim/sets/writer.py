"""Writing a reconstruction set: it appears with everything in it, or not at all."""

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from semsim.base.picture_files import opened_picture
from semsim.base.sets.set_format import ATTACKED, COLUMNS, MANIFEST, RUN
from semsim.base.storage.atomic import whole_folder
from semsim.base.storage.optional import arrow
from semsim.base.storage.records import RECONSTRUCTION_SET, write_record
from semsim.images import read_image, write_png
from semsim.sets.image import Picture, SetImage


def write_set(folder: Path, run: Mapping[str, Any], images: Iterable[SetImage]) -> Path:
    """Write a set in the place of whatever `folder` was; returns `folder`.

    Args:
        run: What decided the set; format and counts are added.

    Raises:
        DataError: Where the file of a picture cannot be read; then nothing has changed.
    """
    arrow()  # before any picture is written
    with whole_folder(folder) as part:
        rows = [_row(part, image) for image in images]
        write_rows(pd.DataFrame(rows, columns=list(COLUMNS)), part / MANIFEST)
        failed = sum(row["status"] != "ok" for row in rows)
        record = {**run, "n_ok": len(rows) - failed, "n_failed": failed}
        write_record(part / RUN, RECONSTRUCTION_SET, record, sort=True)
    return folder


def write_rows(table: pd.DataFrame, path: Path) -> None:
    """Write a table of a set as Parquet, packed tightly.

    It has few rows, so that statistics, dictionaries and a second schema would be most of the file.
    """
    how: dict[str, Any] = {"compression": "zstd", "compression_level": 19}
    how |= dict.fromkeys(("index", "write_statistics", "use_dictionary", "store_schema"), False)
    table.to_parquet(path, **how)


def _row(folder: Path, image: SetImage) -> dict[str, Any]:
    facts = {field.name: getattr(image, field.name) for field in fields(image)}
    original = _save(image.original, folder, "originals", image.image_id)
    unchanged = (
        isinstance(image.attacked, np.ndarray)
        and isinstance(image.original, np.ndarray)
        and np.array_equal(image.attacked, image.original)
    )
    return {
        **facts,
        "original": original,
        "reconstruction": _save(image.reconstruction, folder, "reconstructions", image.image_id),
        ATTACKED: original
        if unchanged
        else _save(image.attacked, folder, "attacked", image.image_id),
        "status": "ok" if image.ok else "failed",
    }


def _save(picture: Picture | None, folder: Path, kind: str, image_id: str) -> str | None:
    """Save a picture as PNG, a PNG file byte for byte; its path relative to `folder`."""
    if picture is None:
        return None
    place = f"{kind}/{image_id}.png"
    (folder / kind).mkdir(parents=True, exist_ok=True)
    if isinstance(picture, np.ndarray):
        Image.fromarray(picture).save(folder / place, format="PNG", optimize=True)
    elif picture_format(picture) == "PNG":
        shutil.copyfile(picture, folder / place)
    else:
        write_png(read_image(picture), folder / place)
    return place


def picture_format(path: Path) -> str:
    """The format of an image file by its content, such as "PNG"; `DataError` where it is none."""
    with opened_picture(path) as file:
        return str(file.format)
