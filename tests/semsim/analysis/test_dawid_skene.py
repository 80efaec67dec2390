import numpy as np
import pytest

from semsim.analysis.dawid_skene import dawid_skene


def made(n=4000, seed=0):
    """Votes of annotators with known rates, and the truth."""
    draw = np.random.default_rng(seed)
    sensitivity, specificity = np.array([0.95, 0.8, 0.6, 0.7]), np.array([0.9, 0.85, 0.9, 0.55])
    truth = draw.random(n) < 0.7
    rate = np.where(truth[:, None], sensitivity, 1 - specificity)
    return (draw.random(rate.shape) < rate).astype(float), truth, sensitivity, specificity


def test_the_rates_that_made_the_votes_are_found():
    votes, truth, sensitivity, specificity = made()
    found = dawid_skene(votes)
    assert found.undefined is None
    # 4,000 images and an imperfect posterior: two standard errors are about 0.05
    np.testing.assert_allclose(found.sensitivity, sensitivity, atol=0.05)
    np.testing.assert_allclose(found.specificity, specificity, atol=0.05)
    assert found.prevalence == pytest.approx(0.7, abs=0.03)
    majority = votes.mean(axis=1) > 0.5
    assert ((found.posterior > 0.5) == truth).mean() > (majority == truth).mean()


def test_a_step_more_changes_nothing():
    """The end is a fixed point of expectation and maximisation, computed here by a plain loop."""
    votes, *_ = made(n=60)
    votes[::7, 1] = np.nan
    found = dawid_skene(votes)
    truth = found.posterior
    expected = []
    for row in votes:
        yes, no = truth.mean(), 1 - truth.mean()
        for a, said in enumerate(row):
            if np.isnan(said):
                continue
            cast = ~np.isnan(votes[:, a])
            right = truth[cast] @ votes[cast, a] / truth[cast].sum()
            wrong = (1 - truth[cast]) @ votes[cast, a] / (1 - truth[cast]).sum()
            yes *= right if said else 1 - right
            no *= wrong if said else 1 - wrong
        expected.append(yes / (yes + no))
    np.testing.assert_allclose(truth, expected, atol=1e-6)


def test_it_needs_no_luck():
    votes, *_ = made(n=50)
    first, again = dawid_skene(votes), dawid_skene(votes)
    np.testing.assert_array_equal(first.posterior, again.posterior)


def test_an_image_nobody_voted_on_has_no_posterior_and_changes_nothing():
    votes, *_ = made(n=50)
    more = dawid_skene(np.vstack([votes, np.full((1, 4), np.nan)]))
    assert np.isnan(more.posterior[-1])
    np.testing.assert_allclose(more.posterior[:-1], dawid_skene(votes).posterior)


def test_a_single_annotator_is_believed():
    np.testing.assert_allclose(dawid_skene(np.array([[1.0], [0.0]])).posterior, [1, 0], atol=1e-6)


@pytest.mark.parametrize(
    ("votes", "why"),
    [
        (np.full((3, 2), np.nan), "Dawid-Skene: there are no votes"),
        (np.empty((3, 0)), "Dawid-Skene: there are no votes"),
        (np.ones((3, 2)), "Dawid-Skene: every vote says the same"),
        (np.zeros((3, 2)), "Dawid-Skene: every vote says the same"),
    ],
)
def test_undefined_with_a_reason(votes, why):
    found = dawid_skene(votes)
    assert found.undefined == why
    assert np.isnan(found.posterior).all()
