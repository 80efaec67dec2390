"""Pairwise accuracy against loops that follow its definitions, and its tests on known answers."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from made_votes import FID, MSE, PSNR, SPECS, evidence
from scipy.stats import norm

from semsim.base.stats.analysis import AnalysisSettings, analyse
from semsim.base.stats.pairwise_accuracy import (
    MOST,
    NO_PAIR,
    OF_SETS,
    _widening,
    bands,
    differences,
    hard_accuracy,
    in_groups,
    lead_p,
    model_swap_test,
    sign_flips,
    soft_accuracy,
    standardised,
    swap_test,
    tied_accuracy,
)

NAN = float("nan")


def rng(seed=0):
    return np.random.default_rng(seed)


def scores(models=5, originals=8, seed=0, lead=0.5):
    """(M, O): the later a model, the more it leaks."""
    return rng(seed).normal(size=(models, originals)) + lead * np.arange(models)[:, None]


def with_gaps(values, seed=1):
    found = values.copy()
    found[rng(seed).random(values.shape) < 0.2] = NAN
    return found


def lead_by_hand(first, second):
    """The share of all sign flips that reach the lead; equal sums count half."""
    pairs = [a - b for a, b in zip(first, second, strict=True) if not np.isnan(a - b)]
    sums = [
        sum(s * d for s, d in zip(signs, pairs, strict=True))
        for signs in itertools.product((1, -1), repeat=len(pairs))
    ]
    seen = sum(pairs)
    above = sum(one > seen + 1e-9 for one in sums)
    return (above + sum(abs(one - seen) <= 1e-9 for one in sums) / 2) / len(sums)


def tied_by_hand(people, metric, epsilon):
    """Deutsch et al. 2023, equation 8, original by original."""
    found = []
    for h, m in zip(people.T, metric.T, strict=True):
        right = []
        for i, j in itertools.combinations(range(len(h)), 2):
            if np.isnan(h[i] - h[j] + m[i] - m[j]):
                continue
            gap = m[i] - m[j]
            said = 0 if abs(gap) <= epsilon else np.sign(gap)
            right.append(said == np.sign(h[i] - h[j]))
        if right:
            found.append(np.mean(right))
    return float(np.mean(found))


@pytest.mark.parametrize("values", [scores(), with_gaps(scores()), (scores() > 1).astype(float)])
def test_all_sign_flips_give_the_p_of_the_definition(values):
    flips = sign_flips(8, 256, rng())
    assert sorted(map(tuple, flips)) == sorted(itertools.product((-1, 1), repeat=8))
    expected = [lead_by_hand(a, b) for a, b in itertools.combinations(values, 2)]
    assert lead_p(differences(values), flips) == pytest.approx(expected)


def test_p_of_a_lead_and_of_the_opposite_lead_add_to_one():
    values = (scores(models=6, originals=30) > 1).astype(float)
    flips = sign_flips(30, 500, rng())
    both = lead_p(differences(values), flips) + lead_p(-differences(values), flips)
    assert both == pytest.approx(np.ones(15))


def test_random_flips_come_near_to_all_of_them():
    pairs = differences(scores(originals=12))
    every = lead_p(pairs, sign_flips(12, 4096, rng()))
    drawn = lead_p(pairs, sign_flips(12, 4000, rng()))
    assert np.abs(every - drawn).max() < 4 * 0.5 / np.sqrt(4000)  # four standard errors


def test_models_without_a_common_original_have_no_p():
    values = np.array([[1.0, NAN], [NAN, 2.0], [0.0, 1.0]])
    p = lead_p(differences(values), sign_flips(2, 4, rng()))
    assert np.isnan(p).tolist() == [True, False, False]
    assert np.isnan(soft_accuracy(p, np.full(3, NAN)))
    assert soft_accuracy(p, p) == 1


def test_a_metric_that_says_what_people_say_is_right_and_its_opposite_is_wrong():
    people = scores(models=6, originals=200, lead=2.0)
    flips = sign_flips(200, 1000, rng())
    ours, theirs = (lead_p(differences(one), flips) for one in (people, -people))
    assert soft_accuracy(ours, ours) == 1
    assert soft_accuracy(ours, theirs) < 0.01
    assert (hard_accuracy(people, people), hard_accuracy(people, -people)) == (1, 0)


def test_hard_accuracy_counts_pairs_of_means():
    people = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    metric = np.array([[1.0, 3.0], [2.0, 2.0], [5.0, 0.0]])  # means 2, 2, 2.5
    assert hard_accuracy(people, metric) == pytest.approx(2 / 3)
    assert hard_accuracy(np.array([[1.0], [1.0]]), np.array([[4.0], [4.0]])) == 1
    assert np.isnan(hard_accuracy(np.array([[1.0], [NAN]]), np.array([[1.0], [2.0]])))


@pytest.mark.parametrize("gaps", [False, True])
def test_the_calibrated_tie_is_the_best_of_all(gaps):
    people, metric = (scores(lead=1.0) > 2).astype(float), scores(seed=3, lead=1.0)
    people, metric = (with_gaps(people), with_gaps(metric, 2)) if gaps else (people, metric)
    sizes = np.abs(differences(metric))
    tried = [-1.0, *sizes[~np.isnan(sizes)]]
    found = tied_accuracy(people, metric)
    assert found.accuracy == pytest.approx(max(tied_by_hand(people, metric, e) for e in tried))
    assert found.accuracy == pytest.approx(tied_by_hand(people, metric, found.epsilon))


def test_a_metric_of_one_value_gets_what_ties_alone_are_worth():
    people = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    found = tied_accuracy(people, np.ones_like(people))
    assert (found.accuracy, found.epsilon) == (pytest.approx((1 + 1 / 3) / 2), 0)
    assert np.isnan(tied_accuracy(people[:1], people[:1]).accuracy)


def soft_by_normal(people, metric):
    """`soft_accuracy` with the normal approximation that `swap_test` uses."""
    found = []
    for place, (i, j) in enumerate(itertools.combinations(range(len(metric)), 2)):
        pairs = metric[i] - metric[j]
        pairs = pairs[~np.isnan(pairs)]
        found.append(1 - abs(people[place] - norm.sf(pairs.sum() / np.sqrt((pairs**2).sum()))))
    return np.mean(found)


def soft_of_swapped(people, metrics, swapped):
    """`soft_by_normal` of scores that come from both metrics; swapped is (M, 1) or (1, O)."""
    mean = (metrics[0] - metrics[1]).mean(axis=1)
    rows = np.broadcast_to(swapped, metrics[0].shape)
    mixed, found = np.where(rows, metrics[1], metrics[0]), []
    for place, (i, j) in enumerate(itertools.combinations(range(len(mean)), 2)):
        wider = np.sqrt(len(mean) / (len(mean) - 2)) - 1
        more = (rows[j] * 1.0 - rows[i]) * wider * (mean[i] + mean[j]) / 2
        pairs = mixed[i] - mixed[j] + more
        found.append(1 - abs(people[place] - norm.sf(pairs.sum() / np.sqrt((pairs**2).sum()))))
    return np.mean(found)


@pytest.mark.parametrize("test", [swap_test, model_swap_test])
def test_swaps_are_those_of_the_definition(test):
    people = lead_p(differences(scores(originals=20)), sign_flips(20, 500, rng()))
    a, b = scores(originals=20, seed=5), 3 * scores(originals=20, seed=6, lead=0.1)
    found = test(people, (a, b), rng(9), 50)
    both = standardised(a), standardised(b)
    seen = soft_by_normal(people, a) - soft_by_normal(people, b)
    again, reached = rng(9), 0
    for _ in range(50):
        swapped = (
            again.random(20)[None] < 0.5 if test is swap_test else again.random(5)[:, None] < 0.5
        )
        one, other = (soft_of_swapped(people, both, which) for which in (swapped, ~swapped))
        reached += abs(one - other) >= abs(seen) - 1e-12
    assert found.difference == pytest.approx(seen)
    assert found.p == pytest.approx((1 + reached) / 51)


@pytest.mark.parametrize("models", [3, 6, 14])
def test_models_of_different_metrics_differ_as_far_as_those_of_one(models):
    """Of errors less their mean, two of different metrics differ too little without a widening."""
    errors = rng().normal(size=(2000, 2, models, 1))
    centred = errors - errors.mean(axis=2, keepdims=True)
    first, second = np.triu_indices(models, 1)
    found = [(one[0][first] - one[1][second])[:, 0] + _widening(one) for one in centred]
    assert np.var(found) == pytest.approx(2, rel=0.06)


def test_metrics_that_err_by_model_differ_here_and_not_over_models():
    """With equal errors by model many studies tell them apart on their models, few over models."""
    small = []
    for seed in range(40):
        people = scores(models=10, originals=60, seed=seed, lead=0.2)
        p = lead_p(differences(people), sign_flips(60, 200, rng()))
        noise = rng(seed + 1000)
        a, b = (
            people + 0.7 * noise.normal(size=(10, 1)) + noise.normal(size=(10, 60))
            for _ in range(2)
        )
        small.append(
            [test(p, (a, b), rng(), 200).p <= 0.05 for test in (swap_test, model_swap_test)]
        )
    here, over_models = np.mean(small, axis=0)
    assert here > 0.3
    assert over_models < 0.2  # of 40 studies at 0.05, 7 or fewer in 999 of 1,000


def test_one_metric_twice_does_not_differ_from_itself():
    people = lead_p(differences(scores()), sign_flips(8, 256, rng()))
    found = swap_test(people, (scores(seed=2), scores(seed=2)), rng())
    assert (found.difference, found.p) == (0, 1)
    nothing = swap_test(np.full(10, NAN), (scores(), scores(seed=2)), rng())
    assert np.isnan([nothing.difference, nothing.p]).all()


def test_a_metric_of_noise_is_told_from_one_of_signal():
    people = scores(models=6, originals=300, lead=0.3)
    p = lead_p(differences(people), sign_flips(300, 500, rng()))
    good, noise = people + rng(1).normal(size=people.shape), rng(2).normal(size=people.shape)
    assert swap_test(p, (good, noise), rng(), 500).p < 0.01


def test_bands_begin_where_their_best_beats_a_metric():
    accuracy = np.array([0.9, 0.8, 0.79, 0.5, NAN, 0.49])
    p = np.ones((6, 6))
    for one, other in ((0, 1), (0, 2), (0, 3), (0, 5), (1, 3), (1, 5)):
        p[one, other] = p[other, one] = 0.01
    assert bands(accuracy, p).tolist() == [1, 2, 2, 4, 0, 4]
    assert bands(np.array([0.5, 0.7]), np.full((2, 2), NAN)).tolist() == [1, 1]


def test_many_originals_are_compared_in_groups():
    """Signs of 1,000 groups decide as those of 3,000 originals do, within chance."""
    values = scores(models=4, originals=3 * MOST, lead=0.02)
    gaps = differences(values)
    exact = norm.sf(gaps.sum(axis=1) / np.sqrt((gaps**2).sum(axis=1)))
    values = in_groups(values)
    flips = sign_flips(values.shape[1], 4000, rng())
    assert flips.shape == (4000, MOST)
    gaps = differences(values)
    assert np.abs(lead_p(gaps, flips) - exact).max() < 4 * 0.5 / np.sqrt(4000) + 0.02
    people = lead_p(gaps, flips)
    found = swap_test(people, (values, rng(4).normal(size=values.shape)), rng(), 300)
    assert found.p < 0.01


@pytest.fixture(scope="module")
def analysed():
    return analyse(evidence(n_originals=12), SPECS, AnalysisSettings(bootstraps=200))


def test_metrics_of_a_study_are_ordered_with_their_control(analysed):
    order = analysed.order.set_index("metric")
    assert order.loc["fid", "undefined"] == OF_SETS
    assert order.loc[["psnr", "mse"], "undefined"].isna().all()
    assert order.loc["psnr", ["n_models", "n_originals"]].tolist() == [6, 12]
    for name in ("soft_accuracy", "hard_accuracy", "tied_accuracy"):
        assert order.loc[["psnr", "mse"], name].between(0, 1).all()
    tied = order.loc[["psnr", "mse"]]
    assert (tied["tied_accuracy"] >= tied["ties_alone"] - 1e-12).all()  # all ties are a choice
    assert analysed.order["band"].tolist() in ([1, 1, 0], [1, 2, 0])


def test_pairs_of_metrics_are_tested_and_one_of_sets_has_no_p(analysed):
    leads = analysed.leads.set_index(["metric_a", "metric_b"])
    soft = analysed.order.set_index("metric")["soft_accuracy"]
    row = (
        leads.loc[("psnr", "mse")] if ("psnr", "mse") in leads.index else leads.loc[("mse", "psnr")]
    )
    first, second = row.name
    assert row["difference"] == pytest.approx(soft[first] - soft[second], abs=0.05)
    assert 0 < row["p"] <= row["p_holm"] <= 1
    assert 0 < row["p_models"] <= 1
    with_sets = leads[
        leads.index.get_level_values(0).isin(["fid"])
        | leads.index.get_level_values(1).isin(["fid"])
    ]
    assert with_sets["undefined"].eq(OF_SETS).all()
    assert with_sets["p"].isna().all()


def test_models_that_share_no_original_are_not_compared():
    found = evidence(n_originals=4)
    apart = found.images.assign(image_id=[f"i{place}" for place in range(len(found.images))])
    analysis = analyse(replace(found, images=apart), [PSNR, MSE], AnalysisSettings(bootstraps=20))
    assert analysis.order["undefined"].eq(NO_PAIR).all()
    assert analysis.leads["undefined"].eq(NO_PAIR).all()
    assert analysis.order["band"].eq(0).all()
    assert FID not in analysis.specs
