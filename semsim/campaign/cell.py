"""The two computations of a campaign, each one call: train a target, attack one image."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from semsim.attacks import ATTACKS
from semsim.attacks.observe import observe_gradient
from semsim.datasets import DATASETS
from semsim.defences import DEFENCES
from semsim.errors import AttackFailedError
from semsim.images import to_uint8
from semsim.progress import Report, silent
from semsim.registry import build
from semsim.targets import TARGETS, TargetModel, load_target
from semsim.targets.train import TrainSettings, accuracy, train_target
from semsim.types import LabelledImages


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """A registry name with the settings that differ from its defaults."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class TargetPlan:
    """A classifier to train: everything that decides its weights."""

    label: str  # how it is called on the pages, e.g. "resnet20-4/none"
    dataset: Plugin
    architecture: Plugin
    defence: Plugin
    train: TrainSettings


@dataclass(frozen=True, kw_only=True)
class AttackResult:
    """One attacked image: a picture, or the reason why there is none.

    picture: (H, W, 3) uint8, or None. attacked: (H, W, 3) uint8, the original as training
    augmentation left it, which is what the attack could get back at best.
    """

    picture: np.ndarray | None
    attacked: np.ndarray
    error: str
    objective: float
    shift_x: int
    shift_y: int
    flipped: bool


def train_plan(plan: TargetPlan, report: Report = silent) -> tuple[TargetModel, float]:
    """The trained target of `plan` and its accuracy on the test split, 0 to 1."""
    dataset = build(DATASETS, plan.dataset.name, plan.dataset.settings)
    model = train_target(
        build(TARGETS, plan.architecture.name, plan.architecture.settings),
        dataset("train"),
        build(DEFENCES, plan.defence.name, plan.defence.settings),
        plan.train,
        report=report,
    )
    return model, accuracy(model, dataset("test"))


def attack_image(
    weights: Path, images: LabelledImages, defence: Plugin, attack: Plugin, seed: int
) -> AttackResult:
    """Attack the single image in `images` with the target stored at `weights`."""
    rng = torch.Generator().manual_seed(seed)
    leak = observe_gradient(
        load_target(weights),
        images.images[0],
        int(images.labels[0]),
        build(DEFENCES, defence.name, defence.settings),
        rng,
    )
    picture, error, objective = None, "", float("nan")
    try:
        found = build(ATTACKS, attack.name, attack.settings)(leak.observation, rng=rng)
        picture, objective = to_uint8(found.image), found.objective
    except AttackFailedError as failure:
        error = str(failure)
    return AttackResult(
        picture=picture,
        attacked=to_uint8(leak.attacked),
        error=error,
        objective=objective,
        shift_x=leak.shift_x,
        shift_y=leak.shift_y,
        flipped=leak.flipped,
    )
