"""Small drawings as SVG text, for pages and the report: no plotting library, the page's colours.

Their classes (`sv-…`) are styled where they stand: `studio.css`, `report.css`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from semsim.reporting.notation import number

Ends = tuple[float, float]
_WIDTH, _HEIGHT = 460, 320  # of a plane, in units of its own
_LEFT, _BOTTOM, _TOP, _RIGHT = 52, 44, 12, 14
_TICKS = 4
_SLACK = 1e-9  # by which a number may be beside a tick from rounding
_BESIDE, _CROWD = 9.0, 60.0  # between points of one place, and the most that all of them take
_CLOUD = 100  # points: of more only those of one place are moved, as near ones show how dense it is
SPREAD = "points side by side have one place, or nearly"
_SPREAD = f'<g class="sv-axes"><text x="{_LEFT + 4}" y="{_TOP + 11}">{SPREAD}</text></g>'


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A value on a line with its interval; NaN where there is none.

    Attributes:
        kind: "metric" or "people".
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    kind: str = "metric"


@dataclass(frozen=True, kw_only=True)
class Point:
    """A point of a plane.

    Attributes:
        key: What a press on it stands for.
        tip: What it is, in words.
        x_ends, y_ends: Of its intervals, or NaN.
        chosen: Whether it stands out.
    """

    x: float
    y: float
    key: str = ""
    tip: str = ""
    x_ends: Ends = (math.nan, math.nan)
    y_ends: Ends = (math.nan, math.nan)
    chosen: bool = False


def line(marks: Sequence[Mark], axis: Ends, band: Ends | None = None) -> str:
    """Marks with their intervals on one line as wide as its place.

    Args:
        band: A range behind them.
    """
    height = 10 + 12 * len(marks)
    parts = []
    if axis[0] < 0 < axis[1]:
        at = _percent(0, axis)
        parts.append(f'<line class="sv-zero" x1="{at}" x2="{at}" y1="0" y2="{height}"/>')
    if band is not None and not math.isnan(band[0]):
        start, end = (_share(value, axis) for value in band)
        parts.append(
            f'<rect class="sv-band" x="{start:.1f}%" width="{max(end - start, 0.5):.1f}%" '
            f'y="0" height="{height}"/>'
        )
    for place, mark in enumerate(marks):
        parts.append(_mark(mark, axis, 11 + 12 * place))
    return (
        f'<svg class="sv-row" width="100%" height="{height}" aria-hidden="true">'
        f"{''.join(parts)}</svg>"
    )


def _mark(mark: Mark, axis: Ends, y: int) -> str:
    if math.isnan(mark.value):
        return ""
    drawn = ""
    if not math.isnan(mark.low):
        x1, x2 = _percent(mark.low, axis), _percent(mark.high, axis)
        drawn = f'<line class="sv-{mark.kind}" x1="{x1}" x2="{x2}" y1="{y}" y2="{y}"/>'
    return (
        f'{drawn}<circle class="sv-{mark.kind}" cx="{_percent(mark.value, axis)}" cy="{y}" r="5"/>'
    )


def plane(points: Sequence[Point], x_title: str, y_title: str, title: str, live: bool) -> str:
    """Points in a plane with their intervals; a point that is not finite is not drawn.

    Points that would hide each other stand side by side around their place; the drawing says so.

    Args:
        live: Points can be reached by keys and pressed; what they are called is their label.
    """
    drawn = [one for one in points if math.isfinite(one.x) and math.isfinite(one.y)]
    x_axis = _around([v for one in drawn for v in (one.x, *one.x_ends) if math.isfinite(v)])
    y_axis = _around([v for one in drawn for v in (one.y, *one.y_ends) if math.isfinite(v)])
    bars = "".join(_bars(one, x_axis, y_axis) for one in drawn)
    ordered = sorted(drawn, key=lambda one: one.chosen)  # what stands out lies on top
    places = [(_x(one.x, x_axis), _y(one.y, y_axis)) for one in ordered]
    beside = side_by_side(places)
    dots = "".join(_dot(one, x, y, live) for one, (x, y) in zip(ordered, beside, strict=True))
    dots += _SPREAD if beside != places else ""
    role = 'role="group"' if live else 'role="img"'
    return (
        f'<svg class="sv-plane" viewBox="0 0 {_WIDTH} {_HEIGHT}" {role} '
        f'aria-label="{escape(title)}">{_axes(x_axis, y_axis, x_title, y_title)}'
        f'<g class="sv-bars">{bars}</g>{dots}</svg>'
    )


def side_by_side(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the places, those that hide each other moved along x, so that each can be seen.

    Args:
        places: (x, y) in units of which a point is some eight wide.
    """
    near = _BESIDE if len(places) <= _CLOUD else 0.0
    found, groups = list(places), list[list[int]]()  # groups: each around its first place
    for one, place in sorted(enumerate(places), key=lambda each: each[1]):
        around = (group for group in groups if math.dist(places[group[0]], place) <= near)
        group = next(around, None)
        if group is None:
            groups.append([one])
        else:
            group.append(one)
    for group in (group for group in groups if len(group) > 1):
        middle = sum(places[one][0] for one in group) / len(group)
        for step, one in enumerate(group):
            aside = (step - (len(group) - 1) / 2) * min(_BESIDE, _CROWD / len(group))
            found[one] = (round(middle + aside, 1), places[one][1])
    return found


def _dot(one: Point, x: float, y: float, live: bool) -> str:
    chosen = ' data-chosen=""' if one.chosen else ""
    if not live:
        return f'<circle class="sv-dot" cx="{x}" cy="{y}" r="6"{chosen}/>'
    key = escape(one.key).replace("\n", "&#10;")
    return (
        f'<circle class="sv-dot" cx="{x}" cy="{y}" r="7" data-key="{key}" role="button" '
        f'tabindex="0" aria-label="{escape(one.tip)}"{chosen}/>'
    )


def _bars(one: Point, x_axis: Ends, y_axis: Ends) -> str:
    x, y, drawn = _x(one.x, x_axis), _y(one.y, y_axis), ""
    if all(map(math.isfinite, one.x_ends)):
        x1, x2 = (_x(end, x_axis) for end in one.x_ends)
        drawn += f'<line x1="{x1}" x2="{x2}" y1="{y}" y2="{y}"/>'
    if all(map(math.isfinite, one.y_ends)):
        y1, y2 = (_y(end, y_axis) for end in one.y_ends)
        drawn += f'<line x1="{x}" x2="{x}" y1="{y1}" y2="{y2}"/>'
    return drawn


def _axes(x_axis: Ends, y_axis: Ends, x_title: str, y_title: str) -> str:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    parts = []
    for value in ticks(x_axis):
        x = _x(value, x_axis)
        parts.append(f'<line x1="{x}" x2="{x}" y1="{_TOP}" y2="{bottom}"/>')
        parts.append(f'<text x="{x}" y="{bottom + 16}" text-anchor="middle">{_tick(value)}</text>')
    for value in ticks(y_axis):
        y = _y(value, y_axis)
        parts.append(f'<line x1="{_LEFT}" x2="{right}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{_tick(value)}</text>')
    middle = (_LEFT + right) / 2, (_TOP + bottom) / 2
    return (
        f'<g class="sv-axes">{"".join(parts)}'
        f'<text class="sv-name" x="{middle[0]}" y="{_HEIGHT - 8}" text-anchor="middle">'
        f"{escape(x_title)}</text>"
        f'<text class="sv-name" transform="translate(14 {middle[1]}) rotate(-90)" '
        f'text-anchor="middle">{escape(y_title)}</text></g>'
    )


def axis_of(values: Sequence[float]) -> Ends:
    """The range from 0 to 1, further down in steps of a half where values are below 0."""
    least = min((value for value in values if math.isfinite(value)), default=0.0)
    return (0.0 if least >= 0 else max(-1.0, math.floor(2 * least) / 2)), 1.0


def _around(values: Sequence[float]) -> Ends:
    """A range with a little room around the values."""
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    room = 0.06 * (high - low) or max(abs(low), 1.0) * 0.1
    return low - room, high + room


def ticks(axis: Ends) -> list[float]:
    """Return round numbers within a range, about `_TICKS` of them."""
    rough = (axis[1] - axis[0]) / _TICKS
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * n for n in (1, 2, 2.5, 5, 10) if unit * n >= rough * (1 - _SLACK))
    first, last = math.ceil(axis[0] / step - _SLACK), math.floor(axis[1] / step + _SLACK)
    return [float(step * n) for n in range(first, last + 1)]


def _tick(value: float) -> str:
    return f"{0.0 if abs(value) < 1e-12 else value:.6g}".replace("-", "−")


def _x(value: float, axis: Ends) -> float:
    width = _WIDTH - _LEFT - _RIGHT
    return round(_LEFT + width * _share(value, axis) / 100, 1)


def _y(value: float, axis: Ends) -> float:
    height = _HEIGHT - _TOP - _BOTTOM
    return round(_HEIGHT - _BOTTOM - height * _share(value, axis) / 100, 1)


def _share(value: float, axis: Ends) -> float:
    """Return the position of a value on an axis, in per cent from its start, never outside."""
    return float(np.clip((value - axis[0]) / (axis[1] - axis[0]), 0, 1) * 100)


def _percent(value: float, axis: Ends) -> str:
    return f"{_share(value, axis):.1f}%"


def words_of_ends(low: float, high: float) -> str:
    """An interval as the texts beside a line write it; empty where there is none."""
    return "" if math.isnan(low) else f"[{number(low, 2)}, {number(high, 2)}]"
