"""Attacked images on their way into a reconstruction set: their pictures, and their rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from semsim.campaign.cell import AttackResult
from semsim.campaign.records import ATTACKED
from semsim.images import to_uint8
from semsim.types import LabelledImages


def save_results(
    folder: Path, images: LabelledImages, results: Sequence[AttackResult]
) -> list[dict[str, Any]]:
    """Save the pictures of each image below `folder`; the rows that `write_set` takes."""
    return [
        save_result(
            folder,
            image_id=images.ids[place],
            class_id=label,
            class_name=images.classes[label],
            original=to_uint8(images.images[place]),
            found=found,
        )
        for place, (label, found) in enumerate(zip(images.labels.tolist(), results, strict=True))
    ]


def save_result(
    folder: Path,
    *,
    image_id: str,
    class_id: int,
    class_name: str,
    original: np.ndarray,
    found: AttackResult,
) -> dict[str, Any]:
    """Save original, attacked image and reconstruction below `folder`; the image's row.

    original: (H, W, 3) uint8.
    """
    kept = _save(original, folder, "originals", image_id)
    changed = not np.array_equal(found.attacked, original)
    picture = found.picture
    shift = found.found_shift or (None, None)
    return {
        "image_id": image_id,
        "class_id": class_id,
        "class_name": class_name,
        "original": kept,
        "reconstruction": None
        if picture is None
        else _save(picture, folder, "reconstructions", image_id),
        ATTACKED: _save(found.attacked, folder, "attacked", image_id) if changed else kept,
        "status": "ok" if found.ok else "failed",
        "error": found.error,
        "objective": found.objective,
        "shift_x": found.shift_x,
        "shift_y": found.shift_y,
        "flipped": found.flipped,
        "residual": found.residual,
        "grey_residual": found.grey_residual,
        "worse_than_grey": found.worse_than_grey,
        "blown_up": found.blown_up,
        "solver": found.solver,
        "found_shift_x": shift[0],
        "found_shift_y": shift[1],
    }


def _save(picture: np.ndarray, folder: Path, kind: str, image_id: str) -> str:
    place = f"{kind}/{image_id}.png"
    (folder / kind).mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture).save(folder / place, optimize=True)
    return place
