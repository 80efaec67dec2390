"""The estimate of the time left, as the page makes it, over sequences of answers."""

from itertools import pairwise

import page_scripts
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

USUAL = 3000
HONEST, HASTY = [20_000] * 30, [10] * 60


def evaluate(expression, value):
    """What a JavaScript expression over `value` gives, `perItem` and `timeLeft` being known."""
    return page_scripts.evaluate("pace.js", "perItem, timeLeft", expression, value)


def estimates(spans):
    """After none, one, two … of `spans`, in milliseconds an item."""
    return evaluate(
        f"[...Array(value.length + 1).keys()].map((n) => perItem(value.slice(0, n), {USUAL}))",
        spans,
    )


def test_it_begins_with_what_is_expected_and_comes_to_the_own_pace():
    first, *_, last = estimates([8000] * 200)
    assert first == pytest.approx(USUAL)
    assert last == pytest.approx(8000, rel=0.2)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(0, 1e7), max_size=80))
def test_no_answer_makes_it_jump(spans):
    for before, after in pairwise(estimates(spans)):
        assert 0.5 < after / before < 1.7


def test_honest_looks_and_then_slips_of_the_finger_change_it_step_by_step():
    made = estimates(HONEST + HASTY)
    steps = [after / before for before, after in pairwise(made)]
    assert max(steps) < 1.2
    assert min(steps) > 0.85
    assert made[30] > 10_000  # looks are believed
    assert made[-1] >= 200  # and slips are not taken for looks


def test_one_long_look_says_little():
    usual = estimates([5000] * 20)
    assert estimates([5000] * 20 + [55_000])[-1] == pytest.approx(usual[-1], rel=0.1)


def test_the_time_left_in_words():
    words = evaluate(
        "value.map(([n, each]) => timeLeft((...told) => told, n, each))",
        [[0, 9], [10, 3000], [351, 3000]],
    )
    assert words == ["", ["label.left_little"], ["label.left", {"n": 18}]]
