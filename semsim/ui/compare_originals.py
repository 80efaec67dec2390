"""Originals on Compare: reconstructions of each, left to right by a metric, marked by people."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from semsim.metrics import MetricSpec
from semsim.reporting.model_figures import heading
from semsim.reporting.notation import number
from semsim.reporting.ranked_figure import most_divided, ranked_rows
from semsim.ui.compare_data import Comparison
from semsim.ui.compare_view import HTML, image_source

PAGE = 6  # originals on one page
PICTURES = 96  # reconstructions on one page: more would take more than a screen and a half
_SIGNS = {"recognised": "✓", "not recognised": "✗", "undecided": "?"}
_SIDES = {"recognised": "leaked", "not recognised": "private", "undecided": "open"}


@dataclass(frozen=True, kw_only=True)
class Place:
    """A reconstruction in its line. side: leaked, private or open, which programs leave open."""

    row: int
    model: str
    address: str
    value: str
    mark: str
    sign: str
    side: str


@dataclass(frozen=True, kw_only=True)
class Line:
    """An original and its reconstructions, what the metric says leaks most first."""

    title: str
    address: str
    places: Sequence[Place]


def originals(comparison: Comparison, spec: MetricSpec, start: int) -> str:
    """The originals people are most divided about first, some on a page from number `start` on."""
    if not spec.per_image:
        return str(HTML.note(f"{spec.title} judges whole sets, not single pictures."))
    if not comparison.has_images:
        return str(HTML.note("The pictures of this study are not at hand, only its numbers."))
    rows = ranked_rows(comparison.analysis, spec)
    order = most_divided(rows, rows["original"].nunique())
    longest = max(rows["original"].value_counts(), default=1)
    step = max(1, min(PAGE, PICTURES // longest))
    first = min(start, max(0, len(order) - 1) // step * step)
    lines = [
        _line(comparison, rows[rows["original"] == name]) for name in order[first : first + step]
    ]
    pages = {"start": first, "total": len(order), "step": step}
    people = comparison.voters
    return str(HTML.originals(lines, heading(spec), pages, people))


def _line(comparison: Comparison, part: pd.DataFrame) -> Line:
    images = comparison.images
    first = images.iloc[int(part["row"].iloc[0])]
    places = [
        Place(
            row=int(row["row"]),
            model=str(row["model"]),
            address=image_source(images["reconstruction"].iloc[int(row["row"])]),
            value=number(row["value"], 3),
            mark=row["mark"],
            sign=_SIGNS[row["mark"]],
            side="open" if comparison.study.simulated else _SIDES[row["mark"]],
        )
        for row in part.to_dict("records")
    ]
    return Line(
        title=str(first["class_name"]), address=image_source(first["original"]), places=places
    )
