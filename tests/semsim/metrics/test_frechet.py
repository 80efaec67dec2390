import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_measures import cloud_distance

from semsim.base.errors import DataError
from semsim.metrics.inception import (
    Spread,
    check_clouds,
    few_images_note,
    frechet_distance,
)

STEADY = settings(max_examples=50)

SHAPES = st.tuples(st.integers(2, 12), st.integers(1, 12))


def clouds(seed, shape, count=2):
    draw = np.random.default_rng(seed)
    return [draw.normal(size=shape) @ np.diag(draw.uniform(0, 3, shape[1])) for _ in range(count)]


def test_one_dimension_by_hand():
    # means 1 and 4, standard deviations 1 and 2: (4 − 1)² + (2 − 1)²
    x = np.array([[0.0], [1.0], [2.0]])
    assert cloud_distance(x, 2 * x + 2) == pytest.approx(9 + 1)


@STEADY
@given(st.integers(0, 2**31), SHAPES)
def test_a_cloud_is_at_no_distance_from_itself(seed, shape):
    (x,) = clouds(seed, shape, 1)
    assert abs(cloud_distance(x, x)) < 1e-9


@pytest.mark.parametrize("shape", [(100, 2048), (600, 64)])  # N < d and N > d, as they come
def test_a_cloud_of_network_features_is_at_no_distance_from_itself(shape):
    x = np.abs(np.random.default_rng(0).normal(0.4, 0.3, shape))
    assert abs(cloud_distance(x, x)) < 1e-9
    assert abs(cloud_distance(x, x[::-1])) < 1e-9


@STEADY
@given(st.integers(0, 2**31), SHAPES)
def test_symmetric_and_blind_to_the_order_of_images(seed, shape):
    x, y = clouds(seed, shape)
    distance = cloud_distance(x, y)
    assert distance >= 0
    assert cloud_distance(y, x) == pytest.approx(distance, abs=1e-9)
    assert cloud_distance(x[::-1], y) == pytest.approx(distance, abs=1e-9)


@STEADY
@given(st.integers(0, 2**31), SHAPES)
def test_a_shift_counts_as_its_square(seed, shape):
    (x,) = clouds(seed, shape, 1)
    assert cloud_distance(x, x + 0.5) == pytest.approx(0.25 * shape[1], abs=1e-9)


def in_parts(cloud, size):
    """The spread of a cloud that comes `size` rows at a time, and the most rows it held."""
    spread, most = Spread(), 0
    for start in range(0, len(cloud), size):
        spread.add(cloud[start : start + size])
        most = max(most, spread.held)
    return spread, most


@STEADY
@given(st.integers(0, 2**31), SHAPES, st.integers(1, 12))
def test_parts_have_the_mean_and_covariance_of_the_whole(seed, shape, size):
    (x,) = clouds(seed, shape, 1)
    x += 1000 * (seed % 2)  # far from 0, as features after a ReLU are
    spread, _ = in_parts(x, size)
    assert spread.shape == shape
    np.testing.assert_allclose(spread.mean, x.mean(axis=0), rtol=1e-12)
    covariance = np.cov(x.T).reshape(shape[1], shape[1])
    np.testing.assert_allclose(spread.factor.T @ spread.factor, covariance, atol=1e-9)


@pytest.mark.parametrize("size", [1, 7, 50])
@pytest.mark.parametrize("n", [10, 17, 400])  # of 16 dimensions: N < d, N just above, N far above
def test_a_cloud_in_parts_is_as_far_as_the_whole_and_few_rows_are_held(n, size):
    x, y = clouds(3, (n, 16))
    (first, most), (second, _) = (in_parts(cloud, size) for cloud in (x, y))
    assert frechet_distance(first, second) == pytest.approx(cloud_distance(x, y), abs=1e-8)
    assert most <= 2 * 17
    assert abs(frechet_distance(first, in_parts(x, 3)[0])) < 1e-9


def test_parts_of_other_features_are_refused():
    spread = Spread()
    spread.add(np.zeros((1, 3)))
    with pytest.raises(DataError, match="3 dimensions, then with 4"):
        spread.add(np.zeros((1, 4)))
    with pytest.raises(DataError, match="at least 2 rows"):
        frechet_distance(spread, spread)


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (np.zeros((3, 2)), np.zeros((4, 2)), "equal counts; got 3 and 4"),
        (np.zeros((3, 2)), np.zeros((3, 4)), "one shape"),
        (np.zeros((1, 2)), np.zeros((1, 2)), "at least 2 rows"),
        (np.zeros(3), np.zeros(3), r"\(N, d\)"),
        (np.full((3, 2), np.nan), np.zeros((3, 2)), "finite"),
    ],
)
def test_clouds_that_cannot_be_compared_are_refused(x, y, words):
    with pytest.raises(DataError, match=words):
        check_clouds(x, y)


def test_few_images_are_warned_of():
    assert few_images_note(10, 10) == ()
    assert "9 images for 10 feature dimensions: biased upward" in few_images_note(9, 10)[0]
