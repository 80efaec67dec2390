import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semsim.base.errors import DataError
from semsim.metrics.inception import kernel_distance

STEADY = settings(max_examples=50)


@STEADY
@given(st.integers(0, 2**31), st.integers(2, 10))
def test_a_cloud_is_not_above_zero_from_itself_nor_is_one_side_another_than_the_other(seed, n):
    x, y = np.random.default_rng(seed).normal(size=(2, n, 4))
    assert kernel_distance(x, x).value <= 0
    there, back = kernel_distance(x, y), kernel_distance(y, x)
    assert there.value == pytest.approx(back.value, rel=1e-9, abs=1e-9)


def test_unbiased_around_zero_and_far_from_it_for_another_distribution():
    draw = np.random.default_rng(0)
    same = [
        kernel_distance(draw.normal(size=(20, 4)), draw.normal(size=(20, 4))) for _ in range(300)
    ]
    values = np.array([found.value for found in same])
    # 4 standard errors of the mean over 300 repetitions; a biased estimate would sit 0.4 above
    assert abs(values.mean()) < 4 * values.std() / np.sqrt(300)
    other = kernel_distance(draw.normal(size=(20, 4)), draw.normal(2.0, size=(20, 4)))
    assert other.value > 5 * other.standard_error


def test_the_standard_error_is_the_spread_over_repetitions():
    draw = np.random.default_rng(1)
    found = [
        kernel_distance(draw.normal(size=(60, 3)), draw.normal(1.0, size=(60, 3)))
        for _ in range(200)
    ]
    spread = np.std([one.value for one in found])
    typical = np.median([one.standard_error for one in found])
    assert typical == pytest.approx(spread, rel=0.25)  # 200 repetitions know a spread to 10 %


def test_five_images_have_a_value_but_no_error():
    found = kernel_distance(np.arange(5.0)[:, None], np.arange(5.0)[:, None] + 2)
    assert found.standard_error is None


def test_unequal_counts_are_refused():
    with pytest.raises(DataError, match="equal counts"):
        kernel_distance(np.zeros((3, 2)), np.zeros((2, 2)))


def test_a_cloud_that_moves_away_is_farther():
    rng = np.random.default_rng(3)
    cloud, other = rng.normal(size=(2, 40, 5))
    distances = [kernel_distance(cloud, other + shift).value for shift in (0.0, 0.5, 1.0, 2.0)]
    assert distances == sorted(distances)
    assert distances[0] < 0.2 < distances[-1]
