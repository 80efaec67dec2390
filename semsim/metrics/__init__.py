"""Metrics: how much does a reconstruction give away? One interface, one registry."""

from collections.abc import Callable
from pathlib import Path

from safetensors import SafetensorError, safe_open

from semsim.errors import UnknownNameError
from semsim.metrics.base import (
    Judge,
    Metric,
    MetricSpec,
    Pairs,
    Reference,
    Resources,
    Scores,
    Summary,
    summarise,
)
from semsim.metrics.classifier import ClassifierDistance, Recogniser
from semsim.metrics.fid import Fid, Kid
from semsim.metrics.lpips import Lpips
from semsim.metrics.ms_ssim import MsSsim
from semsim.metrics.pixel import Mse, Psnr
from semsim.metrics.reference import SUFFIX, AgainstAttacked
from semsim.metrics.registered import PsnrRegistered, SsimRegistered
from semsim.metrics.semsim import SemSimDistance
from semsim.metrics.ssim import Ssim
from semsim.registry import Registry

METRICS: Registry[Metric] = Registry(
    "metric",
    {
        "mse": Mse(),
        "psnr": Psnr(),
        "ssim": Ssim(),
        "ssim-uniform": Ssim(window="uniform"),
        "psnr-registered": PsnrRegistered(),
        "ssim-registered": SsimRegistered(),
        "ms-ssim": MsSsim(),
        "lpips-alex": Lpips(net="alex"),
        "lpips-squeeze": Lpips(net="squeeze"),
        "lpips-vgg": Lpips(net="vgg"),
        "fid": Fid(),
        "kid": Kid(),
        "fd:recogniser": ClassifierDistance(classifier="recogniser"),
        "recogniser": Recogniser(),
    },
)

# Metrics of whatever has been trained: `<family>:<name of a file in checkpoints/>`.
FAMILIES: Registry[Callable[[str], Metric]] = Registry(
    "family of metrics",
    {
        "fd": lambda name: ClassifierDistance(classifier=name),
        "semsim": lambda name: SemSimDistance(checkpoint=name),
    },
)
_FAMILY_OF_KIND = {"semsim": "semsim", "target": "fd"}


def find_metric(name: str) -> Metric:
    """The metric called `name`, of the registry or of a family.

    `<name>@attacked` is the same metric with the attacked image as reference. Raises
    `UnknownNameError` that names the alternatives.
    """
    plain = name.removesuffix(SUFFIX)
    family, _, checkpoint = plain.partition(":")
    if plain in METRICS:
        metric = METRICS[plain]
    elif checkpoint and family in FAMILIES:
        metric = FAMILIES[family](checkpoint)
    else:
        known = ", ".join([*METRICS, *(f"{family}:<checkpoint>" for family in FAMILIES)])
        raise UnknownNameError(
            f"No metric is called {name!r}. Known: {known}; and each with {SUFFIX}."
        )
    return metric if plain == name else AgainstAttacked(metric=metric)


def all_metrics(resources: Resources) -> dict[str, Metric]:
    """Every metric of the registry and of the checkpoints at hand, by name.

    Whether its weights are there is for `Metric.files` to say.
    """
    trained = (_metric_of(path) for path in sorted(resources.checkpoints.glob("*.safetensors")))
    return {**METRICS, **{metric.spec.name: metric for metric in trained if metric is not None}}


def _metric_of(path: Path) -> Metric | None:
    """The metric of a trained checkpoint, or None for a file that is something else."""
    try:
        with safe_open(str(path), framework="pt") as file:
            kind = (file.metadata() or {}).get("kind", "")
    except (SafetensorError, OSError):  # half written, or not ours: not a metric
        return None
    family = _FAMILY_OF_KIND.get(kind)
    return None if family is None else FAMILIES[family](path.stem)


__all__ = [
    "FAMILIES",
    "METRICS",
    "Judge",
    "Metric",
    "MetricSpec",
    "Pairs",
    "Reference",
    "Resources",
    "Scores",
    "Summary",
    "all_metrics",
    "find_metric",
    "summarise",
]
