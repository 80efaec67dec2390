"""The one rule for intervals, against statsmodels, scipy and textbook formulas."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from semsim.base.stats.intervals import (
    FEWEST,
    crossed_ends,
    error,
    fisher,
    half_words,
    left_out,
    of_means,
    pairs_ends,
    share_ends,
    student,
    too_few,
    why_none,
    wilson,
)

MEANS = np.random.default_rng(0).normal(size=(9, 3))


def jackknifed(values):
    weights = left_out(len(values))
    return weights @ values / weights.sum(axis=1)[:, None]


def test_each_original_is_left_out_once():
    weights = left_out(7)
    assert weights.shape == (8, 7)
    assert (weights[0] == 1).all()
    assert (np.argwhere(weights[1:] == 0) == np.arange(7)[:, None]).all()
    assert left_out(0).shape == (1, 0)


def test_of_many_originals_groups_of_nearly_equal_size_are_left_out():
    weights = left_out(1100)
    assert len(weights) == 251
    assert set((weights[1:] == 0).sum(axis=1)) == {4, 5}
    assert ((weights[1:] == 0).sum(axis=0) == 1).all()


def test_the_interval_of_a_mean_is_students():
    drawn = jackknifed(MEANS)
    spread = error(drawn, 9)
    assert spread == pytest.approx(stats.sem(MEANS, axis=0))
    ends = student(drawn[0], spread, 9)
    expected = stats.t.interval(0.95, 8, drawn[0], stats.sem(MEANS, axis=0))
    np.testing.assert_allclose(ends, expected)


def test_the_error_of_a_mean_of_many_is_that_of_all():
    values = np.random.default_rng(1).normal(size=(5000, 1))
    spread = error(jackknifed(values), 5000)
    assert spread[0] == pytest.approx(stats.sem(values)[0], rel=0.15)  # 250 groups: 4.5%


@pytest.mark.parametrize(("n", "count"), [(9, 4), (24, 12), (24, 19), (2000, 700)])
def test_one_picture_an_original_counts_as_one_trial(n, count):
    """At the level of Student's t it is the interval of statsmodels."""
    yes = (np.arange(n) < count).astype(float)[:, None]
    drawn = jackknifed(yes)
    low, high = share_ends(drawn[0], error(drawn, n), n)
    level = 2 * stats.norm.sf(stats.t.ppf(0.975, n - 1))
    expected = proportion_confint(count, n, alpha=level, method="wilson")
    exact = 1e-9 if n <= 250 else 0.1 * (expected[1] - expected[0])
    assert (low[0], high[0]) == pytest.approx(expected, abs=exact)


def test_copies_of_a_picture_are_no_further_trials():
    once = np.repeat([1.0, 0.0], [5, 7])[:, None]
    drawn = jackknifed(once)
    ends = share_ends(drawn[0], error(drawn, 12), 12)
    apart = jackknifed(np.tile(once, (4, 1)))
    narrow = share_ends(apart[0], error(apart, 48), 48)
    assert narrow[1] - narrow[0] < 0.6 * (ends[1] - ends[0])


@pytest.mark.parametrize("n", [6, 9, 24, 60])
def test_wilson_holds_every_share_in_93_of_100_studies(n):
    count = np.arange(n + 1)
    low, high = wilson(count / n, np.full(n + 1, n), n)
    true = np.linspace(0.001, 0.999, 999)
    inside = (low[:, None] <= true) & (true <= high[:, None])
    held = (inside * stats.binom.pmf(count[:, None], n, true)).sum(axis=0)
    assert held.min() >= 0.93


def test_nothing_and_everything_are_not_certain_and_mirror_each_other():
    low, high = share_ends(np.array([0.0, 1.0]), np.zeros(2), 24)
    t2 = stats.t.ppf(0.975, 23) ** 2
    assert (low[0], high[0]) == pytest.approx((0, t2 / (24 + t2)))
    assert (1 - high[1], 1 - low[1]) == pytest.approx((low[0], high[0]))
    best = pairs_ends(np.array([1.0]), np.zeros(1), 24)
    assert (best[0][0], best[1][0]) == pytest.approx((1 - high[0], 1))


def test_an_auc_counts_as_many_trials_as_its_error_is_worth():
    ends = pairs_ends(np.array(0.8), np.sqrt(np.array(0.8 * 0.2 / 50)), 12)
    assert ends == wilson(np.array(0.8), np.array(50.0), 12)


def test_fishers_z_keeps_a_correlation_within_its_bounds():
    low, high = fisher(np.array([0.9, -0.9]), np.array([0.2, 0.2]), 8)
    z, reach = np.arctanh(0.9), stats.t.ppf(0.975, 7) * 0.2 / (1 - 0.81)
    assert (low[0], high[0]) == pytest.approx((np.tanh(z - reach), np.tanh(z + reach)))
    assert (low[1], high[1]) == pytest.approx((-high[0], -low[0]))
    assert np.isnan(fisher(np.array(1.0), np.array(0.0), 8)).all()


@pytest.mark.parametrize("ends", [student, fisher, share_ends, pairs_ends])
def test_below_six_units_there_is_none(ends):
    value, spread = np.array([0.5, 0.5]), np.array([0.1, 0.1])
    low, high = ends(value, spread, np.array([FEWEST - 1, FEWEST]))
    assert np.isnan(low).tolist() == np.isnan(high).tolist() == [True, False]


def test_why_there_is_none():
    assert why_none(5, 0.1) == too_few(5) == "no interval: 5 originals, fewer than 6"
    assert too_few(1, "seed") == "no interval: 1 seed, fewer than 6"
    assert too_few(6) is None
    assert "without some original" in why_none(9, np.nan)
    assert "changes it" in why_none(9, 0.0)
    assert why_none(9, 0.1) is None


def test_half_an_interval_of_a_mean_is_students_and_of_a_difference_welchs():
    one, other = MEANS[:, 0], 5 * MEANS[:7, 1]
    half, why = of_means(one, noun="system")
    ends = stats.t.interval(0.95, 8, one.mean(), stats.sem(one))
    assert (half, why) == (pytest.approx((ends[1] - ends[0]) / 2), None)
    half, _ = of_means(one, other, noun="system")
    ends = stats.ttest_ind(one, other, equal_var=False).confidence_interval()
    assert half == pytest.approx((ends.high - ends.low) / 2)
    assert half_words(half, None, 1) == f" ± {half:.1f}"


@pytest.mark.parametrize(
    ("sides", "why"),
    [
        ((np.arange(5.0),), "no interval: 5 systems, fewer than 6"),
        ((np.arange(9.0), np.arange(1.0)), "no interval: 1 system, fewer than 6"),
        ((np.arange(9.0), np.array([])), "no interval: 0 systems, fewer than 6"),
        ((np.ones(9), np.ones(6)), "no interval: no system that is left out changes it"),
        ((np.append(np.arange(8.0), np.inf),), "no interval: without some system there is no n"),
    ],
)
def test_without_half_an_interval_words_say_why(sides, why):
    half, said = of_means(*sides, noun="system")
    assert np.isnan(half)
    assert half_words(half, said).startswith(f", {why}")


def test_the_ends_of_crossed_units_take_in_both_kinds():
    rng = np.random.default_rng(0)
    originals, seeds = (grid.ravel() for grid in np.meshgrid(range(12), range(6), indexing="ij"))
    alone = (rng.random(72) < 0.5).astype(float)
    by_seed = (seeds % 2 == 0).astype(float)
    widths = [
        high - low for low, high in (crossed_ends(h, [originals, seeds]) for h in (alone, by_seed))
    ]
    assert widths[1] > 2 * widths[0]
    one_seed = crossed_ends(alone[:12], [np.arange(12), np.zeros(12)])
    assert one_seed == pytest.approx(tuple(map(float, share_ends_of(alone[:12]))))
    assert np.isnan(crossed_ends(alone[:5], [np.arange(5), np.zeros(5)])).all()


def share_ends_of(hits):
    """The ends of one hit a unit."""
    weights = left_out(len(hits))
    spread = error(weights @ hits / weights.sum(axis=1), len(hits))
    return share_ends(np.array(hits.mean()), spread, len(hits))
