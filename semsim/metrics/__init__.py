"""Metrics: how much does a reconstruction give away? One interface, one registry."""

from __future__ import annotations

from collections.abc import Callable

from semsim.base.errors import UnknownNameError
from semsim.base.metric_spec import MetricSpec, Reference
from semsim.base.registry import Registry, unknown
from semsim.base.storage.folders import shown
from semsim.metrics.base import (
    BACKBONES,
    SUFFIX,
    AgainstAttacked,
    Judge,
    Metric,
    Pairs,
    Resources,
    Scores,
    Summary,
    summarise,
)
from semsim.metrics.inception import Fid, Kid, fid, kid
from semsim.metrics.multi_scale import MsSsim, ms_ssim
from semsim.metrics.perceptual import Lpips, lpips
from semsim.metrics.pixel import Mse, Psnr, mse, psnr
from semsim.metrics.provenance import FORMAT as NETWORK
from semsim.metrics.recogniser import JUDGES, ClassifierDistance, Recogniser
from semsim.metrics.registered import (
    PsnrRegistered,
    SsimRegistered,
    psnr_registered,
    ssim_registered,
)
from semsim.metrics.semsim import SemSimDistance
from semsim.metrics.structural import Ssim, ssim
from semsim.targets.chance import CLASSIFIER
from semsim.weights import holds

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
        "recogniser": lambda name: Recogniser(classifier=name),
        "semsim": lambda name: SemSimDistance(checkpoint=name),
    },
)
_FAMILIES_OF = {NETWORK: ("semsim",), CLASSIFIER: ("fd",)}


def find_metric(name: str) -> Metric:
    """The metric called `name`, of the registry or of a family.

    `<name>@attacked` is the same metric with the attacked image as reference. Raises
    `UnknownNameError` that names the alternatives.

    >>> find_metric("psnr@attacked").spec.reference
    'attacked'
    """
    plain = name.removesuffix(SUFFIX)
    family, _, checkpoint = plain.partition(":")
    if plain in METRICS:
        metric = METRICS[plain]
    elif checkpoint and family in FAMILIES:
        metric = FAMILIES[family](checkpoint)
    else:
        known = [*METRICS, *(f"{family}:<checkpoint>" for family in FAMILIES)]
        raise unknown("metric", name, known, f"; and each with {SUFFIX}")
    return metric if plain == name else AgainstAttacked(metric=metric)


def is_known(name: str) -> bool:
    """Return whether `find_metric` knows `name`; its weights may still be missing.

    >>> is_known("semsim:mine"), is_known("mine")
    (True, False)
    """
    try:
        find_metric(name)
    except UnknownNameError:
        return False
    return True


def all_metrics(resources: Resources) -> dict[str, Metric]:
    """Every metric of the registry and of the checkpoints at hand, by name.

    Whether its weights are there is for `Metric.files` to say.

    >>> from pathlib import Path
    >>> "semsim:demo" in all_metrics(Resources(checkpoints=Path("checkpoints")))
    True
    """
    found = [
        FAMILIES[family](path.stem)
        for folder, families in (
            (resources.checkpoints, _FAMILIES_OF),
            (resources.checkpoints / JUDGES, {CLASSIFIER: ("fd", "recogniser")}),
        )
        for path in shown(folder, "*.safetensors")
        for form, own in families.items()
        if holds(path, form)
        for family in own
    ]
    return {**METRICS, **{metric.spec.name: metric for metric in found}}


__all__ = [
    "BACKBONES",
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
    "fid",
    "find_metric",
    "is_known",
    "kid",
    "lpips",
    "ms_ssim",
    "mse",
    "psnr",
    "psnr_registered",
    "ssim",
    "ssim_registered",
    "summarise",
]
