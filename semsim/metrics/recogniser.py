"""Metrics that ask a classifier of the product's own: does it still recognise the image?"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from semsim.base.errors import SettingsError, WeightsError
from semsim.base.metric_spec import MetricSpec
from semsim.metrics.base import Judge, Resources, Scores
from semsim.metrics.inception import FrechetJudge, remembered

if TYPE_CHECKING:
    from semsim.metrics.classifier import Classifier

JUDGES = "judges"  # folder below checkpoints/
_NAME = re.compile(r"[\w.-]+")


@dataclass(frozen=True, kw_only=True)
class _OfClassifier:
    classifier: str

    def __post_init__(self) -> None:
        check_name(self.classifier)

    def files(self, resources: Resources) -> tuple[Path, ...]:
        return (find_classifier(self.classifier, resources),)

    def loaded(self, resources: Resources) -> "Classifier":
        from semsim.metrics.classifier import load_classifier  # with torch, when it is asked

        return load_classifier(self.files(resources)[0], resources.device)


@dataclass(frozen=True, kw_only=True)
class Recogniser(_OfClassifier):
    """Recognition of the reconstruction's class by an independent classifier: 0 or 1.

    Its mean over images is the share of reconstructions recognised by a machine.
    """

    classifier: str = "recogniser"

    @property
    def spec(self) -> MetricSpec:
        own = self.classifier == "recogniser"
        return MetricSpec(
            name="recogniser" if own else f"recogniser:{self.classifier}",
            title="Recognised by a classifier" if own else f"Recognised by {self.classifier}",
            higher_means_more_leakage=True,
            per_image=True,
            yes_or_no=True,
            classifier=True,
        )

    def prepare(self, resources: Resources) -> Judge:
        from semsim.metrics.classifier import recognised

        classifier = self.loaded(resources)
        return lambda pairs: Scores(values=recognised(classifier, pairs))


class ClassifierDistance(_OfClassifier):
    """Fréchet distance on the features of one of the product's own classifiers.

    Never called FID: that name belongs to Inception's features.
    """

    @property
    def spec(self) -> MetricSpec:
        return MetricSpec(
            name=f"fd:{self.classifier}",
            title=f"Fréchet distance ({self.classifier})",
            higher_means_more_leakage=False,
            per_image=False,
            classifier=True,
        )

    def prepare(self, resources: Resources) -> Judge:
        return FrechetJudge(features=remembered(self.loaded(resources).features))


def find_classifier(name: str, resources: Resources) -> Path:
    """The file of the classifier called `name`; `WeightsError` says where it was looked for."""
    check_name(name)
    # A SemSim may be called as a judge is.
    folders = (resources.checkpoints / JUDGES, resources.checkpoints, *resources.classifiers)
    for folder in folders:
        path = folder / f"{name}.safetensors"
        if path.is_file():
            return path
    looked = " and ".join(str(folder) for folder in folders)
    raise WeightsError(
        f"{name}.safetensors is missing; it was looked for in {looked}. "
        "`semsim-studio demo build` makes the built-in reference classifier, `recogniser`, and "
        "`semsim-studio distractors train` others."
    )


def check_name(name: str) -> None:
    """Raise `SettingsError` unless `name` is a plain name: names may come from a browser."""
    if not _NAME.fullmatch(name) or name.startswith("."):
        raise SettingsError(f"{name!r} is not the name of a file in checkpoints/.")
