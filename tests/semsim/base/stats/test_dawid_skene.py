"""Dawid and Skene: what made the votes is found, and where there is nothing to find it is said."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semsim.base.stats.dawid_skene import dawid_skene

BOTH = pytest.mark.parametrize("even", [True, False], ids=["one coin", "full"])


def votes_of(answers):
    """Item, annotator and answer of each vote in (R, A), NaN where there is none."""
    item, annotator = np.nonzero(~np.isnan(answers))
    return item, annotator, answers[item, annotator].astype(int)


def made(n=4000, seed=0):
    """Votes of annotators who recognise with known rates, and the truth."""
    draw = np.random.default_rng(seed)
    sensitivity, specificity = np.array([0.95, 0.8, 0.6, 0.7]), np.array([0.9, 0.85, 0.9, 0.55])
    truth = draw.random(n) < 0.7
    rate = np.where(truth[:, None], sensitivity, 1 - specificity)
    return (draw.random(rate.shape) < rate).astype(float), truth, sensitivity, specificity


def skilled(skills=(0.95, 0.8, 0.6, 0.4), n=400, k=4, seed=0):
    """Votes of annotators who are right as often as their skill says and err evenly; the truth."""
    draw = np.random.default_rng(seed)
    truth = draw.integers(k, size=n)
    right = draw.random((n, len(skills))) < skills
    wrong = (truth[:, None] + draw.integers(1, k, size=right.shape)) % k
    return np.where(right, truth[:, None], wrong).astype(float), truth


def test_the_rates_that_made_the_votes_are_found():
    votes, truth, sensitivity, specificity = made()
    posterior, why = dawid_skene(*votes_of(votes))
    assert why == ""
    shown = posterior[:, 1]
    # 4,000 images and an imperfect posterior: two standard errors are about 0.05
    np.testing.assert_allclose(shown @ votes / shown.sum(), sensitivity, atol=0.05)
    np.testing.assert_allclose(
        (1 - shown) @ (1 - votes) / (1 - shown).sum(), specificity, atol=0.05
    )
    assert shown.mean() == pytest.approx(0.7, abs=0.03)
    majority = votes.mean(axis=1) > 0.5
    assert ((shown > 0.5) == truth).mean() > (majority == truth).mean()


@BOTH
def test_one_annotator_is_not_told_from_the_truth(even):
    item = np.arange(5)
    posterior, why = dawid_skene(item, np.zeros(5, int), item % 2, even=even)
    assert why == "one annotator alone: there is nobody to tell their errors by"
    assert posterior.shape == (5, 2)
    assert np.isnan(posterior).all()


@BOTH
def test_the_skills_that_made_the_votes_are_found(even):
    """400 items: a skill is known to about two points, so five are ample."""
    votes, _ = skilled()
    item, annotator, answer = votes_of(votes)
    posterior, _ = dawid_skene(item, annotator, answer, even=even)
    skill = np.bincount(annotator, posterior[item, answer]) / np.bincount(annotator)
    assert skill == pytest.approx([0.95, 0.8, 0.6, 0.4], abs=0.05)


def test_it_beats_the_most_frequent_answer():
    votes, truth = skilled(skills=(0.95, 0.45, 0.45, 0.45, 0.45))
    posterior, _ = dawid_skene(*votes_of(votes), even=True)
    plurality = np.array([np.bincount(row.astype(int), minlength=4).argmax() for row in votes])
    assert (posterior.argmax(axis=1) == truth).mean() > (plurality == truth).mean() + 0.1


def test_a_step_more_changes_nothing():
    """The end is a fixed point of expectation and maximisation, computed here by a plain loop."""
    votes, *_ = made(n=60)
    votes[::7, 1] = np.nan
    truth = dawid_skene(*votes_of(votes))[0][:, 1]
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


@BOTH
@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_order_of_votes_does_not_matter(even, seed):
    votes = votes_of(skilled(n=20)[0])
    order = np.random.default_rng(seed).permutation(len(votes[0]))
    one, _ = dawid_skene(*votes, even=even)
    other, _ = dawid_skene(*(column[order] for column in votes), even=even)
    np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize(
    ("votes", "why"),
    [
        (np.full((3, 2), np.nan), "there are no votes"),
        (np.ones((3, 2)), "all votes are equal"),
        (np.zeros((3, 2)), "all votes are equal"),
    ],
)
def test_undefined_with_a_reason(votes, why):
    posterior, said = dawid_skene(*votes_of(votes))
    assert said == why
    assert np.isnan(posterior).all()


def test_what_does_not_settle_is_said_to_be_so():
    posterior, why = dawid_skene(*votes_of(made(n=50)[0]), most_steps=2)
    assert why == "it did not settle within 2 steps"
    assert np.isnan(posterior).all()


def test_the_posterior_is_what_it_always_was():
    rows = ("1110", "1101", "0010", "1000", "11-1", "0001", "10-1", "0100")
    votes = np.array([[float(mark) if mark != "-" else np.nan for mark in row] for row in rows])
    before = [0.736743558998, 0.90134962376, 2.23e-10, 0.213994873832]
    before += [0.913430675658, 7.27e-10, 0.607585286278, 1.006e-09]
    np.testing.assert_allclose(dawid_skene(*votes_of(votes))[0][:, 1], before, atol=1e-9)
