import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from semsim.reporting.canvas import INK, METRIC, PEOPLE, SERIES, cut, distinct, rows_axis

LONG = st.lists(
    st.lists(st.sampled_from(["ResNet", "200", "crop", "aug", "3-1-7", "False"]), max_size=9),
    min_size=1,
    max_size=6,
)


def contrast(one, other):
    """WCAG's contrast ratio of two colours."""
    luminances = []
    for colour in (one, other):
        parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        luminances.append(linear @ [0.2126, 0.7152, 0.0722] + 0.05)
    return max(luminances) / min(luminances)


@pytest.mark.parametrize("paper", ["#ffffff", "#14161a"])
@pytest.mark.parametrize("colour", [PEOPLE, METRIC])
def test_colours_stand_out_on_light_and_on_dark_pages(colour, paper):
    assert contrast(colour, paper) >= 3


def test_no_other_colour_is_the_one_a_page_replaces():
    assert INK not in SERIES
    assert contrast(INK, "#ffffff") > 15


def test_long_names_lose_what_all_of_them_share():
    names = [
        "ResNet20-4_200_inversed_crop_auglist__rlabel_False",
        "ResNet20-4_200_inversed_aug_auglist_3-1-7_rlabel_False",
        "ConvNet_200_inversed_aug_auglist__rlabel_False",
    ]
    assert distinct(names) == ["ResNet20-4_crop", "ResNet20-4_aug_3-1-7", "ConvNet_aug"]


def test_short_names_and_a_single_one_stay_as_they_are():
    assert distinct(["a_x", "b_x"]) == ["a_x", "b_x"]
    assert distinct(["one_name_that_is_really_very_long"]) == ["one_name_that_is_really_very_long"]


@settings(max_examples=60)
@given(LONG)
def test_names_that_differ_still_differ(parts):
    names = ["_".join(["a_name_longer_than_that", *one]) for one in parts]
    shorter = distinct(names)
    assert len(set(shorter)) == len(set(names))
    assert all(shorter)


def test_cut_keeps_what_fits():
    assert cut("short", 5) == "short"
    assert cut("longer", 5) == "long…"


def test_a_long_name_of_a_row_keeps_its_ends_in_two_lines():
    axes = Figure().subplots()
    own = "SemSim (semsim-demo-symbols-simulated-votes-1)"
    start = f"{own[:-1]}, initial weights)"
    rows_axis(axes, ["MSE", own, start, ""], width=24)
    names = [one.get_text() for one in axes.get_yticklabels()]
    assert (names[0], names[3]) == ("MSE", " ")
    assert all(len(name.splitlines()) <= 2 for name in names)
    assert len(set(names)) == 4
    assert names[2].endswith("initial weights)")
    assert names[1].endswith("votes-1)")
