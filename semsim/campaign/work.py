"""Work of a worker, to train a target or to attack images: values in, values out.

Nothing is written but to a temporary folder.
"""

import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from semsim.attacks import ATTACKS, SHARED
from semsim.attacks.as_text import ONE_GRADIENT, check_attack
from semsim.attacks.descent import Found, attack_updates
from semsim.attacks.observe import (
    Gradient,
    Leak,
    Sharing,
    assigned,
    attacked,
    observe_round,
)
from semsim.attacks.parameters import shared_part
from semsim.base.errors import DataError, StopRequestedError, WeightsError
from semsim.base.progress import Progress, Report, placed, silent
from semsim.base.registry import Plugin, built
from semsim.campaign.plan import TargetPlan
from semsim.datasets import DATASETS
from semsim.datasets.on_disk import content_of
from semsim.defences import DEFENCES
from semsim.device import pick_device
from semsim.grid.executor import of_the_machine
from semsim.images import to_uint8
from semsim.sets.image import AttackResult, result_of
from semsim.targets import NETWORKS
from semsim.targets.chance import facts_of_test
from semsim.targets.model import TargetModel, load_target, save_target
from semsim.targets.train import TEST, Training, accuracy, carry_out
from semsim.types import (
    LabelledImages,
    Reconstruction,
    UpdateObservation,
)


@dataclass(frozen=True, kw_only=True)
class TrainedTarget:
    """A trained target: a weight file's content, and what it cost.

    Attributes:
        course: The share of test images right after each epoch, where one ends the training;
            without the epochs before an interruption.
    """

    content: bytes
    course: tuple[float, ...]
    seconds: float
    device: str


@dataclass(frozen=True, kw_only=True)
class Untrainable:
    """A target that its training itself cannot make.

    Attributes:
        why: The traceback.
    """

    why: str


@dataclass(frozen=True, kw_only=True)
class Attacked:
    """One attacked image.

    Attributes:
        crashed: It has no picture since the attack broke.
    """

    result: AttackResult
    crashed: bool
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Undone:
    """Work that this machine could not do now; another may, or this one later.

    Attributes:
        why: Traceback.
    """

    why: str


def train(
    plan: TargetPlan,
    device: str,
    checkpoint: Path | None = None,
    content: str | None = None,
    *,
    report: Report = silent,
) -> TrainedTarget | Untrainable:
    """Train the target of `plan` on the device called `device`.

    Args:
        checkpoint: Where an interrupted training goes on, used where this machine has its folder.
        content: Of its pictures when it was planned. Raises whatever is no word of the training
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
    return TrainedTarget(content=written, course=tuple(course), seconds=seconds, device=str(place))


@dataclass(frozen=True, kw_only=True)
class Assault:
    """Images to attack at once on one target.

    Attributes:
        draws: The seed of each.
        shared: What a client shares of each `pictures` of them.
        kept: The target's weight file, for words.
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

    Args:
        original: (H, W, 3) uint8.
        why: Holds the traceback.
    """
    result = AttackResult(picture=None, attacked=original, error=why.strip())
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


def train_plan(
    plan: TargetPlan,
    report: Report = silent,
    device: str = "cpu",
    checkpoint: Path | None = None,
    content: str | None = None,
) -> tuple[TargetModel, dict[str, Any]]:
    """The trained target of `plan`, how good it is, as `facts_of_test` has it, and its ε, if any.

    Args:
        checkpoint: A file from which an interrupted training goes on; left where it is.
        content: What `content_of` said of the data set when it was planned; `DataError` where that
            has changed.
    """
    dataset = built(DATASETS, plan.dataset)
    data, test = dataset("train"), dataset("test")
    if content is not None and content_of(dataset) != content:
        raise DataError(
            f"The pictures of {plan.dataset.name} have changed since they were planned, or this "
            "machine has another copy of them. Begin the campaign anew; copy a folder with the "
            "times of its files, as `rsync -a` does."
        )
    training = Training(
        architecture=built(NETWORKS, plan.architecture),
        data=data,
        defence=built(DEFENCES, plan.defence),
        settings=plan.train,
        device=device,
        test=test,
        checkpoint=checkpoint,
    )
    model = carry_out(training, report)
    tested = facts_of_test(accuracy(model, test), test.labels.tolist(), len(test.classes))
    return model, {**tested, **training.promise()}


def attack_images(
    model: TargetModel,
    images: LabelledImages,
    defence: Plugin,
    attack: Plugin,
    seeds: Sequence[int],
    report: Report = silent,
    shared: Plugin = ONE_GRADIENT,
) -> list[AttackResult]:
    """Attack each of `images` on its own, at once where the attack can; one result an image.

    Args:
        seeds: One an image; it decides what the defence does to it and where the attack starts.
        shared: What a client shares, of one image or, of a multiple of so many, of several in turn.
    """
    if tuple(model.classes) != tuple(images.classes):
        raise DataError(
            f"The target knows the classes {', '.join(model.classes)} and the images are of "
            f"{', '.join(images.classes)}: the pictures have changed since they were planned. "
            "Begin the campaign anew."
        )
    check_attack(attack, shared)
    sharing: Sharing = built(SHARED, shared)
    model = shared_part(model, sharing.parameters)
    if isinstance(sharing, Gradient):
        pairs = list(zip(images.images, images.labels.tolist(), strict=True))
        found = attacked(model, pairs, defence, attack, seeds, report)
        return [result_of(one, *leak.attacked.one(0)) for leak, one in found]
    tool = built(ATTACKS, attack)
    shield = built(DEFENCES, defence)
    rngs = [torch.Generator().manual_seed(seed) for seed in seeds]
    turns = [slice(n, n + sharing.pictures) for n in range(0, len(images), sharing.pictures)]
    rounds = [
        observe_round(model, images.images[t], images.labels[t], sharing, shield, rngs[t])
        for t in turns
    ]
    seen = [one.observation for one in rounds]
    made = attack_updates(tool, seen, rngs=rngs, report=report)
    return [
        result
        for one, turn in zip(rounds, turns, strict=True)
        for result in _of_round(one, made[turn])
    ]


def _of_round(one: Leak[UpdateObservation], found: Sequence[Found]) -> list[AttackResult]:
    """Pair what came back of a client's pictures with the picture that each is nearest to.

    Failures go to the pictures that are left over.
    """
    true, good = one.attacked, [x for x in found if isinstance(x, Reconstruction)]
    failed = iter(x for x in found if not isinstance(x, Reconstruction))
    places = [-1] * len(found)
    if good:
        places = assigned(torch.stack([x.image for x in good]).cpu(), true.images)
    return [
        result_of(good[place] if place >= 0 else next(failed), *true.one(own))
        for own, place in enumerate(places)
    ]
