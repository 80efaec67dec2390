"""Starting weights for SemSim: its network, first trained to name what a public data set shows."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from semsim.base.progress import Report, silent
from semsim.base.registry import Checked, setting
from semsim.defences.crop_flip import CropFlip
from semsim.learning.initial import START
from semsim.metrics.backbones import make_backbone
from semsim.metrics.network import resize
from semsim.targets.chance import facts_of_test
from semsim.targets.degrade import degrade
from semsim.targets.model import TargetModel
from semsim.targets.train import Training, accuracy, carry_out
from semsim.targets.train_settings import TrainSettings as ClassifierTraining
from semsim.types import LabelledImages
from semsim.weights import write_tensors


@dataclass(frozen=True, kw_only=True)
class PretrainSettings(Checked):
    """Settings of one classifier; its network must be that of the SemSim which starts from it.

    Attributes:
        lr: 0 takes 0.05 where the network normalises what passes through it, else 0.01: at more,
            some trainings of LeNet end where guessing does. The seed should be no annotator's:
            simulated ones answer by classifiers of seeds above 1000.
    """

    backbone: str = "resnet18"
    small_stem: bool = True
    input_size: int = setting(32, least=1)
    epochs: int = setting(20, least=1)
    lr: float = setting(0.0, least=0)
    batch_size: int = setting(64, least=1)
    flip: float = 0.5  # chance of mirroring an image, beside moving it
    degrade: bool = True  # blur, noise and washed-out contrast on about two images in three
    seed: int = 7


@dataclass(frozen=True, kw_only=True)
class _Network:
    """A network of SemSim as an architecture that classifiers are made of."""

    name: str
    small_stem: bool

    def build(self, channels: int, size: tuple[int, int]) -> tuple[nn.Module, int]:
        return make_backbone(self.name, self.small_stem, size[0])


def pretrain(
    data: LabelledImages,
    settings: PretrainSettings,
    *,
    device: str = "auto",
    checkpoint: Path | None = None,
    report: Report = silent,
) -> TargetModel:
    """A classifier of `data`, which must be a public training split: no original of a study.

    Of faces it is changed copies of the originals, as no person has a second picture.

    Args:
        checkpoint: A file to go on from; see `semsim.targets.train.Training`.

    Raises:
        SettingsError: Where the loss is no longer finite.
    """
    training = Training(
        architecture=_Network(name=settings.backbone, small_stem=settings.small_stem),
        data=_sized(data, settings.input_size),
        defence=CropFlip(flip=settings.flip),
        settings=ClassifierTraining(
            epochs=settings.epochs,
            lr=_rate(settings),
            batch_size=settings.batch_size,
            seed=settings.seed,
        ),
        device=device,
        degrade=degrade if settings.degrade else None,
        checkpoint=checkpoint,
    )
    return carry_out(training, report)


def save_start(
    model: TargetModel, path: Path, settings: PretrainSettings, facts: dict[str, Any]
) -> None:
    """Write the network without its classifier, with what made it; whole or not at all.

    Args:
        facts: Where it comes from: the data set, and how good it is there, see
            `semsim.targets.chance.facts_of_test`; a model card repeats them.
    """
    weights = {**model.body.state_dict(), "mean": model.mean, "std": model.std}
    told = {"settings": asdict(settings) | {"lr": _rate(settings)}, **facts}
    write_tensors(path, weights, START, told)


def goodness_of_start(model: TargetModel, data: LabelledImages) -> dict[str, Any]:
    """Measure the classifier's accuracy on `data`, of any size, and whether guessing reaches it."""
    with torch.inference_mode():
        share = accuracy(model, _sized(data, model.size[0]))
    return facts_of_test(share, data.labels.tolist(), len(data.classes))


def _rate(settings: PretrainSettings) -> float:
    """The learning rate that `settings` mean."""
    if settings.lr:
        return settings.lr
    with torch.random.fork_rng():  # not on "meta": a RegNet asks its own numbers for its sizes
        body, _ = make_backbone(settings.backbone, settings.small_stem, settings.input_size)
    normalises = any("Norm" in type(layer).__name__ for layer in body.modules())
    return 0.05 if normalises else 0.01


def _sized(data: LabelledImages, side: int) -> LabelledImages:
    return replace(data, images=resize(data.images, (side, side)))
