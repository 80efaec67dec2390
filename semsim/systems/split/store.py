"""Finished pieces of split inference on disk, by key, and the sets that attacks end in.

    <data>/runs/_split/<key>.pt      a trained system, or what an attack on it got back
    <data>/runs/_split/<key>/        stages of a training under way
    <data>/runs/_split/<key>.safetensors  the recogniser of a data set

Every file is written whole or not at all, so that an interrupted run goes on where it was, and
several may share them.
"""

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

from semsim.base.errors import JobError
from semsim.base.storage import pieces
from semsim.base.storage.pieces import Pieces
from semsim.base.storage.versions import software_versions
from semsim.images import to_uint8
from semsim.sets.image import SetImage
from semsim.sets.writer import write_set
from semsim.systems.split.experiment import Leak
from semsim.systems.split.networks import AnyTask, SplitNetwork
from semsim.systems.split.system import SplitSystem, empty_system
from semsim.systems.split.training import read_tensors, write_tensors
from semsim.types import LabelledImages

FORMAT = "semsim-split/1"  # part of every key: raise it where the same settings mean another thing
_ARRAYS = ("ssim", "psnr", "residuals", "grey_residuals")


def key_of(facts: dict[str, Any]) -> str:
    """A hash of all that decides a piece."""
    return pieces.key_of({"format": FORMAT, **facts}, 20)


def check_shared(pieces: Pieces[Any], keys: Iterable[str]) -> None:
    """`JobError` where what workers have made under `keys` is not among `pieces`."""
    if pieces.missing(keys):
        raise JobError(
            f"The workers are done, and what they have made is not in {pieces.folder}. The data "
            "folder must be one that all machines share, below the same path; or leave --scheduler "
            "out."
        )


class SplitStore:
    """The finished pieces below `data`. leaks: what attacks got back, and the seconds they took."""

    def __init__(self, data: Path) -> None:
        self.folder = Path(data) / "runs" / "_split"
        self.leaks = Pieces(self.folder, ".pt", read=_read_leak, write=_write_leak)
        self.systems = Pieces(self.folder, ".pt", read=read_tensors, write=write_tensors)

    def recogniser(self, key: str) -> Path:
        """Return the path where a data set's recogniser is, or will be."""
        return self.folder / f"{key}.safetensors"

    def stages(self, key: str) -> Path:
        """Return the folder where a training keeps its half-finished stages."""
        return self.folder / key

    def write_system(self, key: str, system: SplitSystem, facts: dict[str, Any]) -> None:
        """Keep a trained system; its half-finished stages go."""
        content = {
            "state": {name: value.cpu() for name, value in system.state_dict().items()},
            "bodies": len(system.bodies),
            "fresh": system.noise.fresh,
            "facts": facts,
        }
        self.systems.write(key, content)
        shutil.rmtree(self.stages(key), ignore_errors=True)

    def read_system(
        self, key: str, network: SplitNetwork, task: AnyTask
    ) -> tuple[SplitSystem, dict[str, Any]]:
        """The kept system, in eval mode on the CPU, and what was told about it."""
        content = self.systems.read(key)
        system = empty_system(network, task, bodies=content["bodies"], fresh=content["fresh"])
        system.load_state_dict(content["state"])
        return system.eval(), content["facts"]


def _write_leak(path: Path, found: tuple[Leak, float]) -> None:
    leak, seconds = found
    content = {
        "images": (leak.images * 255).round().to(torch.uint8),
        "shadow_accuracy": leak.shadow_accuracy,
        "decoder_error": leak.decoder_error,
        "seconds": seconds,
        **{name: torch.from_numpy(getattr(leak, name)) for name in _ARRAYS},
    }
    write_tensors(path, content)


def _read_leak(path: Path) -> tuple[Leak, float]:
    content = read_tensors(path)
    leak = Leak(
        images=content["images"].float() / 255,
        shadow_accuracy=content["shadow_accuracy"],
        decoder_error=content["decoder_error"],
        **{name: content[name].numpy() for name in _ARRAYS},
    )
    return leak, float(content["seconds"])


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
