"""Bands of models look by look: when they stand still, and which rule is met when."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.claims import kept
from semsim.base.stats.pairwise_accuracy import bands, differences, lead_p, sign_flips
from semsim.base.stats.standstill import REPLAYED, STEP, Standstill, evidence, model_leads, watched


def votes_of(rates, originals=60, each=5, seed=0):
    """Model, original and answer of votes in random order."""
    draw = np.random.default_rng(seed)
    model, original, _ = (x.ravel() for x in np.indices((len(rates), originals, each)))
    order = draw.permutation(len(model))
    said = (draw.random(len(model)) < np.asarray(rates)[model]).astype(float)
    return model[order], original[order], said[order]


def seen(*found):
    return Standstill(votes=np.arange(1, len(found) + 1) * 10, bands=np.array(found))


def test_quiet_looks_are_counted_anew_after_each_change():
    watch = seen([2, 1], [2, 1], [1, 2], [1, 2], [1, 2])
    assert watch.quiet.tolist() == [0, 1, 0, 1, 2]
    assert watch.since == 30


def test_votes_that_part_no_models_do_not_stand_still():
    assert seen([1, 1], [1, 1], [1, 2], [1, 2]).quiet.tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize(("looks", "votes"), [(1, 20), (2, 50), (3, None), (0, None)])
def test_a_rule_is_met_at_its_first_row_of_quiet_looks(looks, votes):
    assert seen([2, 1], [2, 1], [1, 2], [1, 2], [1, 2]).met(looks) == votes


def test_without_a_look_nothing_is_known():
    watch = watched(*votes_of([0.5, 0.5], originals=1, each=1), 100)
    assert (len(watch.votes), watch.since, watch.met(1)) == (0, None, None)


def test_models_far_apart_are_parted_and_stand_still():
    votes = votes_of([0.9, 0.5, 0.5, 0.1])
    watch = watched(*votes, len(votes[0]))
    assert watch.votes.tolist() == [60 * i for i in range(1, 21)]
    assert watch.bands[-1].tolist() == [1, 2, 2, 4]
    assert watch.met(5) <= len(votes[0]) / 2


def test_looks_are_as_many_whatever_the_number_of_votes():
    votes = votes_of([0.9, 0.1], originals=9)  # 90 votes: a look each 4.5
    watch = watched(*votes, 90)
    assert watch.votes.tolist() == [int(np.ceil(4.5 * i)) for i in range(1, 21)]
    assert len(watched(*(x[:45] for x in votes), 90).votes) == round(0.5 / STEP)


def test_each_look_knows_the_votes_before_it_alone():
    votes = votes_of([0.7, 0.6, 0.3])
    whole, half = (watched(*(x[:n] for x in votes), 900) for n in (900, 450))
    np.testing.assert_array_equal(whole.bands[:10], half.bands)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1))
def test_leads_are_those_of_flipped_signs(seed):
    """The normal approximation beside the test that Compare shows: 40 originals, 2,000 flips."""
    draw = np.random.default_rng(seed)
    shares = draw.integers(0, 6, (3, 40)) / 5
    rates, p = model_leads(shares)
    np.testing.assert_allclose(rates, shares.mean(axis=1))
    flipped = lead_p(differences(shares), sign_flips(40, 2000, draw))
    np.testing.assert_allclose(p[np.triu_indices(3, 1)], flipped, atol=0.06)
    np.testing.assert_allclose(p + p.T, 1)


@pytest.mark.parametrize("looks", REPLAYED)
def test_what_a_rule_has_saved_is_what_was_measured(looks):
    found = kept("stopping")
    measured = [found[f"stopping.{looks}.{name}"].value for name in ("met", "final", "saved")]
    assert REPLAYED[looks] == tuple(round(one, 3) for one in measured)
    assert found["stopping.hindsight"].value < 0.95  # which the sentence claims of all rules
    early, final, saved = (f"{one:.0%}" for one in REPLAYED[looks])
    told = evidence(looks)
    assert f"in {early} of the orders and saved {saved} of the votes" in told
    assert f"In {final} of the orders that ended early" in told


def test_the_evidence_is_of_no_more_quiet_looks_than_the_rule_has():
    assert evidence(5) == evidence(4) == evidence(0)
    assert evidence(20) == evidence(8)


def test_a_model_without_a_vote_has_no_band():
    rates, p = model_leads(np.array([[1.0, 1.0], [np.nan, np.nan]]))
    assert bands(rates, p).tolist() == [1, 0]
