import numpy as np
import pytest
from made_votes import evidence

from semsim.analysis.layout import layout_of
from semsim.analysis.permutation import permutation_p
from semsim.analysis.resampling import resample

LAYOUT = layout_of(evidence().images)


@pytest.mark.parametrize(("n", "kind"), [(8, "exact"), (9, "Monte Carlo")])
def test_exact_as_long_as_it_is_short(n, kind):
    found = permutation_p(np.arange(n), np.arange(n)[::-1], resample(LAYOUT, 0, 99, 0))
    assert found.kind == kind


def test_a_perfect_ranking_of_four_models_by_hand():
    found = permutation_p(np.arange(4), np.arange(4), resample(LAYOUT, 0, 0, 0))
    assert (found.rho, found.tau) == (2 / 24, 2 / 24)  # this order and its reverse


def test_a_p_by_shuffles_is_never_zero():
    found = permutation_p(np.arange(12), np.arange(12), resample(LAYOUT, 0, 99, 0))
    assert (found.rho, found.tau) == (0.01, 0.01)


def test_both_signs_count():
    up, down = np.array([1, 3, 2, 5, 4, 6]), np.array([6, 4, 5, 2, 3, 1])
    none = resample(LAYOUT, 0, 0, 0)
    assert permutation_p(up, np.arange(6), none) == permutation_p(down, np.arange(6), none)
