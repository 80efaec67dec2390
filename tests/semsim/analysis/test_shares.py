"""Intervals where no resample says anything: of shares, and of AUC."""

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from semsim.analysis.shares import newcombe, wilson


def test_wilson_is_that_of_statsmodels():
    for n in (1, 2, 7, 24):
        count = np.arange(n + 1)
        ours = np.array(wilson(count / n, np.full(n + 1, n))).T
        theirs = [proportion_confint(k, n, method="wilson") for k in count]
        np.testing.assert_allclose(ours, theirs, atol=1e-9)
    assert np.isnan(wilson(np.array([np.nan]), np.zeros(1))).all()


def test_newcombe_of_one_pair_is_wilson_of_one_trial():
    for auc in (0.0, 0.5, 1.0):
        expected = [ends.item() for ends in wilson(np.array([auc]), np.array([1]))]
        assert newcombe(auc, 1, 1) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("auc", "m", "n"), [(1.0, 3, 9), (0.8, 12, 5), (0.5, 40, 40)])
def test_newcombe_holds_what_is_within_196_standard_errors(auc, m, n):
    true = np.linspace(1e-6, 1 - 1e-6, 200_001)
    more = (m + n) / 2 - 1
    q1, q2 = true / (2 - true), 2 * true**2 / (1 + true)  # Hanley and McNeil 1982
    variance = (true * (1 - true) + more * (q1 - true**2) + more * (q2 - true**2)) / (m * n)
    within = true[(auc - true) ** 2 <= 1.959963984540054**2 * variance]
    assert newcombe(auc, m, n) == pytest.approx((within.min(), within.max()), abs=1e-4)


def test_newcombe_is_the_same_both_ways_and_narrower_with_more_images():
    low, high = newcombe(1.0, 6, 4)
    assert (1 - high, 1 - low) == pytest.approx(newcombe(0.0, 4, 6))
    assert high == 1
    assert low < newcombe(1.0, 60, 40)[0] < 1
