"""Drawings as text: what lies where, in the page's own units."""

import re
import xml.etree.ElementTree as ET

import pytest

from semsim.reporting.svg import Mark, Point, axis_of, line, plane


def numbers(svg: str, name: str) -> list[float]:
    return [float(value) for value in re.findall(rf'{name}="([-\d.]+)%?"', svg)]


def test_a_mark_lies_where_its_value_is():
    drawn = line([Mark(value=0.25, low=0.0, high=0.5)], (0.0, 1.0), band=(0.8, 0.9))
    ET.fromstring(drawn)
    assert numbers(drawn, "cx") == [25.0]
    assert (numbers(drawn, "x1"), numbers(drawn, "x2")) == ([0.0], [50.0])
    assert 'class="sv-band" x="80.0%" width="10.0%"' in drawn
    assert "sv-zero" not in drawn
    assert 'class="sv-zero" x1="50.0%"' in line([], (-1.0, 1.0))


def test_what_has_no_value_or_no_interval_is_not_drawn():
    assert "circle" not in line([Mark(value=float("nan"))], (0.0, 1.0))
    alone = line([Mark(value=0.5)], (0.0, 1.0))
    assert "circle" in alone
    assert "<line" not in alone


@pytest.mark.parametrize(
    ("values", "axis"),
    [([0.3, 0.9], (0.0, 1.0)), ([-0.2], (-0.5, 1.0)), ([-0.7], (-1.0, 1.0)), ([], (0.0, 1.0))],
)
def test_an_axis_begins_at_0_unless_something_lies_below(values, axis):
    assert axis_of([*values, float("nan")]) == axis


def test_points_of_a_plane_are_in_order_and_infinite_ones_are_left_out():
    points = [
        Point(x=1, y=0.1, key="a\nb", tip="first <b>"),
        Point(x=2, y=0.9, key="c", tip="second", chosen=True),
        Point(x=float("inf"), y=0.5, key="d", tip="third"),
    ]
    drawn = plane(points, "x <axis>", "y", "title", live=True)
    dots = [one for one in ET.fromstring(drawn).iter() if one.tag.endswith("circle")]
    assert [dot.attrib["data-key"] for dot in dots] == ["a\nb", "c"]
    assert dots[0].attrib["aria-label"] == "first <b>"
    assert float(dots[0].attrib["cx"]) < float(dots[1].attrib["cx"])
    assert float(dots[0].attrib["cy"]) > float(dots[1].attrib["cy"])
    assert [("data-chosen" in dot.attrib) for dot in dots] == [False, True]


def test_points_of_one_place_stand_side_by_side_around_it_and_that_is_said():
    places = [(1, 0.1), (2, 0.5), (2, 0.5), (2, 0.5), (3, 0.9)]
    points = [Point(x=x, y=y, key=str(place)) for place, (x, y) in enumerate(places)]
    drawn = plane(points, "x", "y", "title", live=True)
    xs, ys = numbers(drawn, "cx"), numbers(drawn, "cy")
    assert len(set(zip(xs, ys, strict=True))) == 5
    assert ys[1] == ys[2] == ys[3]
    assert xs[2] == (xs[1] + xs[3]) / 2 == pytest.approx((xs[0] + xs[4]) / 2, abs=0.1)
    assert "points side by side have one place" in drawn
    alone = plane(points[:2], "x", "y", "title", live=True)
    assert "side by side" not in alone


def test_points_that_hide_each_other_stand_side_by_side_in_their_order():
    ends = [Point(x=0, y=0), Point(x=10, y=1)]
    near = [Point(x=5.05, y=0.51), Point(x=5, y=0.5)]
    xs = numbers(plane([*ends, *near], "x", "y", "title", live=True), "cx")
    assert xs[2] - xs[3] == pytest.approx(9)  # units of the drawing, in which a dot is 14 wide
    assert (xs[2] + xs[3]) / 2 == pytest.approx((xs[0] + xs[1]) / 2, abs=2)
    apart = [Point(x=5, y=0.5), Point(x=6, y=0.5)]
    xs = numbers(plane([*ends, *apart], "x", "y", "title", live=True), "cx")
    assert xs[3] - xs[2] == pytest.approx((xs[1] - xs[0]) / 10, abs=0.1)


def test_near_points_of_a_cloud_stay_where_they_are_and_those_of_one_place_do_not():
    cloud = [Point(x=place / 200, y=place / 200) for place in range(200)]
    drawn = plane(cloud, "x", "y", "title", live=True)
    assert "side by side" not in drawn
    assert "side by side" in plane([*cloud, cloud[50]], "x", "y", "title", live=True)


def test_a_plane_on_paper_has_nothing_to_press():
    drawn = plane([Point(x=1, y=1, key="k", tip="t")], "x", "y", "title", live=False)
    assert "tabindex" not in drawn
    assert "data-key" not in drawn
    ET.fromstring(plane([], "x", "y", "nothing", live=False))
