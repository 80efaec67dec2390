"""An estimate of what a training takes on this machine, and the network of one within `LIMIT`."""

import math
import time
from dataclasses import replace
from typing import NamedTuple

from semsim.base.words import words_for_seconds
from semsim.learning import PRESETS, TrainSettings

USUAL, PAPER = "triplet", "paper"  # presets: what a training takes left to itself, and the paper's
LIMIT = 600  # seconds of the usual training
# What a picture costs in a step, by network and stem, in pictures of the first, which is tried
# here; measured as CPU time of one core.
_COSTS = {
    ("resnet8", False): 1.0,
    ("resnet18", False): 2.3,
    ("resnet34", False): 4.4,
    ("resnet50", False): 7.5,
    ("resnet50", True): 60.0,
}
_TRIED = 32  # pictures of the step that is tried


class LearningPace(NamedTuple):
    """Pace of a machine, as `pace_of` measures it.

    Attributes:
        device: Type of the device that trains, such as "cpu".
        picture: Seconds of a picture in a step of the smallest ResNet; NaN but on a CPU.
    """

    device: str
    picture: float


def preset_settings(preset: str, n_originals: int, pace: LearningPace) -> TrainSettings:
    """The settings of a preset; of `USUAL` with the largest ResNet that `LIMIT` suffices for.

    Where it suffices for none, the smallest. On a GPU, whose pace is not tried, the paper's.
    """
    settings = PRESETS[preset]
    if preset != USUAL:
        return settings
    if pace.device != "cpu":
        return replace(settings, backbone=PRESETS[PAPER].backbone, small_stem=True)
    sizes = [replace(settings, backbone=name) for name, small in _COSTS if not small]
    fitting = [one for one in sizes if seconds(one, n_originals, pace) <= LIMIT]
    return fitting[-1] if fitting else sizes[0]


def seconds(settings: TrainSettings, n_originals: int, pace: LearningPace) -> float:
    """Seconds of a training on this machine's CPU, without its shuffles; of a known network."""
    triplets = settings.epochs * n_originals * settings.triplets_per_original
    return 3 * triplets * _COSTS[settings.backbone, settings.small_stem] * pace.picture


def pace_words(n_originals: int, pace: LearningPace) -> str:
    """Return what the usual and the paper's training take here, as sentences."""
    if not n_originals:
        return ""
    usual, paper = (preset_settings(name, n_originals, pace) for name in (USUAL, PAPER))
    if pace.device != "cpu":
        return f"On a GPU the preset {USUAL} trains the paper's network. Its pace is not estimated."
    each = [seconds(one, n_originals, pace) for one in (usual, paper)]
    took = [words_for_seconds(one) for one in each]
    limit = f"{LIMIT // 60} minutes"
    size = f"the largest ResNet within {limit}"
    if each[0] > LIMIT:
        size = f"which takes longer than {limit}"
    return (
        f"Estimated from a step that was tried here: the preset {USUAL} takes {took[0]} with "
        f"{usual.backbone}, {size}; the preset {PAPER} takes "
        f"{took[1]} with {paper.backbone}. Shuffled votes come on top."
    )


def pace_of(device: str) -> LearningPace:
    """Measure the pace of `device`, as `pick_device` takes it; pages ask a process beside them."""
    import torch

    from semsim.device import pick_device
    from semsim.metrics.network import ModelSettings, SemSimModel

    kind = pick_device(device).type
    if kind != "cpu":
        return LearningPace(kind, math.nan)
    settings = ModelSettings(backbone="resnet8", small_stem=False)
    model = SemSimModel(settings, mean=[0.5] * 3, std=[0.5] * 3).train()
    images, took = torch.rand(_TRIED, 3, 32, 32), []
    for _ in range(3):  # the first one is slower
        began = time.perf_counter()
        model(images).square().mean().backward()
        took.append(time.perf_counter() - began)
    return LearningPace(kind, min(took) / _TRIED)
