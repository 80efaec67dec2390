import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from semsim.analysis.correlation import bonett_wright, rank_agreement
from semsim.errors import DataError

STEADY = settings(max_examples=50)
# few different values, so that ties are common
VALUES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=14)


@STEADY
@given(VALUES, st.booleans())
def test_equal_to_scipy_and_oriented(pairs, higher):
    human, metric = np.array(pairs, dtype=float).T
    found = rank_agreement(human, metric, higher)
    if len(set(human)) == 1 or len(set(metric)) == 1:
        assert found.rho is None
        assert "the same value for every model" in found.undefined
        return
    sign = 1 if higher else -1
    assert found.rho == pytest.approx(sign * stats.spearmanr(human, metric).statistic)
    assert found.tau == pytest.approx(sign * stats.kendalltau(human, metric).statistic)
    assert found.n == len(pairs)


@STEADY
@given(VALUES, st.randoms(use_true_random=False))
def test_the_order_of_models_and_a_monotone_scale_do_not_matter(pairs, random):
    human, metric = np.array(pairs, dtype=float).T
    order = list(range(len(pairs)))
    random.shuffle(order)
    found = rank_agreement(human, metric, True)
    again = rank_agreement(human[order], np.exp(metric[order]), True)
    assert (again.rho is None) == (found.rho is None)
    if found.rho is not None:
        assert (again.rho, again.tau) == pytest.approx((found.rho, found.tau))


def test_kendalls_tau_b_by_counting_pairs():
    human, metric = [1, 2, 3, 4], [1, 3, 2, 2]
    # concordant: 12 13 14; discordant: 23 24; tied in the metric: 34
    assert rank_agreement(human, metric, True).tau == pytest.approx((3 - 2) / np.sqrt(6 * 5))


def test_perfect_agreement_is_exactly_one_and_has_no_interval():
    found = rank_agreement(np.arange(6), -np.arange(6.0), False)
    assert (found.rho, found.rho_interval) == (1.0, None)
    assert found.tau == pytest.approx(1.0)


def test_an_infinite_value_has_a_rank():
    assert rank_agreement([1, 2, 3], [10, 20, np.inf], True).rho == 1.0


@pytest.mark.parametrize(
    ("human", "metric", "why"),
    [
        ([1, 2], [1, 2], "2 models; a ranking needs at least 3"),
        ([1, 2, np.nan], [1, 2, 3], "people: 1 models without a value"),
        ([1, 2, 3], [1, np.nan, np.nan], "metric: 2 models without a value"),
        ([1, 1, 1], [1, 2, 3], "people: the same value for every model"),
        ([1, 2, 3], [np.inf] * 3, "metric: the same value for every model"),
    ],
)
def test_what_has_no_answer_says_why_and_is_no_number(human, metric, why):
    found = rank_agreement(human, metric, True)
    assert found.undefined == why
    assert (found.rho, found.tau, found.rho_interval) == (None, None, None)


def test_lengths_must_agree():
    with pytest.raises(DataError, match=r"\(3,\) human and \(2,\)"):
        rank_agreement([1, 2, 3], [1, 2], True)


def test_interval_of_bonett_and_wright():
    # by hand for ρ = 0.86, n = 14: z = 1.2933, half = 1.96 √((1 + 0.86²/2) / 11) = 0.6916
    low, high = bonett_wright(0.86, 14)
    assert (low, high) == pytest.approx(
        (np.tanh(1.2933 - 0.6916), np.tanh(1.2933 + 0.6916)), abs=1e-4
    )
    assert bonett_wright(0.5, 3) is None
    assert bonett_wright(-1.0, 10) is None


def test_the_interval_covers_what_it_says():
    """Of normal pairs with ρ = 0.7, about 95 % of intervals hold Spearman's true value."""
    draw = np.random.default_rng(0)
    truth = 6 / np.pi * np.arcsin(0.7 / 2)
    hits, repeats = 0, 400
    for _ in range(repeats):
        x, noise = draw.normal(size=(2, 14))
        low, high = rank_agreement(x, 0.7 * x + np.sqrt(1 - 0.49) * noise, True).rho_interval
        hits += low <= truth <= high
    assert hits / repeats == pytest.approx(0.95, abs=0.03)  # 2.7 standard errors
