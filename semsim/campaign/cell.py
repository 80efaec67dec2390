"""The two computations of a campaign, each one call: train a target, attack images."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from semsim.attacks import ATTACKS, run_many
from semsim.attacks.observe import Leak, assumptions, observe_gradient
from semsim.campaign.plan import TargetPlan
from semsim.datasets import DATASETS
from semsim.defences import DEFENCES
from semsim.errors import AttackFailedError
from semsim.progress import Report, silent
from semsim.registry import Plugin, build
from semsim.sets.image import AttackResult, result_of
from semsim.targets import TARGETS
from semsim.targets.chance import facts_of_test
from semsim.targets.model import TargetModel
from semsim.targets.train import Training, accuracy, carry_out
from semsim.types import LabelledImages, Reconstruction


def train_plan(
    plan: TargetPlan, report: Report = silent, device: str = "cpu", checkpoint: Path | None = None
) -> tuple[TargetModel, dict[str, Any]]:
    """The trained target of `plan` and how good it is, as `facts_of_test` has it.

    checkpoint: a file from which an interrupted training goes on; left where it is.
    """
    dataset = build(DATASETS, plan.dataset.name, plan.dataset.settings)
    test = dataset("test")
    training = Training(
        architecture=build(TARGETS, plan.architecture.name, plan.architecture.settings),
        data=dataset("train"),
        defence=build(DEFENCES, plan.defence.name, plan.defence.settings),
        settings=plan.train,
        device=device,
        test=test,
        checkpoint=checkpoint,
    )
    model = carry_out(training, report)
    return model, facts_of_test(accuracy(model, test), len(test), len(test.classes))


def attack_images(
    model: TargetModel,
    images: LabelledImages,
    defence: Plugin,
    attack: Plugin,
    seeds: Sequence[int],
    report: Report = silent,
) -> list[AttackResult]:
    """Attack each of `images` on its own, at once where the attack can; one result an image.

    seeds: one an image; it decides what the defence does to it and where the attack starts.
    """
    rngs = [torch.Generator().manual_seed(seed) for seed in seeds]
    shield = build(DEFENCES, defence.name, defence.settings)
    tool = build(ATTACKS, attack.name, attack.settings)
    known = assumptions(tool)
    leaks = [
        observe_gradient(model, image, label, shield, rng, **known)
        for image, label, rng in zip(images.images, images.labels.tolist(), rngs, strict=True)
    ]
    seen = [leak.observation for leak in leaks]
    found = run_many(tool, seen, rngs=rngs, report=report)
    return [_of_leak(leak, one) for leak, one in zip(leaks, found, strict=True)]


def _of_leak(leak: Leak, found: Reconstruction | AttackFailedError) -> AttackResult:
    return replace(
        result_of(found, leak.attacked),
        shift_x=leak.shift_x,
        shift_y=leak.shift_y,
        flipped=leak.flipped,
    )
