"""Recognition by a reference classifier, beside its controls, in reconstruction sets."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from semsim.base.errors import WeightsError
from semsim.base.sets.reader import read_set
from semsim.base.words import first_of
from semsim.defences.none import NoDefence
from semsim.images import read_images
from semsim.metrics import Pairs, Resources, all_metrics
from semsim.metrics.classifier import Classifier, load_classifier, recognised
from semsim.targets.convnet import SmallCNN
from semsim.targets.train import accuracy, train_target
from semsim.targets.train_settings import TrainSettings
from semsim.types import LabelledImages

FITS = 0.5  # share of the originals that a classifier must name to be a reference
RECOGNISER, RECOGNISER_TRAIN = SmallCNN(width=12), TrainSettings(epochs=10, lr=0.05)
_FAMILY = "recogniser"
_OF_FEW = replace(RECOGNISER_TRAIN, epochs=30)  # a test split has fewer pictures


class Looked(NamedTuple):
    """The pictures of a set and what they show.

    Attributes:
        over: How many were attacked, also in vain.
        classes, done_classes: What originals and pictures show.
        originals, pictures: (N, 3, H, W) in [0, 1]; pictures are those that came back.
    """

    name: str
    over: int
    classes: Sequence[str]
    originals: Tensor
    done_classes: Sequence[str]
    pictures: Tensor


def recognition(
    folders: Mapping[str, Path],
    resources: Resources,
    made: Callable[[], tuple[Classifier, float]] | None = None,
) -> dict[str, Any]:
    """Count what the classifier at hand that names most originals recognises in each of these sets.

    Args:
        folders: Of the sets, by a name each.
        made: Makes a classifier where none at hand fits, with the share that it names rightly of
            pictures it did not learn from. Returns, ready for JSON, its name as `classifier`;
            `sets`, by their names, with the numbers of a `semsim.sets.recognition.Recognised`;
            `right`, the share of one that was made, else None; and `why` there is none, "" where
            there is one.
    """
    return recognition_in([_read_set(*one) for one in folders.items()], resources, made)


def recognition_in(
    looked: Sequence[Looked],
    resources: Resources,
    made: Callable[[], tuple[Classifier, float]] | None = None,
) -> dict[str, Any]:
    """Count the same in pictures at hand, see `recognition`."""
    found = [
        (sum(one["originals"] for one in sets.values()), name, sets)
        for name, classifier in _classifiers(resources)
        if (sets := _counts(classifier, looked))
    ]
    best, name, sets = max(found, key=lambda one: one[0], default=(0, "", {}))
    over, right = sum(one["over"] for one in sets.values()), None
    if made is not None and (not found or best < FITS * over):
        classifier, right = made()
        name, sets = "made", _counts(classifier, looked)
        best, over = (sum(one[key] for one in sets.values()) for key in ("originals", "over"))
    if not sets or best < FITS * over:
        why = _why_none(looked, best, over)
        return {"classifier": "", "sets": {}, "right": right, "why": why}
    return {"classifier": name, "sets": sets, "right": right, "why": ""}


def learned_from(images: LabelledImages, others: LabelledImages) -> tuple[Classifier, float]:
    """Train a small classifier on `images`; return it and the share that it names of `others`.

    Both: (N, 3, H, W) in [0, 1], of the same classes. `images` must be none that was attacked.
    """
    model = train_target(RECOGNISER, images, NoDefence(), _OF_FEW)
    return Classifier(module=model.eval(), device="cpu", size=model.size), accuracy(model, others)


def _read_set(name: str, folder: Path) -> Looked:
    found = read_set(folder)
    rows = found.manifest[found.manifest["original"].notna()]
    done = found.pairs
    return Looked(
        name=name,
        over=len(found.manifest),
        classes=rows["class_name"].astype(str).tolist(),
        originals=_read([folder / path for path in rows["original"]]),
        done_classes=done["class_name"].astype(str).tolist(),
        pictures=_read([Path(path) for path in done["reconstruction"]]),
    )


def _read(paths: Sequence[Path]) -> Tensor:
    """(N, 3, H, W); of no paths, as where every attack failed, no pictures."""
    return read_images(paths) if paths else torch.empty(0, 3, 1, 1)


def _classifiers(resources: Resources) -> Iterable[tuple[str, Classifier]]:
    for name, metric in all_metrics(resources).items():
        if name.partition(":")[0] == _FAMILY:
            with suppress(WeightsError):  # not here
                (path,) = metric.files(resources)
                yield name, load_classifier(path, resources.device)


def _counts(classifier: Classifier, looked: Sequence[Looked]) -> dict[str, dict[str, int]]:
    """By set what is recognised; {} where the classifier does not know all classes."""
    if any(set(one.classes) - set(classifier.classes) for one in looked):
        return {}
    return {
        one.name: {
            "recognised": sum(_right(classifier, one.pictures, one.done_classes)),
            "grey": sum(_right(classifier, torch.full_like(one.originals, 0.5), one.classes)),
            "originals": sum(_right(classifier, one.originals, one.classes)),
            "over": one.over,
        }
        for one in looked
    }


def _right(classifier: Classifier, pictures: Tensor, classes: Sequence[str]) -> list[bool]:
    """Tell of each of (N, 3, H, W) whether it is named by its class; N may be 0."""
    if not len(pictures):
        return []
    pairs = Pairs(originals=pictures, reconstructions=pictures, class_names=tuple(classes))
    return [bool(one) for one in recognised(classifier, pairs)]


def _why_none(looked: Sequence[Looked], best: int, over: int) -> str:
    if best or over:
        return f"the best classifier here names {best} of {over} originals only."
    classes = list(dict.fromkeys(name for one in looked for name in one.classes))
    return (
        f"no classifier here knows these classes ({first_of(classes, 3, last='…')}). Make a study, "
        "or train one: semsim-studio distractors train."
    )
