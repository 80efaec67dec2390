import numpy as np
import pandas as pd
import pytest

from semsim.base.stats.grouping import layout_of
from semsim.base.stats.resampling import interval, resample

LAYOUT = layout_of(
    pd.DataFrame(
        [
            (dataset, "a", model, str(i))
            for dataset, n in (("d", 3), ("e", 5))
            for model in "mno"
            for i in range(n)
        ],
        columns=["dataset", "attack", "model", "image_id"],
    )
)


def test_originals_are_drawn_within_their_data_set():
    drawn = resample(LAYOUT, 50, 9, 0).originals
    assert drawn.shape == (50, 8)
    assert (drawn[:, :3].sum(axis=1) == 3).all()
    assert (drawn[:, 3:].sum(axis=1) == 5).all()
    assert drawn.std(axis=0).all()


def test_the_seed_alone_decides():
    first, again, other = (resample(LAYOUT, 20, 9, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.originals, again.originals)
    np.testing.assert_array_equal(first.picks(6), again.picks(6))
    np.testing.assert_array_equal(first.shuffles(6), again.shuffles(6))
    assert (first.originals != other.originals).any()
    assert (first.shuffles(6) != other.shuffles(6)).any()


def test_more_bootstraps_leave_the_other_random_numbers_as_they_are():
    few, many = resample(LAYOUT, 5, 9, 0), resample(LAYOUT, 50, 9, 0)
    np.testing.assert_array_equal(few.shuffles(6), many.shuffles(6))
    np.testing.assert_array_equal(few.picks(6), many.picks(6)[: len(few.picks(6))])


def test_resamples_of_fewer_than_three_different_models_are_left_out():
    drawn = resample(LAYOUT, 200, 9, 0)
    picks = drawn.picks(3)
    assert {tuple(sorted(row)) for row in picks.tolist()} == {(0, 1, 2)}
    assert len(picks) == pytest.approx(200 * 6 / 27, abs=20)  # 3! of 3³; 3 standard errors


def test_shuffles_are_orders():
    assert (np.sort(resample(LAYOUT, 1, 30, 0).shuffles(6), axis=1) == np.arange(6)).all()


@pytest.mark.parametrize(
    ("draws", "expected"),
    [
        (np.arange(101.0), (2.5, 97.5)),
        (np.append(np.arange(101.0), [np.nan] * 50), (2.5, 97.5)),
        ([1.0, np.nan, np.nan], (np.nan, np.nan)),
        ([], (np.nan, np.nan)),
        ([np.inf] * 4, (np.inf, np.inf)),
        ([*np.arange(99.0), np.inf], (1.0, 97.0)),
    ],
)
def test_intervals(draws, expected):
    np.testing.assert_allclose(interval(np.array(draws)), expected)
