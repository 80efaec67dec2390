"""The figures of an analysis, by name: what is drawn is a table, and the table can be had."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from semsim.analysis.agreement import best_first
from semsim.analysis.result import Analysis
from semsim.errors import UnknownNameError
from semsim.metrics.base import MetricSpec
from semsim.registry import unknown
from semsim.reporting.canvas import Drawn, marked_as_simulated
from semsim.reporting.image_figures import images, matrix
from semsim.reporting.interval_figures import auc, forest, rules
from semsim.reporting.model_figures import scatter, stability
from semsim.reporting.ranked_figure import ranked

# Figures of a whole study, and figures of one metric.
_OF_STUDY: dict[str, Callable[[Analysis], Drawn]] = {
    "forest": forest,
    "auc": auc,
    "rules": rules,
    "matrix": matrix,
}
_OF_METRIC: dict[str, Callable[[Analysis, MetricSpec], Drawn]] = {
    "scatter": scatter,
    "stability": stability,
    "images": images,
    "ranked": ranked,
}
_OF_IMAGES = ("images", "ranked")  # of metrics that give each image a value
NAMES = (*_OF_STUDY, *_OF_METRIC)


def figure(analysis: Analysis, name: str, metric: str | None = None) -> Drawn:
    """The figure `name` of an analysis, for the figures of one metric that of `metric`.

    Of simulated votes it is marked as such. Raises `UnknownNameError` for a figure, or a metric,
    that there is not.
    """
    found = _found(analysis, name, metric)
    return marked_as_simulated(found) if analysis.evidence.simulated else found


def _found(analysis: Analysis, name: str, metric: str | None) -> Drawn:
    if name in _OF_STUDY:
        return replace(_OF_STUDY[name](analysis), name=name)
    if name not in _OF_METRIC:
        raise unknown("figure", name, NAMES)
    specs = {spec.name: spec for spec in analysis.specs}
    if metric not in specs:
        raise unknown("metric of this analysis", metric, specs)
    if name not in names_of(analysis, specs[metric]):
        raise UnknownNameError(f"{specs[metric].title} gives no value to a single image.")
    return replace(_OF_METRIC[name](analysis, specs[metric]), name=name, metric=metric)


def figures(analysis: Analysis) -> tuple[Drawn, ...]:
    """Every figure: those of the study, then metric by metric, the best agreeing first.

    No two have one stem: where the names of metrics differ in a separator or in case only, the
    name of the later figure has a number.
    """
    of_study = [figure(analysis, name) for name in _OF_STUDY]
    of_metrics = [
        figure(analysis, name, spec.name)
        for spec in by_agreement(analysis)
        for name in names_of(analysis, spec)
        if name in _OF_METRIC
    ]
    return _told_apart([*of_study, *of_metrics])


def _told_apart(drawn: list[Drawn]) -> tuple[Drawn, ...]:
    taken: Counter[str] = Counter()
    found = []
    for one in drawn:
        stem = one.stem.casefold()  # one file on many disks
        taken[stem] += 1
        n = taken[stem]
        found.append(one if n == 1 else replace(one, name=f"{one.name}-{n}"))
    return tuple(found)


def names_of(analysis: Analysis, spec: MetricSpec) -> list[str]:
    """The names of figures there are with this metric, those of the whole study first."""
    of_images = spec.name in analysis.evidence.scores
    return [name for name in NAMES if of_images or name not in _OF_IMAGES]


def by_agreement(analysis: Analysis) -> list[MetricSpec]:
    """The metrics, the one that agrees best with people first, as `best_first` has them."""
    names = [*best_first(analysis.agreement)["metric"], *(spec.name for spec in analysis.specs)]
    return sorted(analysis.specs, key=lambda spec: names.index(spec.name))
