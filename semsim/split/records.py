"""What an attack on split inference got back, as a reconstruction set."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from semsim.images import to_uint8
from semsim.kept.versions import software_versions
from semsim.sets.image import SetImage
from semsim.sets.writer import write_set
from semsim.split.experiment import Leak
from semsim.types import LabelledImages


def write_split_set(
    folder: Path, record: Mapping[str, Any], images: LabelledImages, leak: Leak
) -> Path:
    """Write the set, one row an image of `images`; `record` says what was attacked and how."""
    dataset = {
        "name": images.dataset,
        "classes": list(images.classes),
        "size": list(images.images.shape[2:]),
    }
    run = {**record, "dataset": dataset, "status": "ok", "versions": software_versions()}
    return write_set(folder, run, (_image(images, leak, place) for place in range(len(images))))


def _image(images: LabelledImages, leak: Leak, place: int) -> SetImage:
    original, label = to_uint8(images.images[place]), int(images.labels[place])
    residual, grey = float(leak.residuals[place]), float(leak.grey_residuals[place])
    return SetImage(
        image_id=images.ids[place],
        class_id=label,
        class_name=images.classes[label],
        original=original,
        reconstruction=to_uint8(leak.images[place]),
        attacked=original,
        objective=residual,
        shift_x=0,
        shift_y=0,
        flipped=False,
        residual=residual,
        grey_residual=grey,
        worse_than_grey=leak.worse_than_grey[place],
    )
