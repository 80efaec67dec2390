"""All reconstructions of an original from left to right, by a metric, marked by people.

After Figures 5 and 6 of the SemSim paper: where people recognise what a metric puts last, or
nothing in what it puts first, the two disagree.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from semsim.base.errors import DataError
from semsim.base.metric_spec import MetricSpec
from semsim.base.picture_files import read_pixels
from semsim.base.stats.analysis import Analysis
from semsim.base.stats.verdict import response_by, verdict
from semsim.base.words import capital
from semsim.reporting import canvas
from semsim.reporting.canvas import Drawn
from semsim.reporting.model_figures import heading
from semsim.reporting.notation import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ORIGINALS = 6  # on a figure
_COLUMNS = 16  # pictures in a line: the paper's 14 targets and their original
_GAP = 0.6  # mm beside a picture
_WORDS = 4.2  # mm below a picture
_TITLE = 4.5  # mm above a line, for the name of its original
_ORIGINAL = "original"
_MARKS = {
    "recognised": ("✓", canvas.LEAKED),
    "not recognised": ("✗", canvas.PRIVATE),
    "undecided": ("?", canvas.INK),
}


def ranked(analysis: Analysis, spec: MetricSpec, originals: int = ORIGINALS) -> Drawn:
    """Reconstructions of some originals by a metric, what it says leaks most first.

    Args:
        originals: At most so many, those first whose reconstructions people are most divided about.
    """
    rows = ranked_rows(analysis, spec)
    chosen = most_divided(rows, originals)
    frame = rows[rows["original"].isin(chosen)]
    order = {name: place for place, name in enumerate(chosen)}
    frame = frame.assign(line=frame["original"].map(order)).sort_values(
        ["line", "place"], kind="stable", ignore_index=True
    )
    who = capital(analysis.evidence.voters)
    return Drawn(
        title=f"Reconstructions of an original, by {spec.title}",
        caption=(
            f"Each line begins with an original. Its reconstructions follow by {heading(spec)}, "
            f"the most leakage first. ✓: {who} recognised it; ✗: not; ?: undecided. Where the "
            "metric agrees, no ✗ comes before a ✓. "
            f"{len(chosen)} of {rows['original'].nunique()} originals, those that votes are most "
            "divided about. After Figures 5 and 6 of Sun et al. 2023."
        ),
        frame=frame.drop(columns="line"),
        paint=functools.partial(_paint, heading(spec), _paths(analysis)),
        name="ranked",
        metric=spec.name,
    )


def ranked_rows(analysis: Analysis, spec: MetricSpec) -> pd.DataFrame:
    """A row a reconstruction with a value: original, class_name, place, model, value, share,
    mark and row, its number in the evidence.

    place: 1 for what the metric says leaks most of its original. share: of votes that recognised
    it. mark: "recognised", "not recognised" or "undecided" by the headline human score. Empty for
    a metric of whole sets.
    """
    evidence = analysis.evidence
    values = evidence.scores.get(spec.name)
    side = verdict(evidence, analysis.settings.headline)
    images = evidence.images.reset_index(drop=True)
    found = pd.DataFrame(
        {
            "original": images["dataset"].astype(str) + "/" + images["image_id"].astype(str),
            "class_name": images["class_name"].astype(str),
            "model": images["attack"].astype(str) + " · " + images["model"].astype(str),
            "value": np.full(len(images), np.nan) if values is None else values,
            "share": response_by(evidence, analysis.settings.headline).means,
            "mark": np.select(
                [side > 0.5, side < 0.5], ["recognised", "not recognised"], "undecided"
            ),
            "row": range(len(images)),
        }
    ).dropna(subset=["value"])
    sign = -1.0 if spec.higher_means_more_leakage else 1.0
    found = found.assign(order=sign * found["value"])
    found["place"] = found.groupby("original")["order"].rank(method="first").astype(int)
    return found.drop(columns="order").sort_values(["original", "place"], ignore_index=True)


def most_divided(rows: pd.DataFrame, originals: int) -> list[str]:
    """The originals whose reconstructions are most evenly recognised and not, by name if equal."""
    if rows.empty:
        return []
    yes = rows["mark"].eq("recognised").groupby(rows["original"]).sum()
    no = rows["mark"].eq("not recognised").groupby(rows["original"]).sum()
    rarer = pd.concat([yes, no], axis=1).min(axis=1)
    order = sorted(rarer.index, key=lambda name: (-int(rarer[name]), str(name)))
    return [str(name) for name in order[:originals]]


def _paths(analysis: Analysis) -> Mapping[tuple[str, int], str]:
    """Return paths of pictures, by ("original" or "reconstruction", row of the evidence)."""
    images = analysis.evidence.images.reset_index(drop=True)
    return {
        (kind, row): path
        for kind in (_ORIGINAL, "reconstruction")
        if kind in images
        for row, path in enumerate(images[kind])
        if isinstance(path, str) and path
    }


def _paint(
    name: str, paths: Mapping[tuple[str, int], str], frame: pd.DataFrame, width: float
) -> "Figure":
    if frame.empty:
        return canvas.empty(width, f"{name} gives no value to a single picture.")
    if not paths:
        return canvas.empty(width, "The pictures of this study are not at hand, only its numbers.")
    lines = [part for _, part in frame.groupby("original", sort=False)]
    columns = min(_COLUMNS, 1 + max(map(len, lines)))
    heights = [-(-len(part) // (columns - 1)) for part in lines]
    side = (width - _GAP) / columns - _GAP
    sheet = _Sheet.of(width, sum(heights) * (side + _WORDS) + len(lines) * _TITLE, side)
    top = 0.0
    for part, height in zip(lines, heights, strict=True):
        _line(sheet, top + _TITLE, part, columns - 1, paths)
        top += _TITLE + height * (side + _WORDS)
    return sheet.figure


@dataclass(frozen=True)
class _Sheet:
    """One plane for all pictures, in mm from the upper left: an axes a picture takes seconds.

    Attributes:
        side: Of a picture's box.
    """

    figure: "Figure"
    axes: "Axes"
    side: float

    @classmethod
    def of(cls, width: float, height: float, side: float) -> Self:
        figure = canvas.blank(width, height)
        figure.set_layout_engine("none")
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set(xlim=(0, width), ylim=(height, 0), autoscale_on=False)
        return cls(figure, axes, side)

    def left(self, column: int) -> float:
        """Return the left edge of the boxes of a column, in mm."""
        return _GAP + column * (self.side + _GAP)

    def picture(self, column: int, top: float, path: str | None) -> None:
        """The picture in its box as large as fits, or that it is gone."""
        try:
            picture = None if path is None else read_pixels(Path(path))
        except DataError:
            picture = None
        left, half = self.left(column), self.side / 2
        if picture is None:
            canvas.note(self.axes, left + half, top + half, "gone", ha="center")
            return
        down, right = (half * length / max(picture.shape[:2]) for length in picture.shape[:2])
        middle = (left + half, top + half)
        extent = (middle[0] - right, middle[0] + right, middle[1] + down, middle[1] - down)
        # Texts lie between the pictures, or an SVG would get all of them as one.
        order = 10 + len(self.axes.images)
        self.axes.imshow(
            picture, extent=extent, interpolation="nearest", aspect="auto", zorder=order
        )

    def words(self, x: float, y: float, text: str, **how: Any) -> None:
        """Text above the last picture in the order of drawing."""
        canvas.note(self.axes, x, y, text, zorder=9.5 + len(self.axes.images), **how)


def _line(
    sheet: _Sheet,
    top: float,
    part: pd.DataFrame,
    columns: int,
    paths: Mapping[tuple[str, int], str],
) -> None:
    first = part.iloc[0]
    sheet.picture(0, top, paths.get((_ORIGINAL, int(first["row"]))))
    name = canvas.cut(str(first["class_name"]), 12)
    sheet.words(sheet.left(0), top - 0.5, name, fontsize=canvas.TEXT + 0.5, va="bottom")
    for number_, row in enumerate(part.to_dict("records")):
        down, column = top + number_ // columns * (sheet.side + _WORDS), 1 + number_ % columns
        sheet.picture(column, down, paths.get(("reconstruction", int(row["row"]))))
        sign, colour = _MARKS[row["mark"]]
        below = (sheet.left(column) + sheet.side / 2, down + sheet.side + 0.7)
        text = f"{sign} {number(row['value'], 3)}"
        sheet.words(*below, text, color=colour, ha="center", va="top")
