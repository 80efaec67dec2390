"""Metrics of somebody else, whose values came with the data: what must be said of them."""

from collections.abc import Iterable, Mapping

import pandas as pd

from semsim.analysis.evidence import LEAKS
from semsim.errors import SettingsError
from semsim.metrics import MetricSpec, find_metric, is_known


def directions_in(scores: pd.DataFrame) -> dict[str, bool]:
    """By metric whether higher values leak more, as far as the table says it in `LEAKS`."""
    if LEAKS not in scores:
        return {}
    rows = scores[["metric", LEAKS]].drop_duplicates().dropna().astype(str)
    return {metric: way == "higher" for metric, way in rows.itertuples(index=False)}


def spec_of(name: str, scores: pd.DataFrame, directions: Mapping[str, bool]) -> MetricSpec | None:
    """The facts of a metric in a table of scores; None of one that nobody says the direction of.

    Raises `SettingsError` where the direction given is not that of a metric known here.
    """
    if not is_known(name):
        if name not in directions:
            return None
        return MetricSpec(
            name=name,
            title=name,
            higher_means_more_leakage=directions[name],
            per_image=bool(scores.loc[scores["metric"] == name, "image_id"].notna().any()),
        )
    spec = find_metric(name).spec
    if directions.get(name, spec.higher_means_more_leakage) != spec.higher_means_more_leakage:
        way = "higher" if spec.higher_means_more_leakage else "lower"
        raise SettingsError(f"{name} is known: its {way} values leak more. Leave it out.")
    return spec


def foreign_remarks(specs: Iterable[MetricSpec]) -> list[str]:
    """A sentence of each metric that is none of ours."""
    return [
        f"{spec.title} is foreign: its values came with the data and were not computed here."
        for spec in specs
        if not is_known(spec.name)
    ]
