"""Which votes count, and the resamples all statistics share."""

import numpy as np
import pytest
from made_ballots import ballots, random_votes, table, vote
from statsmodels.stats.proportion import proportion_confint

from annotation.votes.ballots import interval, ratio, share_interval, wilson


def test_only_counted_votes_on_the_kinds_asked_for_are_in():
    rows = [
        vote("a", "p", "cat"),
        vote("b", "p", "cat", status="superseded"),
        vote("c", "p", "cat", status="surplus"),
        vote("d", "p", "same", kind="decoy"),
    ]
    assert ballots(table(rows)).votes["item"].tolist() == ["a"]
    both = ballots(table(rows), kinds=("reconstruction", "decoy"))
    assert both.votes["item"].tolist() == ["a", "d"]


def test_arrays_describe_the_rows():
    found = ballots(random_votes(missing=0.3))
    items = found.votes["item"].iloc[found.first].to_numpy()
    assert (items[found.item] == found.votes["item"]).all()
    names = np.array(found.annotators)
    assert (names[found.annotator] == found.votes["annotator"]).all()
    together = found.votes.groupby(found.original)["image_id"].nunique()
    assert (together == 1).all()
    assert found.weights.shape == (1001, found.votes["image_id"].nunique())


def test_resamples_draw_as_many_originals_as_there_are_and_follow_the_seed():
    found = ballots(random_votes())
    assert (found.weights.sum(axis=1) == 20).all()
    assert (found.weights[0] == 1).all()
    assert (ballots(random_votes(), seed=0).weights == found.weights).all()
    assert (ballots(random_votes(), seed=1).weights != found.weights).any()


@pytest.mark.parametrize("originals", [0, 1])
def test_one_original_has_no_resamples(originals):
    found = ballots(random_votes(originals=originals))
    assert found.weights.shape == (1, originals)


def test_intervals_are_percentiles_of_all_but_the_first_row():
    draws = np.concatenate([[[1e9, 2e9]], np.arange(1001)[:, None] * [1.0, -1.0]])
    low, high = interval(draws)
    assert low == pytest.approx([25, -975])
    assert high == pytest.approx([975, -25])


def test_an_interval_needs_half_of_the_resamples_and_the_value():
    draws = np.tile(np.arange(101.0)[:, None], (1, 4))
    draws[1:51, 1] = np.nan  # half are left
    draws[1:52, 2] = np.nan  # fewer
    draws[0, 3] = np.nan
    assert np.isnan(interval(draws)[0]).tolist() == [False, False, True, True]
    assert np.isnan(interval(draws[:1])[0]).all()
    assert np.isnan(interval(np.array([0.5]))[0])


def test_wilson_is_that_of_statsmodels():
    for n in (1, 2, 7, 40):
        count = np.arange(n + 1)
        low, high = wilson(count.astype(float), np.full(n + 1, float(n)))
        for k in count:
            ours, theirs = (low[k], high[k]), proportion_confint(k, n, method="wilson")
            assert ours == pytest.approx(theirs, abs=1e-9)  # rounding of sums
    assert np.isnan(wilson(np.zeros(1), np.zeros(1))).all()


def test_where_no_resample_differs_the_interval_of_a_share_is_wilsons():
    shares = np.tile([0.0, 1.0, 0.6, np.nan, 0.5], (21, 1))
    shares[1:, 2] += np.linspace(0, 1e-15, 20)  # sums that are rounded otherwise
    shares[1:, 4] = np.linspace(0.4, 0.6, 20)
    low, high = share_interval(shares, np.array([24, 3, 5, 0, 7]))
    for at, (count, n) in enumerate([(0, 24), (3, 3), (3, 5)]):
        expected = proportion_confint(count, n, method="wilson")
        assert (low[at], high[at]) == pytest.approx(expected, abs=1e-9)
    assert np.isnan([low[3], high[3]]).all()
    assert (low[4], high[4]) == tuple(end[4] for end in interval(shares))
    assert np.isnan(share_interval(shares[:1], np.array([24, 3, 5, 0, 7]))).all()


def test_nothing_divided_by_nothing_is_not_known():
    assert np.isnan(ratio(np.array([1.0]), np.array([0.0]))).all()
    assert ratio(np.array([1.0]), np.array([4])) == [0.25]
