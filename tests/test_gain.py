"""The weights of both attacks of `benchmarks.gain` are chosen inside of what was tried."""

import math

import pytest

from benchmarks.gain import BEYOND, WIDEST, best_weight


@pytest.mark.parametrize("best", [0.3, 0.1 / BEYOND**3, BEYOND**4])
def test_a_grid_grows_until_its_best_is_no_end_of_it(best):
    asked = []

    def quality(weight):
        asked.append(weight)
        return -abs(math.log(weight / best))

    assert best_weight(quality, (0.1, 0.3, 1.0)) == (pytest.approx(0, abs=0.1), asked[-2])
    assert asked[-2] == pytest.approx(best, rel=0.1)
    assert min(asked) < asked[-2] < max(asked)


def test_what_only_gets_better_ends_in_an_error_and_what_acts_nowhere_has_no_weight():
    asked = []
    with pytest.raises(ValueError, match="is an end of them"):
        best_weight(lambda weight: asked.append(weight) or weight, (0.1, 1.0))
    assert len(asked) == 2 + WIDEST + 1
    assert best_weight(lambda weight: 5.0, (0.1, 1.0)) == (
        5.0,
        pytest.approx(math.nan, nan_ok=True),
    )
