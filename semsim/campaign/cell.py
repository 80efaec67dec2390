"""The two computations of a campaign, each one call: train a target, attack images."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from semsim.attacks import ATTACKS, SHARED, run_many
from semsim.attacks.assigned import assigned
from semsim.attacks.local_steps import attack_updates
from semsim.attacks.observe import Leak, Round, assumptions, observe_gradient, observe_round
from semsim.attacks.sharing import Gradient, Sharing, check_sharing
from semsim.attacks.together import Found
from semsim.campaign.plan import ONE_GRADIENT, TargetPlan
from semsim.datasets import DATASETS
from semsim.datasets.on_disk import content_of
from semsim.defences import DEFENCES
from semsim.errors import DataError
from semsim.progress import Report, silent
from semsim.registry import Plugin, build
from semsim.sets.image import AttackResult, result_of
from semsim.targets import NETWORKS
from semsim.targets.chance import facts_of_test
from semsim.targets.model import TargetModel
from semsim.targets.train import Training, accuracy, carry_out
from semsim.types import AttackedModel, LabelledImages, Reconstruction


def train_plan(
    plan: TargetPlan,
    report: Report = silent,
    device: str = "cpu",
    checkpoint: Path | None = None,
    content: str | None = None,
) -> tuple[TargetModel, dict[str, Any]]:
    """The trained target of `plan`, how good it is, as `facts_of_test` has it, and its ε, if any.

    checkpoint: a file from which an interrupted training goes on; left where it is. content: what
    `content_of` said of the data set when it was planned; `DataError` where that has changed.
    """
    dataset = build(DATASETS, plan.dataset.name, plan.dataset.settings)
    data, test = dataset("train"), dataset("test")
    if content is not None and content_of(dataset) != content:
        raise DataError(
            f"The pictures of {plan.dataset.name} have changed since they were planned, or this "
            "machine has another copy of them. Begin the campaign anew; copy a folder with the "
            "times of its files, as `rsync -a` does."
        )
    training = Training(
        architecture=build(NETWORKS, plan.architecture.name, plan.architecture.settings),
        data=data,
        defence=build(DEFENCES, plan.defence.name, plan.defence.settings),
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

    seeds: one an image; it decides what the defence does to it and where the attack starts.
    shared: what a client shares, of one image or, of a multiple of so many, of several in turn.
    """
    if tuple(model.classes) != tuple(images.classes):
        raise DataError(
            f"The target knows the classes {', '.join(model.classes)} and the images are of "
            f"{', '.join(images.classes)}: the pictures have changed since they were planned. "
            "Begin the campaign anew."
        )
    sharing: Sharing = build(SHARED, shared.name, shared.settings)
    if isinstance(sharing, Gradient):
        found = attacked(
            model, list(images.images), images.labels.tolist(), defence, attack, seeds, report
        )
        return [_of_leak(leak, one) for leak, one in found]
    tool = build(ATTACKS, attack.name, attack.settings)
    check_sharing(sharing, tool)
    shield = build(DEFENCES, defence.name, defence.settings)
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


def attacked(
    model: AttackedModel,
    images: Sequence[Tensor],
    labels: Sequence[int],
    defence: Plugin,
    attack: Plugin,
    seeds: Sequence[int],
    report: Report = silent,
) -> list[tuple[Leak, Found]]:
    """What leaks of each image, (C, H, W) in [0, 1], and what the attack makes of it, in order."""
    rngs = [torch.Generator().manual_seed(seed) for seed in seeds]
    shield = build(DEFENCES, defence.name, defence.settings)
    tool = build(ATTACKS, attack.name, attack.settings)
    known = assumptions(tool)
    leaks = [
        observe_gradient(model, image, label, shield, rng, **known)
        for image, label, rng in zip(images, labels, rngs, strict=True)
    ]
    seen = [leak.observation for leak in leaks]
    return list(zip(leaks, run_many(tool, seen, rngs=rngs, report=report), strict=True))


def _of_leak(leak: Leak, found: Found) -> AttackResult:
    return replace(
        result_of(found, leak.attacked),
        shift_x=leak.shift_x,
        shift_y=leak.shift_y,
        flipped=leak.flipped,
    )


def _of_round(one: Round, found: Sequence[Found]) -> list[AttackResult]:
    """What came back of a client's pictures, each beside the picture that it is nearest to.

    Failures go to the pictures that are left over.
    """
    true, good = one.attacked, [x for x in found if isinstance(x, Reconstruction)]
    failed = iter(x for x in found if not isinstance(x, Reconstruction))
    places = [-1] * len(found)
    if good:
        places = assigned(torch.stack([x.image for x in good]).cpu(), true.images)
    return [
        replace(
            result_of(good[place] if place >= 0 else next(failed), true.images[own]),
            shift_x=int(true.shift_x[own]),
            shift_y=int(true.shift_y[own]),
            flipped=bool(true.flipped[own]),
        )
        for own, place in enumerate(places)
    ]
