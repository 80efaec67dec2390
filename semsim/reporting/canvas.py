"""Parts of all figures: sizes in millimetres, colours for light, dark and grey, quiet axes."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from semsim.base.storage.optional import matplotlib
from semsim.base.words import capital

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SINGLE, DOUBLE = 89.0, 183.0  # mm: one and two columns of a journal
NARROW = 120.0  # mm: below this, panels stand one above the other
TEXT, SMALL = 7.5, 6.5  # points
LETTER = 1.25  # mm a letter of small text is wide
_MARK = 3.5  # mm at the top of a figure for that its votes are simulated
SIMULATED = "simulated"  # column of tables, as of exports of votes: whether programs voted
_LONG = 24  # letters of a name beyond which it is shortened
# Text and axes. A page replaces this colour by its own (see `export.svg`), so nothing else has it.
INK = "#0d0f12"
# Okabe and Ito's palette, which colour-blind readers tell apart; both are at least 3:1 on white
# and on near-black. Everything is also told apart by its marker.
PEOPLE, METRIC = "#0072b2", "#d55e00"
# What leaked is warm, what stayed private cool: in figures the colours of the pages' `studio.css`.
LEAKED, PRIVATE = "#b0400b", "#1e5a8a"
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#808080")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


@dataclass(frozen=True, kw_only=True)
class Bars:
    """An estimate with its interval in a row of a forest: colours and sizes."""

    colour: str
    marker: str = "o"
    size: float = 5.0
    width: float = 2.2


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A figure: a table, and a way to paint it.

    Attributes:
        name, metric: Of the figure; `metric` is None where it is of the whole study.
        caption: What it shows, what its intervals are, and n.
        frame: Everything that is drawn. A row with a `model_key` is a point a page can react to:
            the artist of row i has the gid `row-i`.
        paint: From the frame and a width in millimetres; draws nothing that is not in the frame.
        tooltip: Of a row of the frame.
    """

    title: str
    caption: str
    frame: pd.DataFrame
    paint: Callable[[pd.DataFrame, float], "Figure"]
    tooltip: Callable[[pd.Series], str] | None = None
    name: str = ""
    metric: str | None = None

    @property
    def stem(self) -> str:
        """Name of its files: the name, then the metric, with `:`, `@` and `/` as dashes."""
        return self.name if self.metric is None else f"{self.name}-{safe_name(self.metric)}"

    def draw(self, width_mm: float = DOUBLE) -> "Figure":
        """The figure, `width_mm` wide: 89 fits one column of a journal, 183 two."""
        return self.paint(self.frame, width_mm)


def marked_as_simulated(drawn: Drawn, mark: str = "simulated votes") -> Drawn:
    """The figure marked as of simulated votes: in its title, its picture and its table.

    The frame has the column `SIMULATED`, last unless it had it before.

    Args:
        drawn: The figure.
        mark: Words for its votes, as `Evidence.mark`.
    """

    def paint(frame: pd.DataFrame, width: float) -> "Figure":
        figure = drawn.paint(frame[drawn.frame.columns], width)
        _leave_free(figure, _MARK)
        how: dict[str, Any] = {"ha": "right", "va": "top", "fontsize": SMALL, "color": INK}
        figure.text(0.995, 0.995, capital(mark), **how)
        return figure

    frame = drawn.frame.assign(**{SIMULATED: True})
    return replace(drawn, title=f"{drawn.title} ({mark})", frame=frame, paint=paint)


def _leave_free(figure: "Figure", top_mm: float) -> None:
    """Let what makes room for its texts by itself leave a strip free at the top."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        engine.set(rect=(0, 0, 1, 1 - top_mm / (figure.get_size_inches()[1] * 25.4)))


def blank(width_mm: float, height_mm: float) -> "Figure":
    """A transparent figure that makes room for its texts by itself."""
    matplotlib()
    from matplotlib.figure import Figure  # slow to import, not needed to lay out pages

    figure = Figure(figsize=(width_mm / 25.4, height_mm / 25.4), layout="constrained")
    figure.patch.set_facecolor("none")
    return figure


def quiet(axes: "Axes", *, grid: Literal["x", "y", "both"] = "x") -> None:
    """Thin axes in ink, no box, a faint grid along `grid` ("x", "y" or "both")."""
    axes.set_facecolor("none")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set(color=INK, linewidth=0.6)
    axes.tick_params(
        which="both", colors=INK, labelcolor=INK, labelsize=TEXT, width=0.6, length=2.5
    )
    axes.grid(True, axis=grid, color=INK, alpha=0.13, linewidth=0.5)
    axes.set_axisbelow(True)


def rows_axis(axes: "Axes", labels: list[str], width: int = 30) -> None:
    """Name the rows 0, 1, … from the top; long names are wrapped after `width` characters.

    A row has room for two lines: of a longer name the middle is left out, as names of one study
    differ at their ends.
    """
    axes.set_yticks(range(len(labels)), [_two_lines(text, width) for text in labels])
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _two_lines(text: str, width: int) -> str:
    lines = wrap(text, width)
    if len(lines) > 2:
        lines = [f"{text[: width - 1]}…", f"…{text[1 - width :]}"]
    return "\n".join(lines) or " "


def label(axes: "Axes", *, x: str = "", y: str = "", title: str = "") -> None:
    """The texts around the axes."""
    axes.set_xlabel(x, fontsize=TEXT, color=INK)
    axes.set_ylabel(y, fontsize=TEXT, color=INK)
    if title:
        axes.set_title(title, fontsize=TEXT + 0.5, color=INK, loc="left")


def note(axes: "Axes", x: float, y: float, text: str, **how: Any) -> None:
    """Text in ink; x and y in data unless `transform` says otherwise."""
    axes.text(x, y, text, **{"fontsize": SMALL, "color": INK, "va": "center", **how})


def beside(axes: "Axes", y: float, text: str) -> None:
    """Text in the right margin, in line with row `y`."""
    note(axes, 1.02, y, text, transform=axes.get_yaxis_transform(), ha="left")


def footnote(figure: "Figure", text: str) -> None:
    """Lines below everything: what could not be drawn, and why."""
    letters = int(figure.get_size_inches()[0] * 25.4 / LETTER) - 4
    if text:
        lines = "\n".join(wrap(text, letters))
        figure.supxlabel(lines, fontsize=SMALL, color=INK, x=0.01, ha="left")


def empty(width_mm: float, why: str) -> "Figure":
    """A figure that says why it is empty."""
    figure = blank(width_mm, 30)
    axes = figure.add_subplot()
    axes.set_axis_off()
    note(axes, 0.5, 0.5, "\n".join(wrap(why, 60)), ha="center", fontsize=TEXT)
    return figure


def estimate(
    axes: "Axes", y: float, found: tuple[float, float, float], style: Bars, gid: str | None = None
) -> None:
    """A marker on row `y` and its interval as a thick line;

    Args:
        found: Value, low, high or NaN.
    """
    value, low, high = found
    if np.isfinite([low, high]).all():
        axes.plot([low, high], [y, y], color=style.colour, lw=style.width, solid_capstyle="butt")
    if np.isfinite(value):
        point: dict[str, Any] = {
            "marker": style.marker,
            "ms": style.size,
            "color": style.colour,
            "mew": 0,
        }
        axes.plot([value], [y], gid=gid, **point)


def legend(figure: "Figure", axes: "Axes", width_mm: float) -> None:
    """The key of `axes` above everything, in as many columns as the width holds."""
    handles, names = axes.get_legend_handles_labels()
    widest = max((len(name) for name in names), default=1) * LETTER + 10
    columns = max(1, min(len(names), int(width_mm / widest)))
    look: dict[str, Any] = {"frameon": False, "fontsize": SMALL, "labelcolor": INK}
    figure.legend(handles, names, loc="outside upper left", ncols=columns, **look)


def distinct(names: list[str]) -> list[str]:
    """Long names without the parts that all of them share, as far as they stay different.

    Names of models list the same settings again and again; what tells them apart must be seen.
    """
    if len(names) < 2 or max(map(len, names)) <= _LONG:
        return names
    parts = [re.split(r"[_/ ]+", name) for name in names]
    shared = set(parts[0]).intersection(*parts[1:])
    shorter = ["_".join(part for part in one if part not in shared) for one in parts]
    return shorter if all(shorter) and len(set(shorter)) == len(set(names)) else names


def cut(text: str, length: int) -> str:
    """`text`, its end replaced by an ellipsis where it is longer than `length`."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def safe_name(name: str) -> str:
    """`name` as part of a file name."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
