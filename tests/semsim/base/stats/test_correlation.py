import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from semsim.base.errors import DataError
from semsim.base.stats import correlation
from semsim.base.stats.correlation import kendall_rows, rank_agreement, spearman_rows

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
