"""Dawid-Skene: it finds what made the votes, and says where it cannot; loops are in oracles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_ballots import CLASSES, ballots, random_votes, table, vote, votes_of

from annotation.votes.dawid_skene import full, one_coin

MODELS = (one_coin, full)


def made(seed=0, items=400, skills=(0.95, 0.8, 0.6, 0.4)):
    """Annotators who are right as often as their skill says, and err evenly."""
    draw = np.random.default_rng(seed)
    rows = []
    for number in range(items):
        truth = str(draw.choice(CLASSES))
        wrong = [name for name in CLASSES if name != truth]
        for who, skill in enumerate(skills):
            said = truth if draw.random() < skill else str(draw.choice(wrong))
            rows.append(vote(f"m/{number:04}", f"p{who}", said, truth=truth))
    return ballots(table(rows), bootstraps=1)


@pytest.mark.parametrize("fit", MODELS)
def test_it_finds_the_skills_that_made_the_votes(fit):
    """400 items: a skill is known to about two points, so five are ample."""
    assert fit(made()).reliability == pytest.approx([0.95, 0.8, 0.6, 0.4], abs=0.05)


def test_it_beats_the_most_frequent_answer():
    found = made(skills=(0.95, 0.45, 0.45, 0.45, 0.45))
    truth = found.votes["class_name"].iloc[found.first].to_numpy()
    labels = one_coin(found).labels()
    counts = np.zeros((len(truth), len(CLASSES)))
    np.add.at(counts, (found.item, np.searchsorted(CLASSES, found.votes["answer"])), 1)
    plurality = np.array(CLASSES)[counts.argmax(axis=1)]
    assert (labels == truth).mean() > (plurality == truth).mean() + 0.1


@pytest.mark.parametrize("fit", MODELS)
def test_unanimous_votes_stand(fit):
    found = ballots(votes_of({f"m/{n}": mark * 3 for n, mark in enumerate("bcdnbcdn")}))
    model = fit(found)
    assert [label[0] for label in model.labels()] == list("bcdnbcdn")
    assert model.reliability == pytest.approx(1)


@pytest.mark.parametrize("fit", MODELS)
def test_what_cannot_be_told_apart_has_no_label(fit):
    """One annotator always says cat, the other dog: nothing speaks for either."""
    labels = fit(ballots(votes_of({f"m/{n}": "cd" for n in range(6)}))).labels()
    assert labels.isna().all()


@pytest.mark.parametrize("fit", MODELS)
@pytest.mark.parametrize(
    ("answers", "words"), [({}, "no votes"), ({"m/1": "cc", "m/2": "c"}, "says the same")]
)
def test_what_is_undefined_is_explained(fit, answers, words):
    model = fit(ballots(votes_of(answers)))
    assert words in model.reason
    assert np.isnan(model.posterior).all()
    assert np.isnan(model.reliability).all()
    assert model.labels().isna().all()


@pytest.mark.parametrize("fit", MODELS)
@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1))
def test_order_does_not_matter(fit, seed):
    votes = random_votes(originals=8, missing=0.2)
    one = fit(ballots(votes, bootstraps=1))
    other = fit(ballots(votes.sample(frac=1, random_state=seed), bootstraps=1))
    assert (one.posterior == other.posterior).all()
