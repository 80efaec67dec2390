"""Statistics of agreement against scipy, scikit-learn and simulation."""

import numpy as np
import pytest
from made_votes import PSNR, evidence
from scipy import stats
from sklearn.metrics import roc_auc_score
from statsmodels.stats.multitest import multipletests

from semsim.base.stats.agreement import holm, permutation_p
from semsim.base.stats.correlation import kendall_rows, spearman_rows
from semsim.base.stats.grouping import layout_of
from semsim.base.stats.resampling import interval, resample
from semsim.base.stats.roc import auc_table, contest_of, weighted_auc

ONE = layout_of(evidence(n_models=14, n_originals=4).images)


def test_rows_equal_scipy():
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(50, 14)), draw.integers(0, 9, (50, 14))
    rho = [stats.spearmanr(a, b).statistic for a, b in zip(x, y, strict=True)]
    tau = [stats.kendalltau(a, b).statistic for a, b in zip(x, y, strict=True)]
    np.testing.assert_allclose(spearman_rows(x, y), rho, atol=1e-12)
    np.testing.assert_allclose(kendall_rows(x, y), tau, atol=1e-12)


def test_holms_correction_equals_statsmodels():
    draw = np.random.default_rng(2)
    for n in (1, 2, 7, 30):
        p = np.round(draw.random(n) ** 3, 2)  # small ones, and ties
        assert holm(p) == pytest.approx(multipletests(p, method="holm")[1], abs=1e-12)


@pytest.mark.parametrize("ties", [False, True])
def test_exact_p_equals_scipys_permutation_test(ties):
    draw = np.random.default_rng(1)
    x = draw.normal(size=6)
    y = x + draw.normal(size=6)
    if ties:
        x, y = np.round(x), np.round(y)
    found = permutation_p(x, y, resample(ONE, 0, 0, 0))
    for name, function in (("rho", stats.spearmanr), ("tau", stats.kendalltau)):
        expected = stats.permutation_test(
            (x,),
            lambda one, function=function: abs(function(one, y).statistic),
            permutation_type="pairings",
            alternative="greater",
            n_resamples=np.inf,
        )
        assert getattr(found, name) == pytest.approx(expected.pvalue)


def test_exact_p_of_tau_without_ties_equals_scipys():
    x, y = np.arange(8.0), np.array([2, 1, 4, 3, 5, 8, 6, 7.0])
    found = permutation_p(x, y, resample(ONE, 0, 0, 0))
    assert found.tau == pytest.approx(stats.kendalltau(x, y, method="exact").pvalue)


def test_p_by_shuffles_is_near_the_exact_one():
    draw = np.random.default_rng(2)
    x = draw.normal(size=14)
    y = x + 1.5 * draw.normal(size=14)
    found = permutation_p(x, y, resample(ONE, 0, 4000, 0))
    exact = stats.kendalltau(x, y, method="exact").pvalue
    # three standard errors of a share out of 4,000
    assert found.tau == pytest.approx(exact, abs=3 * np.sqrt(exact / 4000))


@pytest.mark.parametrize("ties", [False, True])
def test_weighted_auc_equals_scikit_learn(ties):
    draw = np.random.default_rng(3)
    n = 400
    recognised = draw.random(n) < 0.6
    values = draw.normal(size=n) + recognised
    values = np.round(values) if ties else values
    original = draw.integers(0, 50, n)
    contest = contest_of(values, recognised, np.zeros(n, dtype=int), original)
    weights = draw.integers(0, 4, (3, 50)).astype(float)
    expected = [roc_auc_score(recognised, values, sample_weight=row[original]) for row in weights]
    np.testing.assert_allclose(weighted_auc(contest, weights)[:, 0], expected, atol=1e-12)


def test_auc_within_models_equals_scikit_learn():
    found = evidence(n_models=5, n_originals=30)
    layout = layout_of(found.images)
    human = found.recognised.means
    table = auc_table([PSNR], found, human, layout).set_index("scope")
    each = [
        roc_auc_score(human[own] > 0.5, found.scores["psnr"][own])
        for own in (layout.model == m for m in range(5))
    ]
    assert table.loc["within model", "auc"] == pytest.approx(np.mean(each))
    pooled = roc_auc_score(human > 0.5, found.scores["psnr"])
    assert table.loc["pooled", "auc"] == pytest.approx(pooled)


def test_the_bootstrap_over_models_covers_what_it_says():
    """Of normal pairs with ρ = 0.7 over 14 models, about 95% of intervals hold the true value."""
    draw = np.random.default_rng(4)
    truth = 6 / np.pi * np.arcsin(0.7 / 2)
    hits, repeats = 0, 400
    for repeat in range(repeats):
        x, noise = draw.normal(size=(2, 14))
        y = 0.7 * x + np.sqrt(1 - 0.49) * noise
        picks = resample(ONE, 400, 0, repeat).picks(14)
        low, high = interval(spearman_rows(x[picks], y[picks]))
        hits += low <= truth <= high
    assert hits / repeats == pytest.approx(0.95, abs=0.03)  # 2.7 standard errors
