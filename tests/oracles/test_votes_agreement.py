"""Statistics of votes against statsmodels, scikit-learn, krippendorff, and slow obvious loops."""

from itertools import combinations

import krippendorff
import numpy as np
import pytest
from made_ballots import CLASSES, ballots, random_votes, table, vote
from scipy import stats
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

from annotation.tasks.recognition import Recognition
from annotation.votes.agreement import Coding, agreement_table, codes, pair_table, pairs_of
from annotation.votes.annotators import annotator_table, mean_responses
from annotation.votes.rates import detection_table, rate_table
from annotation.votes.reliability import model_of
from semsim.base.stats.intervals import pairs_ends, share_ends

SEEDS = range(4)
CODINGS = list(Coding)


def matrix(found, coding):
    """(items, annotators) of categories, NaN for no vote."""
    answers = np.full((len(found.first), len(found.annotators)), np.nan)
    answers[found.item, found.annotator] = codes(found, coding)
    return answers


def statistics(found, coding):
    rows = agreement_table(found, [pairs_of(found, coding)])
    return rows.set_index("statistic")["value"]


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("seed", SEEDS)
def test_fleiss_equals_statsmodels(seed, coding):
    found = ballots(random_votes(seed), bootstraps=1)
    counts, _ = aggregate_raters(matrix(found, coding).astype(int))
    expected = fleiss_kappa(counts, method="fleiss")
    assert statistics(found, coding)["Fleiss' κ"] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("seed", SEEDS)
def test_alpha_equals_krippendorff(seed, missing, coding):
    found = ballots(random_votes(seed, missing=missing), bootstraps=1)
    expected = krippendorff.alpha(
        reliability_data=matrix(found, coding).T, level_of_measurement="nominal"
    )
    assert statistics(found, coding)["Krippendorff's α"] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_cohen_equals_scikit_learn(missing, coding):
    found = ballots(random_votes(missing=missing), bootstraps=1)
    answers, pairs = matrix(found, coding), pair_table(found, pairs_of(found, coding))
    kappas = []
    for row, (a, b) in zip(pairs.itertuples(), combinations(range(5), 2), strict=True):
        both = ~np.isnan(answers[:, [a, b]]).any(axis=1)
        kappas.append(cohen_kappa_score(answers[both, a], answers[both, b]))
        assert row.n_items == both.sum()
        assert row.value == pytest.approx(kappas[-1], abs=1e-12)
    assert statistics(found, coding)["mean Cohen's κ"] == pytest.approx(np.mean(kappas))


@pytest.mark.parametrize("seed", SEEDS)
def test_raw_agreement_equals_a_loop(seed):
    found = ballots(random_votes(seed, missing=0.4), bootstraps=1)
    shares = []
    for row in matrix(found, Coding.ANSWER):
        pairs = list(combinations(row[~np.isnan(row)], 2))
        shares += [np.mean([a == b for a, b in pairs])] if pairs else []
    assert statistics(found, Coding.ANSWER)["raw agreement"] == pytest.approx(np.mean(shares))


def test_errors_are_of_the_votes_without_each_original():
    """Weights must do what leaving out the votes of each original does."""
    votes = random_votes(originals=15)
    found = ballots(votes, bootstraps=1)
    numbers = []
    for without in (None, *votes["image_id"].unique()):
        rest = ballots(votes[votes["image_id"] != without], bootstraps=1)
        rates = rate_table(rest, 5).sort_values("model")
        shares = [*rates["rate"], *rates["mean_response"]]
        numbers.append([*statistics(rest, Coding.ANSWER), *shares])
    once, *others = np.array(numbers)
    spread = np.sqrt(14 / 15 * ((others - once) ** 2).sum(axis=0))
    rows = agreement_table(found, [pairs_of(found, Coding.ANSWER)])
    reach = stats.t.ppf(0.975, 14) * spread[1:4]  # Fleiss' κ, α and the mean of Cohen's
    np.testing.assert_allclose(rows["low"][1:], once[1:4] - reach, atol=1e-12)
    np.testing.assert_allclose(rows["high"][1:], once[1:4] + reach, atol=1e-12)
    rates = rate_table(found, 5).sort_values("model")
    low = [*rates["rate_low"], *rates["mean_response_low"]]
    high = [*rates["rate_high"], *rates["mean_response_high"]]
    np.testing.assert_allclose([low, high], share_ends(once[4:], spread[4:], 15), atol=1e-9)
    of_pairs = pairs_ends(once[:1], spread[:1], 15)
    np.testing.assert_allclose([rows["low"][:1], rows["high"][:1]], of_pairs, atol=1e-9)


@pytest.mark.parametrize("missing", [0.0, 0.6])
def test_annotators_equal_a_loop_over_votes(missing):
    votes = random_votes(3, missing=missing)
    found = ballots(votes, bootstraps=1)
    shown = annotator_table(found, Recognition(), pairs_of(found, Coding.RECOGNISED))

    def means(kept):
        of_item = kept.groupby(["model", "item"])["recognised"].mean()
        return of_item.groupby("model").mean()

    everybody, without = mean_responses(found)
    np.testing.assert_allclose(everybody, means(votes), atol=1e-12)
    for number, row in enumerate(shown.itertuples()):
        own = votes[votes["annotator"] == row.annotator].set_index("item")
        rest = votes[votes["annotator"] != row.annotator]
        np.testing.assert_allclose(without[number], means(rest), atol=1e-12)
        tau = stats.kendalltau(means(votes).round(12), means(rest).round(12)).statistic
        assert row.tau_without == pytest.approx(tau)
        share = rest.groupby("item")["recognised"].mean().reindex(own.index).dropna()
        verdict = share[share != 0.5] > 0.5
        assert row.n_compared == len(verdict)
        assert row.agreement == pytest.approx(
            (own["recognised"].reindex(verdict.index) == verdict).mean()
        )
        assert row.median_rt_ms == pytest.approx(np.median(own["rt_ms"]))
        assert row.none_rate == pytest.approx((own["answer"] == "none").mean())


def pair_votes(seed, originals=300, sensitivity=1.5, criterion=0.3):
    """One observer of equal variances: same, if what they see exceeds a threshold."""
    draw = np.random.default_rng(seed)
    rows = []
    for kind, mean in (("reconstruction", sensitivity / 2), ("decoy", -sensitivity / 2)):
        for original in range(originals):
            said = "same" if draw.normal(mean) > criterion else "different"
            rows.append(vote(f"{kind}/{original:03}", "p", said, kind=kind, model="m"))
    return table(rows)


def detected(votes, **more):
    found = ballots(votes, kinds=("reconstruction", "decoy"), **more)
    return detection_table(found).iloc[0]


def test_d_prime_finds_the_observer_that_made_the_votes():
    """From 20 made data sets; their mean is known about four times better than one."""
    found = [detected(pair_votes(seed), bootstraps=1) for seed in range(20)]
    assert np.mean([row["d_prime"] for row in found]) == pytest.approx(1.5, abs=0.08)
    assert np.mean([row["criterion"] for row in found]) == pytest.approx(0.3, abs=0.04)


def test_jackknife_and_variance_agree_where_both_hold():
    """Independent votes and middling rates: two ways to the same interval, within a fifth."""
    row = detected(pair_votes(0))
    hits, alarms = (row["hits"] + 0.5) / 301, (row["false_alarms"] + 0.5) / 301
    z = stats.norm.ppf([hits, alarms])
    variance = sum(
        rate * (1 - rate) / (300 * stats.norm.pdf(at) ** 2)
        for rate, at in zip((hits, alarms), z, strict=True)
    )
    width = 2 * 1.959964 * np.sqrt(variance)
    assert row["d_prime"] == pytest.approx(z[0] - z[1])
    assert row["criterion"] == pytest.approx(-z.mean())
    assert row["d_prime_high"] - row["d_prime_low"] == pytest.approx(width, rel=0.2)
    assert row["criterion_high"] - row["criterion_low"] == pytest.approx(width / 2, rel=0.2)


def slow_em(found, even, steps):
    """Dawid and Skene's steps vote by vote, (items, answers); `even` shares errors evenly."""
    answer = codes(found, Coding.ANSWER)
    k, people = answer.max() + 1, len(found.annotators)
    votes = list(zip(found.item, found.annotator, answer, strict=True))
    truth = np.zeros((len(found.first), k))
    for item, _, said in votes:
        truth[item, said] += 1
    truth /= truth.sum(axis=1, keepdims=True)
    for _ in range(steps):
        counts = np.zeros((people, k, k))  # truth, answer
        for item, who, said in votes:
            counts[who, :, said] += truth[item]
        errors = counts / counts.sum(axis=2, keepdims=True)
        if even:
            for who in range(people):
                right = np.trace(counts[who]) / counts[who].sum()
                errors[who] = (1 - right) / (k - 1)
                np.fill_diagonal(errors[who], right)
        truth = np.tile(truth.mean(axis=0), (len(truth), 1))
        for item, who, said in votes:
            truth[item] *= errors[who, :, said]
        truth /= truth.sum(axis=1, keepdims=True)
    return truth


@pytest.mark.parametrize("even", [True, False], ids=["one coin", "full"])
def test_dawid_skene_equals_a_loop_over_votes(even):
    found = ballots(random_votes(5, missing=0.2, right=(0.9, 0.7)), bootstraps=1)
    model = model_of(found, even=even)
    assert model.answers == (*CLASSES, "none")
    assert model.reason == ""
    np.testing.assert_allclose(model.posterior, slow_em(found, even, 400), atol=1e-4)
