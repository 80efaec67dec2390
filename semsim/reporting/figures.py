"""The figures of an analysis, by name: what is drawn is a table, and the table can be had."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from semsim.analysis.result import Analysis
from semsim.errors import UnknownNameError
from semsim.metrics.base import MetricSpec
from semsim.reporting import canvas
from semsim.reporting.drawn import Drawn
from semsim.reporting.image_figures import images, matrix
from semsim.reporting.interval_figures import auc, forest, rules
from semsim.reporting.model_figures import scatter, stability

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

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
}
NAMES = (*_OF_STUDY, *_OF_METRIC)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure by name; `metric` is None where it is of the whole study."""

    name: str
    metric: str | None
    drawn: Drawn

    @property
    def stem(self) -> str:
        """Name of its files: the name, then the metric, with `:`, `@` and `/` as dashes."""
        return self.name if self.metric is None else f"{self.name}-{safe_name(self.metric)}"

    @property
    def title(self) -> str:
        return self.drawn.title

    @property
    def caption(self) -> str:
        return self.drawn.caption

    def data(self) -> pd.DataFrame:
        """Exactly what is drawn, in full precision."""
        return self.drawn.frame

    def draw(self, width_mm: float = canvas.DOUBLE) -> "Drawing":
        """The figure, `width_mm` wide: 89 fits one column of a journal, 183 two."""
        return self.drawn.paint(self.drawn.frame, width_mm)


def figure(analysis: Analysis, name: str, metric: str | None = None) -> Figure:
    """The figure `name` of an analysis, for the figures of one metric that of `metric`.

    Raises `UnknownNameError` for a figure, or a metric, that there is not.
    """
    if name in _OF_STUDY:
        return Figure(name=name, metric=None, drawn=_OF_STUDY[name](analysis))
    if name not in _OF_METRIC:
        raise UnknownNameError(f"No figure is called {name!r}. Known: {', '.join(NAMES)}.")
    specs = {spec.name: spec for spec in analysis.specs}
    if metric not in specs:
        known = ", ".join(specs) or "none, as nothing has scores"
        raise UnknownNameError(f"No metric of this analysis is called {metric!r}. Known: {known}.")
    return Figure(name=name, metric=metric, drawn=_OF_METRIC[name](analysis, specs[metric]))


def figures(analysis: Analysis) -> tuple[Figure, ...]:
    """Every figure: those of the study, then metric by metric, the best agreeing first."""
    of_study = [figure(analysis, name) for name in _OF_STUDY]
    of_metrics = [
        figure(analysis, name, spec.name)
        for spec in by_agreement(analysis)
        for name in _OF_METRIC
        if name != "images" or spec.name in analysis.evidence.scores
    ]
    return (*of_study, *of_metrics)


def by_agreement(analysis: Analysis) -> list[MetricSpec]:
    """The metrics, the one that agrees best with people first, undefined ones last."""
    rho = analysis.agreement.set_index("metric")["rho"].fillna(-2.0)
    return sorted(analysis.specs, key=lambda spec: -float(rho.get(spec.name, -2.0)))


def safe_name(name: str) -> str:
    """`name` as part of a file name."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
