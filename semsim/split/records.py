"""What an attack on split inference got back, as a reconstruction set."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semsim.images import to_uint8
from semsim.kept.versions import software_versions
from semsim.sets.image import SetImage
from semsim.sets.writer import write_set
from semsim.split.experiment import Leak
from semsim.types import LabelledImages

_UNFIT = re.compile(r"[^0-9A-Za-z._=-]+")


@dataclass(frozen=True, kw_only=True)
class SetFacts:
    """What a set's record says beside its images.

    settings: of attack and network. seeds: of the defence and of the attack. valid: whether the
    system's accuracy is near the undefended one's.
    """

    experiment: str
    model: str
    attack: str
    settings: dict[str, Any]
    defence: dict[str, Any]
    train: dict[str, Any]
    accuracy: float
    valid: bool
    seeds: tuple[int, int]
    seconds: float

    @property
    def folder(self) -> str:
        """The set's folder below the experiment's."""
        return f"{_UNFIT.sub('-', self.model)}__{_UNFIT.sub('-', self.attack)}"


def write_split_set(runs: Path, facts: SetFacts, images: LabelledImages, leak: Leak) -> Path:
    """Write the set below `runs`, one row an image of `images`; returns its folder."""
    folder = Path(runs) / f"split-{facts.experiment}" / facts.folder
    rows = (_image(images, leak, place) for place in range(len(images)))
    return write_set(folder, _record(facts, images), rows)


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


def _record(facts: SetFacts, images: LabelledImages) -> dict[str, Any]:
    return {
        "name": f"{facts.experiment}/{facts.model}/{facts.attack}",
        "model": facts.model,
        "dataset": {
            "name": images.dataset,
            "classes": list(images.classes),
            "size": list(images.images.shape[2:]),
        },
        "target": {
            "architecture": facts.settings["network"],
            "strategy": facts.defence,
            "train": facts.train,
            "test_accuracy": facts.accuracy,
            "valid": facts.valid,
            "seed": facts.seeds[0],
        },
        "attack": {"name": facts.attack, "settings": facts.settings["attack"]},
        "seed": facts.seeds[1],
        "status": "ok",
        "seconds": round(facts.seconds, 2),
        "versions": software_versions(),
    }
