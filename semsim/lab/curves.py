"""Curves that a page draws as SVG: they take the colours of the theme, light or dark."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from semsim.lab.markup import pieces
from semsim.reporting.notation import number
from semsim.reporting.svg import ticks

_WIDTH, _HEIGHT = 420, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 10, 10, 36  # what is left around the curves
_HTML = pieces("curves.html")


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A line through points; missing ones are left out.

    Attributes:
        colour: Leaked, private, accent, soft or ink, of the theme.
        low, high: Ends of a bar at each point.
    """

    name: str
    x: Sequence[float | str]
    y: Sequence[float]
    colour: str = "accent"
    dashed: bool = False
    marked: bool = True
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Curves over one axis; where x are words, they stand side by side in the order they come.

    Attributes:
        highest: The top of the axis y, which begins at 0; None takes what is drawn.
        line: Where a dotted line stands.
    """

    title: str
    x: str
    y: str
    curves: tuple[Curve, ...] = ()
    highest: float | None = None
    line: float | None = None

    @property
    def has_course(self) -> bool:
        """True where there is a curve to see: one point is none."""
        return any(len(curve.x) > 1 for curve in self.curves)


def svg(chart: Chart) -> Markup:
    """The chart as a figure with its title and the names of its curves, as HTML."""
    words = _words(chart)
    across = range(len(words)) if words else [float(v) for c in chart.curves for v in c.x]
    most = max((float(v) for v in across), default=1.0) or 1.0
    tops = [v for c in chart.curves for v in (*c.y, *c.high) if math.isfinite(v)]
    highest = chart.highest or max(tops, default=1.0) or 1.0
    plane = _Plane(least=-0.5 if words else 0.0, most=most + 0.5 if words else most, top=highest)
    drawn = [_drawn(curve, plane, words) for curve in chart.curves]
    below = [(plane.x(float(n)), one) for n, one in enumerate(words)]
    if not words:
        below = [(plane.x(one), f"{one:g}") for one in ticks((0.0, most))]
    beside = [(plane.y(one), f"{one:g}") for one in ticks((0.0, highest))]
    box = {"width": _WIDTH, "height": _HEIGHT, "left": _LEFT, "right": _WIDTH - _RIGHT}
    box |= {"base": _HEIGHT - _BOTTOM}
    line = None if chart.line is None else plane.y(chart.line)
    return Markup(_HTML.chart(chart, drawn, below, beside, box, line))


@dataclass(frozen=True, kw_only=True)
class _Plane:
    least: float
    most: float
    top: float

    def x(self, value: float) -> float:
        share = (value - self.least) / ((self.most - self.least) or 1.0)
        return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        share = min(value / self.top, 1.0)
        return round(_HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM), 1)


def _words(chart: Chart) -> list[str]:
    found = dict.fromkeys(str(v) for c in chart.curves for v in c.x)
    is_text = any(isinstance(v, str) for c in chart.curves for v in c.x)
    return list(found) if is_text else []


def _drawn(
    curve: Curve, plane: _Plane, words: list[str]
) -> tuple[Curve, str, list[tuple[float, float, str]], list[tuple[float, float, float]]]:
    """The curve, its path, its points with what they say, and the bars through them."""
    at = [float(words.index(str(v))) if words else float(v) for v in curve.x]
    known = [n for n, y in enumerate(curve.y) if math.isfinite(y)]
    path = " ".join(f"{plane.x(at[n])},{plane.y(curve.y[n])}" for n in known)
    points = [
        (plane.x(at[n]), plane.y(curve.y[n]), f"{curve.x[n]}: {number(curve.y[n], 3)}")
        for n in known
    ]
    bars = [
        (plane.x(at[n]), plane.y(low), plane.y(high))
        for n, (low, high) in enumerate(zip(curve.low, curve.high, strict=True))
        if math.isfinite(low) and math.isfinite(high)
    ]
    return curve, path, points if curve.marked else [], bars
