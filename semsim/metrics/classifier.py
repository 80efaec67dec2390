"""The product's own classifiers, asked what an image shows."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from semsim.base.errors import DataError
from semsim.base.sets.set_format import PREDICTION_COLUMNS
from semsim.metrics.base import Pairs, batches
from semsim.metrics.network import resize
from semsim.targets.model import load_target

_BATCH = 128


class ClassifierModule(Protocol):
    """Module that a classifier file loads into: images in [0, 1] to logits and to features."""

    classes: tuple[str, ...]

    def __call__(self, images: Tensor) -> Tensor:
        """(N, 3, H, W) in [0, 1] to logits, (N, number of classes)."""
        ...

    def features(self, images: Tensor) -> Tensor:
        """(N, 3, H, W) in [0, 1] to what the last layer sees, (N, d)."""
        ...


@dataclass(frozen=True, kw_only=True)
class Classifier:
    """A trained classifier, ready to be asked about any number of images.

    Attributes:
        size: (H, W) the network was made for; images of another size are resized to it.
    """

    module: ClassifierModule
    device: torch.device | str
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
        parts = batches(images, _BATCH, self.device)
        return [part if self.size is None else resize(part, self.size) for part in parts]


def recognised(classifier: Classifier, pairs: Pairs) -> np.ndarray:
    """1 where the classifier's first choice for a reconstruction is the true class, else 0.

    Returns (N,) float64. Raises `DataError` where classes are unknown, to us or to it.
    """
    if pairs.class_names is None or "" in pairs.class_names:
        raise DataError(
            "The reference classifier needs the class of each image. Give a reconstruction set, or "
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


def predictions(
    classifier: Classifier, pictures: Iterable[tuple[str, str, Tensor]]
) -> pd.DataFrame:
    """Return the log-probabilities of all classes for each picture, with `PREDICTION_COLUMNS`.

    Args:
        pictures: (image_id, "original" or "reconstruction", (3, H, W) float32 in [0, 1]). The
            logits are float32, their softmax float64 and not rounded: what is all but certain still
            has an order.
    """
    rows = []
    for image_id, subject, picture in pictures:
        logs = classifier.logits(picture[None])[0].double().log_softmax(0).tolist()
        rows += [
            (image_id, subject, name, log)
            for name, log in zip(classifier.classes, logs, strict=True)
        ]
    return pd.DataFrame(rows, columns=list(PREDICTION_COLUMNS))


def load_classifier(path: Path, device: torch.device | str) -> Classifier:
    """The classifier in the file at `path`; `WeightsError` where it holds none."""
    module = load_target(path).to(device).eval()
    return Classifier(module=module, device=device, size=module.size)
