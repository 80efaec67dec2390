"""Curves as SVG: where points come to lie, what is left out, what is escaped."""

import re
from html.parser import HTMLParser

import pytest

from semsim.lab.curves import Chart, Curve, svg
from semsim.reporting.svg import ticks


class Tags(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.found = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def of(self, name):
        return [attrs for tag, attrs in self.found if tag == name]


def chart(*curves, **more):
    return Chart(title="A <title>", x="epoch", y="loss", curves=curves, **more)


def points(html):
    (line,) = Tags(html).of("polyline")
    return [tuple(map(float, one.split(","))) for one in line["points"].split()]


def test_points_lie_where_their_values_are():
    html = svg(chart(Curve(name="one", x=[0, 1, 2], y=[0.0, 0.5, 1.0]), highest=1.0))
    (x0, y0), (x1, y1), (x2, y2) = points(html)
    assert x1 - x0 == pytest.approx(x2 - x1)
    assert y0 - y1 == pytest.approx(y1 - y2)
    assert y2 < y0  # up is more
    assert html.count("<title>") == 3
    assert "<title>2: 1.000</title>" in html


def test_what_is_missing_is_left_out_and_what_is_too_high_is_at_the_top():
    nan = float("nan")
    found = points(svg(chart(Curve(name="one", x=[1, 2, 3], y=[0.5, nan, 9.0]), highest=1.0)))
    assert len(found) == 2
    assert found[1][1] == 10
    assert "nan" not in svg(chart(Curve(name="none", x=[1], y=[nan])))


def test_words_stand_side_by_side_with_bars():
    curve = Curve(name="one", x=["a", "<b>"], y=[0.5, 0.7], low=[0.4, 0.6], high=[0.6, 0.9])
    html = svg(chart(curve))
    assert "&lt;b&gt;" in html
    (a, _), (b, _) = points(html)
    bars = [one for one in Tags(html).of("line") if "class" not in one]
    assert [float(one["x1"]) for one in bars] == [a, b]
    assert all(float(one["y1"]) > float(one["y2"]) for one in bars)


def test_colours_are_the_themes_and_names_are_escaped():
    curve = Curve(name="<script>", x=[1, 2], y=[1.0, 2.0], colour="leaked", dashed=True)
    html = svg(chart(curve, line=0.5))
    assert not re.search(r"#[0-9a-f]{3,6}|rgb", html)
    assert html.count('data-colour="leaked"') == 2
    assert "<script>" not in html
    assert "A &lt;title&gt;" in html
    assert Tags(html).of("line")[-1]["class"] == "cv-line"


@pytest.mark.parametrize(
    ("most", "found"),
    [(1.05, [0, 0.5, 1.0]), (8, [0, 2, 4, 6, 8]), (30, [0, 10, 20, 30]), (0.3, [0, 0.1, 0.2, 0.3])],
)
def test_ticks_are_round(most, found):
    assert ticks((0.0, most)) == pytest.approx(found)
