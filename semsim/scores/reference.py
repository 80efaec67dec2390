"""What a reference classifier recognises in reconstruction sets, beside its controls."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from semsim.errors import WeightsError
from semsim.images import read_images
from semsim.metrics import Pairs, Resources, all_metrics
from semsim.metrics.classifier import Classifier, load_classifier, recognised
from semsim.sets.reader import read_set

FITS = 0.5  # share of the originals that a classifier must name to be a reference
_FAMILY = "recogniser"


def recognition(folders: Mapping[str, Path], resources: Resources) -> dict[str, Any]:
    """What the classifier at hand that names most originals recognises in each of these sets.

    folders: of the sets, by a name each.
    Returns, ready for JSON, its name as `classifier`; `sets`, by their names, with the numbers of a
    `semsim.sets.recognition.Recognised`; and `why` there is none, "" where there is one.
    """
    looked = [_Looked(name, folder) for name, folder in folders.items()]
    found = [
        (sum(one["originals"] for one in sets.values()), name, sets)
        for name, classifier in _classifiers(resources)
        if (sets := _counts(classifier, looked))
    ]
    best, name, sets = max(found, key=lambda one: one[0], default=(0, "", {}))
    over = sum(one["over"] for one in sets.values())
    if not found or best < FITS * over:
        return {"classifier": "", "sets": {}, "why": _why_none(looked, best, over)}
    return {"classifier": name, "sets": sets, "why": ""}


def names_rightly(resources: Resources, class_name: str, pictures: Tensor) -> list[bool] | None:
    """Whether the first classifier that knows a class names it in each of (N, 3, H, W) in [0, 1].

    None where none knows it.
    """
    for _, classifier in _classifiers(resources):
        if class_name in classifier.classes:
            pairs = _pairs(pictures, pictures, [class_name] * len(pictures))
            return [bool(one) for one in recognised(classifier, pairs)]
    return None


class _Looked:
    """The pictures of a set, with what they show; `over` counts failed attacks, too."""

    def __init__(self, name: str, folder: Path) -> None:
        found = read_set(folder)
        self.name = name
        rows = found.manifest[found.manifest["original"].notna()]
        self.over = len(found.manifest)
        self.classes = rows["class_name"].astype(str).tolist()
        self.originals = _read([folder / path for path in rows["original"]])
        done = found.pairs
        self.done_classes = done["class_name"].astype(str).tolist()
        self.pictures = _read([Path(path) for path in done["reconstruction"]])


def _read(paths: Sequence[Path]) -> Tensor:
    """(N, 3, H, W); of no paths, as where every attack failed, no pictures."""
    return read_images(paths) if paths else torch.empty(0, 3, 1, 1)


def _classifiers(resources: Resources) -> Iterable[tuple[str, Classifier]]:
    for name, metric in all_metrics(resources).items():
        if name.partition(":")[0] == _FAMILY:
            with suppress(WeightsError):  # not here
                (path,) = metric.files(resources)
                yield name, load_classifier(path, resources.device)


def _counts(classifier: Classifier, looked: Sequence[_Looked]) -> dict[str, dict[str, int]]:
    """By set what is recognised; {} where the classifier does not know all classes."""
    if any(set(one.classes) - set(classifier.classes) for one in looked):
        return {}
    return {one.name: _count(classifier, one) for one in looked}


def _count(classifier: Classifier, one: _Looked) -> dict[str, int]:
    grey = torch.full_like(one.originals, 0.5)

    def right(pictures: Tensor, classes: Sequence[str]) -> int:
        if not len(pictures):
            return 0
        return int(recognised(classifier, _pairs(pictures, pictures, classes)).sum())

    return {
        "recognised": right(one.pictures, one.done_classes),
        "grey": right(grey, one.classes),
        "originals": right(one.originals, one.classes),
        "over": one.over,
    }


def _pairs(originals: Tensor, pictures: Tensor, classes: Sequence[str]) -> Pairs:
    return Pairs(originals=originals, reconstructions=pictures, class_names=tuple(classes))


def _why_none(looked: Sequence[_Looked], best: int, over: int) -> str:
    if best or over:
        return f"the best classifier here names {best} of {over} originals only."
    classes = list(dict.fromkeys(name for one in looked for name in one.classes))
    few = ", ".join(classes[:3]) + ("…" if len(classes) > 3 else "")
    return (
        f"no classifier here knows these classes ({few}). Make a study, or train one: "
        "semsim-studio judge train."
    )
