"""Metrics that ask a classifier of the product's own: does it still recognise the image?"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from semsim.errors import DataError, SettingsError, WeightsError
from semsim.metrics.base import Judge, MetricSpec, Pairs, Resources, Scores, batches
from semsim.metrics.fid import frechet_judge

_BATCH = 128
_NAME = re.compile(r"[\w.-]+")


class ClassifierModule(Protocol):
    """What a classifier file loads into: images in [0, 1] to logits and to features."""

    classes: tuple[str, ...]

    def __call__(self, images: Tensor) -> Tensor: ...

    def features(self, images: Tensor) -> Tensor: ...


@dataclass(frozen=True, kw_only=True)
class Classifier:
    """A trained classifier, ready to be asked about any number of images.

    size: (H, W) the network was made for; images of another size are resized to it.
    """

    module: ClassifierModule
    device: torch.device
    size: tuple[int, int] | None = None

    @property
    def classes(self) -> tuple[str, ...]:
        return self.module.classes

    def logits(self, images: Tensor) -> Tensor:
        """(N, 3, H, W) float32 in [0, 1] to (N, number of classes), on the CPU."""
        with torch.inference_mode():
            return torch.cat([self.module(part).cpu() for part in self._parts(images)])

    def features(self, images: Tensor) -> np.ndarray:
        """(N, 3, H, W) float32 in [0, 1] to (N, d) float64."""
        with torch.inference_mode():
            parts = [self.module.features(part).flatten(1).cpu() for part in self._parts(images)]
        return torch.cat(parts).double().numpy()

    def _parts(self, images: Tensor) -> list[Tensor]:
        return [self._resized(part) for part in batches(images, _BATCH, self.device)]

    def _resized(self, images: Tensor) -> Tensor:
        if self.size is None or images.shape[2:] == self.size:
            return images
        resized = F.interpolate(images, self.size, mode="bicubic", antialias=True)
        return resized.clamp(0, 1)  # bicubic overshoots at edges


@dataclass(frozen=True, kw_only=True)
class Recogniser:
    """Whether an independent classifier still names the reconstruction's class: 0 or 1.

    Its mean over images is the share of reconstructions recognised by a machine.
    """

    classifier: str = "recogniser"

    @property
    def spec(self) -> MetricSpec:
        return MetricSpec(
            name="recogniser",
            title="Recognised by a classifier",
            higher_means_more_leakage=True,
            per_image=True,
            yes_or_no=True,
        )

    def files(self, resources: Resources) -> tuple[Path, ...]:
        return (find_classifier(self.classifier, resources),)

    def prepare(self, resources: Resources) -> Judge:
        classifier = load_classifier(self.files(resources)[0], resources.device)
        return lambda pairs: Scores(values=recognised(classifier, pairs))


@dataclass(frozen=True, kw_only=True)
class ClassifierDistance:
    """Fréchet distance on the features of one of the product's own classifiers.

    Never called FID: that name belongs to Inception's features.
    """

    classifier: str

    def __post_init__(self) -> None:
        check_name(self.classifier)

    @property
    def spec(self) -> MetricSpec:
        return MetricSpec(
            name=f"fd:{self.classifier}",
            title=f"Fréchet distance ({self.classifier})",
            higher_means_more_leakage=False,
            per_image=False,
        )

    def files(self, resources: Resources) -> tuple[Path, ...]:
        return (find_classifier(self.classifier, resources),)

    def prepare(self, resources: Resources) -> Judge:
        classifier = load_classifier(self.files(resources)[0], resources.device)
        return frechet_judge(classifier.features)


def recognised(classifier: Classifier, pairs: Pairs) -> np.ndarray:
    """1 where the classifier's first choice for a reconstruction is the true class, else 0.

    Returns (N,) float64. Raises `DataError` where classes are unknown, to us or to it.
    """
    if pairs.class_names is None:
        raise DataError(
            "The recogniser needs to know what each image shows. Give a reconstruction set, or "
            "folders laid out as <class>/<image>."
        )
    unknown = sorted(set(pairs.class_names) - set(classifier.classes))
    if unknown:
        raise DataError(
            f"The classifier was not trained on {unknown[0]!r}; it knows "
            f"{', '.join(classifier.classes[:5])}, … ({len(classifier.classes)} classes)."
        )
    truth = torch.tensor([classifier.classes.index(name) for name in pairs.class_names])
    choice = classifier.logits(pairs.reconstructions).argmax(dim=1)
    return (choice == truth).double().numpy()


def find_classifier(name: str, resources: Resources) -> Path:
    """The file of the classifier called `name`; `WeightsError` says where it was looked for."""
    check_name(name)
    folders = (resources.checkpoints, *resources.classifiers)
    for folder in folders:
        path = folder / f"{name}.safetensors"
        if path.is_file():
            return path
    looked = " and ".join(str(folder) for folder in folders)
    raise WeightsError(
        f"{name}.safetensors is missing; it was looked for in {looked}. "
        "`python -m semsim demo build` makes the built-in classifier, `recogniser`."
    )


def load_classifier(path: Path, device: torch.device) -> Classifier:
    """The classifier in the file at `path`; `WeightsError` where it holds none."""
    from semsim.targets import load_target

    module = load_target(path).to(device).eval()
    return Classifier(module=module, device=device, size=module.size)


def check_name(name: str) -> None:
    """Raise `SettingsError` unless `name` is a plain name: names may come from a browser."""
    if not _NAME.fullmatch(name) or name.startswith("."):
        raise SettingsError(f"{name!r} is not the name of a file in checkpoints/.")
