"""Facts of the metrics in a table of scores: direction, weights, and whether one may be judged.

The values of a custom metric came with the data. The judge that ranked the words of a study's
lists is no metric of that study: what people could answer depends on it, and so does how well it
agrees with them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pandas as pd

from semsim.base.columns import LEAKS
from semsim.base.errors import DataError, SettingsError, UnknownNameError, WeightsError
from semsim.base.table_files import check_columns
from semsim.metrics import MetricSpec, Resources, find_metric, is_known
from semsim.metrics.scoring import WEIGHTS
from semsim.weights import sha256_of

Weights = Mapping[str, Mapping[str, str]]  # SHA-256 by file, by metric
_FAMILIES = ("recogniser", "fd")  # whose networks rank words, too


def directions_in(scores: pd.DataFrame) -> dict[str, bool]:
    """By metric whether higher values leak more, as far as the table says it in `LEAKS`."""
    if LEAKS not in scores:
        return {}
    rows = scores[["metric", LEAKS]].drop_duplicates().dropna().astype(str)
    return {metric: way == "higher" for metric, way in rows.itertuples(index=False)}


def spec_of(name: str, scores: pd.DataFrame, directions: Mapping[str, bool]) -> MetricSpec | None:
    """Return the facts of a metric in a table of scores; None where its direction is unknown.

    Raises `SettingsError` where the direction given is not that of a metric known here.
    """
    if not is_known(name):
        if name not in directions:
            return None
        return MetricSpec(
            name=name,
            title=f"{name} (custom)",
            higher_means_more_leakage=directions[name],
            per_image=bool(scores.loc[scores["metric"] == name, "image_id"].notna().any()),
        )
    spec = find_metric(name).spec
    if directions.get(name, spec.higher_means_more_leakage) != spec.higher_means_more_leakage:
        way = "higher" if spec.higher_means_more_leakage else "lower"
        raise SettingsError(f"{name} is known: its {way} values leak more. Leave it out.")
    return spec


def specs_of(
    scores: pd.DataFrame,
    higher: Sequence[str] = (),
    lower: Sequence[str] = (),
    absent: Sequence[str] = (),
) -> list[MetricSpec]:
    """The facts of every metric in a table of scores, in the order they come.

    Args:
        higher, lower: Names of metrics the product does not know, by the direction of leakage.
        absent: Further metrics, known here, that may have no scores.

    Raises:
        SettingsError: Where a direction is missing, given twice, or contradicts a known metric.
    """
    check_columns(scores, ("metric", "image_id"), "The table of scores", DataError)
    names = [str(name) for name in scores["metric"].dropna().unique()]
    unscored = sorted({*higher, *lower} - set(names))
    if unscored:
        raise SettingsError(
            f"No scores of {', '.join(unscored)}, whose direction was given. The scores have: "
            f"{', '.join(names)}."
        )
    twice = sorted(set(higher) & set(lower))
    if twice:
        raise SettingsError(f"{', '.join(twice)} cannot leak more both ways; give one direction.")
    directions = directions_in(scores) | dict.fromkeys(higher, True) | dict.fromkeys(lower, False)
    wanted = dict.fromkeys([*names, *absent])
    found = {name: spec_of(name, scores, directions) for name in wanted}
    unknown = [name for name, spec in found.items() if spec is None]
    if unknown:
        raise SettingsError(
            f"The scores have metrics that are not known here: {', '.join(unknown)}. Say of each "
            "whether higher or lower values leak more: --higher-leaks NAME or --lower-leaks NAME."
        )
    return [spec for spec in found.values() if spec is not None]


def custom_remarks(specs: Iterable[MetricSpec]) -> list[str]:
    """Return a sentence for each metric that is not built in."""
    return [
        f"{spec.name} is a custom metric: its values came with the data and were not computed here."
        for spec in specs
        if not is_known(spec.name)
    ]


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


def refused_judges(weights: Weights, judges: Collection[str]) -> dict[str, str]:
    """Return, by metric, why it cannot judge the study: its own network ranked the words."""
    return {
        name: (
            f"{Path(file).stem} ranked the words of this study's lists, so what people could "
            "answer depends on it; a metric must not. Train another distractor model "
            "(`semsim-studio distractors train`) and compare that."
        )
        for name, files in weights.items()
        for file, sha in files.items()
        if sha in judges
    }


def unknown_judges(
    specs: Iterable[MetricSpec], weights: Weights, judges: Collection[str]
) -> list[str]:
    """Return a sentence on each classifier of which it is unknown if it ranked the words."""
    return [
        f"{spec.title}: the weights behind its scores are unknown. It may be the distractor "
        "model that ranked the words of this study's lists."
        for spec in specs
        if judges
        and spec.name not in weights
        and spec.name.partition("@")[0].partition(":")[0] in _FAMILIES
    ]
