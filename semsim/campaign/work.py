"""What a worker does: values in, values out; nothing is written but to a temporary folder."""

import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from semsim.campaign.cell import attack_images, train_plan
from semsim.campaign.plan import ONE_GRADIENT, TargetPlan
from semsim.device import pick_device
from semsim.errors import StopRequestedError, WeightsError
from semsim.grid.failures import of_the_machine
from semsim.images import to_uint8
from semsim.progress import Progress, Report, placed, silent
from semsim.registry import Plugin
from semsim.sets.image import AttackResult
from semsim.targets.model import TargetModel, load_target, save_target
from semsim.targets.train import TEST
from semsim.types import LabelledImages


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A trained target: a weight file's content, and what it cost.

    course: the share of test images right after each epoch, where one ends the training; without
    the epochs before an interruption.
    """

    content: bytes
    course: tuple[float, ...]
    seconds: float
    device: str


@dataclass(frozen=True, kw_only=True)
class Untrainable:
    """A target that its training itself cannot make. why: the traceback."""

    why: str


@dataclass(frozen=True, kw_only=True)
class Attacked:
    """One attacked image. crashed: it has no picture since the attack broke."""

    result: AttackResult
    crashed: bool
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Undone:
    """What this machine could not do now; another one may, or this one later. why: traceback."""

    why: str


def train(
    plan: TargetPlan,
    device: str,
    checkpoint: Path | None = None,
    content: str | None = None,
    *,
    report: Report = silent,
) -> Trained | Untrainable:
    """Train the target of `plan` on the device called `device`.

    checkpoint: where an interrupted training goes on, used where this machine has its folder.
    content: of its pictures when it was planned. Raises whatever is no word of the training
    itself: no memory, no disk, no data set, or one that has changed.
    """
    place, began = pick_device(device), time.monotonic()
    course: list[float] = []

    def tell(progress: Progress) -> None:
        course.extend(value for name, value in progress.values.items() if name == TEST)
        report(progress)

    there = checkpoint if checkpoint is not None and checkpoint.parent.is_dir() else None
    try:
        model, facts = train_plan(plan, tell, str(place), there, content)
    except StopRequestedError:
        raise
    except Exception as error:
        if of_the_machine(error):
            raise
        return Untrainable(why=traceback.format_exc())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "target.safetensors"
        save_target(model, path, name=plan.architecture.name, facts=facts)
        written = path.read_bytes()
    seconds = time.monotonic() - began
    return Trained(content=written, course=tuple(course), seconds=seconds, device=str(place))


@dataclass(frozen=True, kw_only=True)
class Assault:
    """Images to attack at once on one target. draws: the seed of each.

    shared: what a client shares of each `pictures` of them. kept: the target's weight file, for
    words.
    """

    images: LabelledImages
    defence: Plugin
    attack: Plugin
    draws: tuple[int, ...]
    shared: Plugin = ONE_GRADIENT
    pictures: int = 1
    kept: str = ""


def attack(
    content: bytes, asked: Assault, device: str, *, report: Report = silent
) -> list[Attacked | Undone]:
    """Attack the target whose weight file is `content`; one answer an image.

    Where several images at once break an attack, each client's are tried alone, so that one that
    cannot be attacked does not take the others along. The attack's own traceback is kept as the
    reason; what the machine could not do is `Undone`. Raises `WeightsError` for an unreadable file.
    """
    began = time.monotonic()
    model = _read_target(content, device, asked.kept)
    try:
        found = attack_images(
            *(model, asked.images, asked.defence, asked.attack, asked.draws),
            report=report,
            shared=asked.shared,
        )
    except StopRequestedError:
        raise
    except Exception as error:  # noqa: BLE001  whatever breaks one image, the others go on
        failures = _failures(asked, error)
    else:
        each = (time.monotonic() - began) / len(found)
        return [Attacked(result=result, crashed=False, seconds=each) for result in found]
    count, few = len(asked.draws), asked.pictures
    if count <= few:
        return failures
    return [
        one
        for first in range(0, count, few)
        for places in [range(first, first + few)]
        for one in attack(content, _only(asked, places), device, report=placed(report, places))
    ]


def crashed(original: np.ndarray, why: str) -> Attacked:
    """The record of an image whose attack broke or never began.

    original: (H, W, 3) uint8. why: holds the traceback.
    """
    result = AttackResult(
        picture=None,
        attacked=original,
        error=why.strip(),
        objective=float("nan"),
        shift_x=0,
        shift_y=0,
        flipped=False,
    )
    return Attacked(result=result, crashed=True, seconds=0.0)


def _read_target(content: bytes, device: str, kept: str) -> TargetModel:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "target.safetensors"
        path.write_bytes(content)
        try:
            return load_target(path, kept).to(pick_device(device))
        except WeightsError as error:
            raise WeightsError(f"{error} Delete it, and it is trained again.") from error


def _only(asked: Assault, places: Sequence[int]) -> Assault:
    draws = tuple(asked.draws[place] for place in places)
    return replace(asked, images=asked.images.pick(places), draws=draws)


def _failures(asked: Assault, error: Exception) -> list[Attacked | Undone]:
    why = "".join(traceback.format_exception(error))
    if of_the_machine(error):
        return [Undone(why=why) for _ in asked.draws]
    return [crashed(to_uint8(image), why) for image in asked.images.images]
