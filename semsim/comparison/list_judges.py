"""The judge that ranked the words of a study's lists is no metric of that study.

What people could answer depends on it, and so does how well it agrees with them.
"""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import pandas as pd

from semsim.base.errors import UnknownNameError, WeightsError
from semsim.metrics import MetricSpec, Resources, find_metric
from semsim.metrics.scoring import WEIGHTS
from semsim.weights import sha256_of

Weights = Mapping[str, Mapping[str, str]]  # SHA-256 by file, by metric
_FAMILIES = ("recogniser", "fd")  # whose networks rank words, too


def weights_at_hand(names: Iterable[str], resources: Resources) -> dict[str, dict[str, str]]:
    """The weight files of each metric that are on this machine; a metric may have none."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        with suppress(WeightsError, UnknownNameError):
            found[name] = {p.name: sha256_of(p) for p in find_metric(name).files(resources)}
    return found


def weights_stated(scores: pd.DataFrame) -> dict[str, dict[str, str]]:
    """The weight files that a table of scores says it was made with, by metric."""
    if WEIGHTS not in scores:
        return {}
    rows = scores[["metric", WEIGHTS]].drop_duplicates().dropna().astype(str)
    found: dict[str, dict[str, str]] = {}
    for metric, text in rows.itertuples(index=False):
        files = (part.rpartition(":") for part in text.split())
        found.setdefault(metric, {}).update({file: sha for file, _, sha in files})
    return found


def refused(weights: Weights, judges: Collection[str]) -> dict[str, str]:
    """Return, by metric, why it cannot judge the study: its own network ranked the words."""
    return {
        name: (
            f"{Path(file).stem} ranked the words of this study's lists, so what people could "
            "answer depends on it; a metric must not. Train another judge of the data set "
            "(`semsim-studio judge train`) and compare that."
        )
        for name, files in weights.items()
        for file, sha in files.items()
        if sha in judges
    }


def unknown(specs: Iterable[MetricSpec], weights: Weights, judges: Collection[str]) -> list[str]:
    """Return a sentence on each classifier of which it is unknown if it ranked the words."""
    return [
        f"{spec.title}: nothing says which weights its scores were made with, so it may be the "
        "very judge that ranked the words of this study's lists."
        for spec in specs
        if judges
        and spec.name not in weights
        and spec.name.partition("@")[0].partition(":")[0] in _FAMILIES
    ]
