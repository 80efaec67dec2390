import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from semsim.base.errors import DataError
from semsim.base.stats import correlation
from semsim.base.stats.correlation import (
    bonett_wright,
    difference_interval,
    difference_p,
    interval_note,
    kendall_rows,
    kendall_score,
    kendall_variance,
    rank_agreement,
    spearman_rows,
)

STEADY = settings(max_examples=50)
# few different values, so that ties are common
VALUES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=14)


@STEADY
@given(VALUES)
def test_equal_to_scipy(pairs):
    human, metric = np.array(pairs, dtype=float).T
    found = rank_agreement(human, metric)
    if len(set(human)) == 1 or len(set(metric)) == 1:
        assert found.rho is None
        assert "the same value for every model" in found.undefined
        return
    assert found.rho == pytest.approx(stats.spearmanr(human, metric).statistic)
    assert found.tau == pytest.approx(stats.kendalltau(human, metric).statistic)
    assert found.n == len(pairs)


@STEADY
@given(VALUES, st.randoms(use_true_random=False))
def test_the_order_of_models_and_a_monotone_scale_do_not_matter(pairs, random):
    human, metric = np.array(pairs, dtype=float).T
    order = list(range(len(pairs)))
    random.shuffle(order)
    found = rank_agreement(human, metric)
    again = rank_agreement(human[order], np.exp(metric[order]))
    assert (again.rho is None) == (found.rho is None)
    if found.rho is not None:
        assert (again.rho, again.tau) == pytest.approx((found.rho, found.tau))


def test_kendalls_tau_b_by_counting_pairs():
    human, metric = [1, 2, 3, 4], [1, 3, 2, 2]
    # concordant: 12 13 14; discordant: 23 24; tied in the metric: 34
    assert rank_agreement(human, metric).tau == pytest.approx((3 - 2) / np.sqrt(6 * 5))


def test_perfect_agreement_is_exactly_one_and_may_be_chance():
    found = rank_agreement(np.arange(6), np.arange(6.0))
    assert (found.rho, found.tau) == (1.0, pytest.approx(1.0))
    for low, high in (found.rho_interval, found.tau_interval):
        assert low < 0.5
        assert high == pytest.approx(1)


def test_an_infinite_value_has_a_rank():
    assert rank_agreement([1, 2, 3], [10, 20, np.inf]).rho == 1.0


@pytest.mark.parametrize(
    ("human", "metric", "why"),
    [
        ([1, 2], [1, 2], "2 models; a ranking needs at least 3"),
        ([1, 2, np.nan], [1, 2, 3], "people: 1 model without a value"),
        ([1, 2, 3], [1, np.nan, np.nan], "metric: 2 models without a value"),
        ([1, 1, 1], [1, 2, 3], "people: the same value for every model"),
        ([1, 2, 3], [np.inf] * 3, "metric: the same value for every model"),
    ],
)
def test_what_has_no_answer_says_why_and_is_no_number(human, metric, why):
    found = rank_agreement(human, metric)
    assert found.undefined == why
    assert (found.rho, found.tau) == (None, None)
    assert (found.rho_interval, found.tau_interval) == (None, None)


def test_lengths_must_agree():
    with pytest.raises(DataError, match=r"\(3,\) human and \(2,\)"):
        rank_agreement([1, 2, 3], [1, 2])


ROWS = st.lists(
    st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.5, np.inf, -np.inf]), min_size=5, max_size=5),
    min_size=2,
    max_size=8,
)


@STEADY
@given(ROWS, ROWS)
def test_rows_equal_scipy_one_by_one(first, second):
    n = min(len(first), len(second))
    x, y = np.array(first[:n]), np.array(second[:n])
    rho, tau = spearman_rows(x, y), kendall_rows(x, y)
    for i in range(n):
        if len(set(x[i])) == 1 or len(set(y[i])) == 1:
            assert np.isnan([rho[i], tau[i]]).all()
            continue
        ranks = stats.rankdata(x[i]), stats.rankdata(y[i])
        assert rho[i] == pytest.approx(stats.pearsonr(*ranks).statistic, abs=1e-12)
        assert tau[i] == pytest.approx(stats.kendalltau(*ranks).statistic, abs=1e-12)


@pytest.mark.parametrize("correlate", [spearman_rows, kendall_rows])
def test_one_row_serves_for_all_and_a_missing_value_has_no_answer(correlate):
    x = np.array([[1.0, 2, 3, 4], [4, 3, 2, 1], [1, 2, np.nan, 4]])
    np.testing.assert_allclose(correlate(x, x[:1]), [1, -1, np.nan])
    np.testing.assert_allclose(correlate(x[:1], x), [1, -1, np.nan])
    assert correlate(x[:0], x[:0]).shape == (0,)


def test_tables_of_pairs_too_large_for_memory_are_cut(monkeypatch):
    x, y = np.random.default_rng(0).normal(size=(2, 20, 6))
    whole = kendall_rows(x, y), kendall_rows(x, y[:1])
    monkeypatch.setattr(correlation, "_CELLS", 100)  # two rows at once
    np.testing.assert_array_equal(kendall_rows(x, y), whole[0])
    np.testing.assert_array_equal(kendall_rows(x, y[:1]), whole[1])


Z = stats.norm.ppf(0.975)


def orders(n):
    return np.array(list(itertools.permutations(range(n))))


def share_held(values, ends):
    """Of equally likely values, the share whose interval holds 0."""
    different, times = np.unique(np.round(values, 12), return_counts=True)
    held = [low <= 0 <= high for low, high in map(ends, different)]
    return (times * held).sum() / times.sum()


def test_bonett_and_wright_by_hand():
    # for ρ = 0.86, n = 14: z = 1.2933, half = 1.96 √((1 + 0.86²/2) / 11) = 0.6916
    low, high = bonett_wright(0.86, 14)
    assert (low, high) == pytest.approx(
        (np.tanh(1.2933 - 0.6916), np.tanh(1.2933 + 0.6916)), abs=1e-4
    )
    assert bonett_wright(-0.86, 14) == pytest.approx((-high, -low))


def test_with_ties_a_ranking_above_the_next_one_has_the_interval_of_a_perfect_one():
    """ρ of two tied of six with 1 to 6 is 0.986; one swap of six leaves 0.943."""
    tied = float(stats.spearmanr([1, 2.5, 2.5, 4, 5, 6], range(6)).statistic)
    assert bonett_wright(tied, 6) == bonett_wright(1.0, 6)
    reach = Z * np.sqrt((1 + tied**2 / 2) / 3)
    assert bonett_wright(tied, 6)[0] < np.tanh(np.arctanh(tied) - reach)


@given(st.integers(6, 40), st.floats(-1, 1))
def test_a_note_stands_where_the_interval_is_not_that_of_the_formula(n, rho):
    """Of 1 and -1, which the formula does not know, it needs none."""
    reach = Z * np.sqrt((1 + rho**2 / 2) / (n - 3))
    with np.errstate(divide="ignore"):
        formula = np.tanh(np.arctanh(rho) + np.array([-reach, reach]))
    other = not np.allclose(bonett_wright(rho, n), formula, rtol=0, atol=1e-9)
    assert (interval_note(rho, n) is not None) == (other and abs(rho) < 1 - 1e-12)


@pytest.mark.parametrize("n", [6, 8, 14])
def test_a_perfect_ranking_reaches_down_as_far_as_one_swap(n):
    swapped = np.arange(n)
    swapped[[0, 1]] = [1, 0]
    most = stats.spearmanr(np.arange(n), swapped).statistic
    low, high = bonett_wright(1.0, n)
    assert (low, high) == (pytest.approx(bonett_wright(most, n)[0]), 1)
    assert bonett_wright(-1.0, n) == (-1, -low)
    assert bonett_wright(most, n)[1] < 1


def test_fewer_than_six_models_have_no_interval():
    assert (bonett_wright(0.5, 5), kendall_score(0.3, 5)) == (None, None)
    assert difference_interval(0.5, 0.3, 0.1, 5) is None
    assert np.isnan(difference_p(0.5, 0.3, 0.1, 5))


@pytest.mark.parametrize("n", [2, 4, 6])
def test_the_variance_of_tau_without_correlation_is_that_of_all_orders(n):
    every = orders(n)
    exact = kendall_rows(every, np.arange(n)[None]).var()
    assert kendall_variance(0.0, n) == pytest.approx(exact)
    assert kendall_variance(1.0, n) == pytest.approx(0, abs=1e-12)


def test_the_variance_of_tau_of_correlated_pairs_by_simulation():
    draw, r, repeats = np.random.default_rng(0), 0.8, 4000
    x, noise = draw.normal(size=(2, repeats, 6))
    found = kendall_rows(x, r * x + np.sqrt(1 - r**2) * noise).var()
    expected = kendall_variance(2 / np.pi * np.arcsin(r), 6)
    # the standard error of a variance is about √(2 / 4000) = 2.2% of it
    assert found == pytest.approx(expected, rel=0.08)


@pytest.mark.parametrize(("tau", "n"), [(0.2, 6), (-0.7, 9), (0.8, 14)])
def test_the_ends_of_taus_interval_are_at_1_96_of_their_own_standard_errors(tau, n):
    step = 2 / (n * (n - 1))
    for end in kendall_score(tau, n):
        away = abs(end - tau) - step
        assert away == pytest.approx(Z * np.sqrt(kendall_variance(end, n)), abs=1e-6)


def test_taus_interval_reaches_1_only_where_nothing_speaks_against_it():
    low, high = kendall_score(1.0, 6)
    assert (low < 0.5, high) == (True, 1)
    assert kendall_score(-1.0, 6) == (-1, pytest.approx(-low))
    assert kendall_score(0.6, 6)[1] < 1


@pytest.mark.parametrize("n", [6, 7])
def test_no_correlation_is_held_by_95_of_100_orders_or_nearly(n):
    """All n! orders are equally likely then, so the share is exact."""
    every, people = orders(n), np.arange(n)[None]
    assert share_held(spearman_rows(every, people), lambda rho: bonett_wright(rho, n)) >= 0.93
    assert share_held(kendall_rows(every, people), lambda tau: kendall_score(tau, n)) >= 0.93


def test_two_metrics_of_chance_differ_in_5_of_100_pairs_of_orders_at_most():
    """All (n!)² pairs of orders are equally likely then: 2,000 of them, whose error is 0.005."""
    n = 6
    every, people = orders(n), np.arange(n)[None]
    first, second = np.random.default_rng(0).integers(len(every), size=(2, 2000))
    with_people = spearman_rows(every, people)
    between = spearman_rows(every[first], every[second])
    rhos = np.round(np.stack([with_people[first], with_people[second], between], axis=1), 12)
    different, times = np.unique(rhos, axis=0, return_counts=True)
    small = np.array([difference_p(*map(float, one), n) <= 0.05 for one in different])
    assert (times * small).sum() / times.sum() <= 0.05


def test_the_difference_of_independent_correlations_by_hand():
    # Nothing goes together where ρ of the two is 0 and so is one of them: √ of squares.
    (low_a, high_a), (low_b, high_b) = bonett_wright(0.6, 10), bonett_wright(0.0, 10)
    low, high = difference_interval(0.6, 0.0, 0.0, 10)
    assert low == pytest.approx(0.6 - np.hypot(0.6 - low_a, high_b))
    assert high == pytest.approx(0.6 + np.hypot(high_a - 0.6, low_b))


def test_turning_a_difference_turns_its_interval_and_keeps_p():
    low, high = difference_interval(0.8, 0.2, 0.5, 12)
    assert difference_interval(0.2, 0.8, 0.5, 12) == pytest.approx((-high, -low))
    assert difference_p(0.2, 0.8, 0.5, 12) == difference_p(0.8, 0.2, 0.5, 12)


@pytest.mark.parametrize("n", [6, 8, 14, 40])
def test_p_is_small_exactly_where_the_interval_leaves_out_0(n):
    draw = np.random.default_rng(n)
    small = 0
    for ties in [False, True] * 100:
        values = draw.normal(size=(3, 3)) @ draw.normal(size=(3, n))
        values = np.round(values) if ties else values
        pairs = [values[[0]], values[[1]]], [values[[0]], values[[2]]], [values[[1]], values[[2]]]
        rhos = [float(spearman_rows(*pair)[0]) for pair in pairs]
        if np.isnan(rhos).any():
            continue
        low, high = difference_interval(*rhos, n)
        p = difference_p(*rhos, n)
        assert (p < 0.05) == (low > 0 or high < 0)
        small += p < 0.05
    assert small > 0


def test_alike_and_nearly_alike_do_not_differ():
    assert difference_p(0.7, 0.7, 0.9, 10) == 1
    assert difference_p(1.0, 1.0, 1.0, 10) == 1
    assert difference_p(1.0, 1 - 12 / 990, 0.9, 10) == 1  # the interval of 1 begins there


@pytest.mark.parametrize(("n", "r"), [(6, 0.9), (8, 0.6), (14, 0.9)])
def test_intervals_hold_the_true_value_of_normal_scores(n, r):
    """600 studies: where 95% of intervals hold it, fewer than 0.92 do once in 1,000 times."""
    draw = np.random.default_rng(0)
    x, noise = draw.normal(size=(2, 600, n))
    y = r * x + np.sqrt(1 - r**2) * noise
    truth = 6 / np.pi * np.arcsin(r / 2), 2 / np.pi * np.arcsin(r)
    for true, ends, values in (
        (truth[0], bonett_wright, spearman_rows(x, y)),
        (truth[1], kendall_score, kendall_rows(x, y)),
    ):
        held = [low <= true <= high for low, high in (ends(float(one), n) for one in values)]
        assert np.mean(held) >= 0.92
