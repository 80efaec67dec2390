"""Rates and ranks of models, and what is taken for what."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_ballots import ballots, random_votes, table, vote, votes_of
from scipy import stats

from annotation.spec import Task
from annotation.tasks import KINDS
from annotation.tasks.pair import Pair
from annotation.tasks.recognition import Recognition
from annotation.votes.aggregate import ballots_of
from annotation.votes.rates import (
    RATE_COLUMNS,
    confusion_table,
    likely_confusions,
    rank_rows,
    rate_table,
)
from semsim.base.stats.evidence import model_names
from semsim.base.stats.intervals import too_few


def rates_of(votes, k=3, **more):
    return rate_table(ballots(votes, **more), k).set_index("model")


def test_rates_by_hand():
    found = rates_of(
        votes_of({"a/1": "ccd", "a/2": "ccc", "a/3": "ddd", "a/4": "c--", "b/1": "cdd"})
    )
    assert found.index.tolist() == ["a", "b"]
    assert found["n_items"].tolist() == [4, 1]
    assert found["n_decided"].tolist() == [3, 1]
    assert found["rate"].tolist() == pytest.approx([2 / 3, 0])
    assert found["mean_response"].tolist() == pytest.approx([(2 / 3 + 1 + 0 + 1) / 4, 1 / 3])
    assert found["rank"].tolist() == [1, 2]


def test_a_model_without_a_decision_has_no_rate_and_no_rank():
    found = rates_of(votes_of({"a/1": "ccc", "a/2": "ddd", "b/1": "c--", "b/2": "cd-"}))
    row = found.loc["b"]
    assert np.isnan([row["rate"], row["rate_low"], row["rank"], row["rank_low"]]).all()
    assert row["reason"] == "no item is decided yet"
    assert row["mean_response"] == pytest.approx(0.75)
    assert found.loc["a", "rank"] == 1


@pytest.mark.parametrize("originals", [1, 5])
def test_few_originals_have_no_interval(originals):
    votes = {f"{m}/{n}": 3 * mark for m, mark in ("ac", "bd") for n in range(originals)}
    row = rates_of(votes_of(votes)).loc["a"]
    assert (row["rate"], row["rank"]) == (1, 1)
    assert np.isnan([row["rate_low"], row["rate_high"], row["rank_low"], row["rank_high"]]).all()
    assert row["reason"] == too_few(originals)


@pytest.mark.parametrize(("marks", "count"), [("ddd", 0), ("ccc", 24)])
def test_rates_of_nothing_and_of_everything_are_not_certain(marks, count):
    """A rate of 0 of 24 is [0, 0.15]: no original can vary it, so each is a trial of Wilson's."""
    row = rates_of(votes_of({f"a/{n}": marks for n in range(24)})).loc["a"]
    t2 = stats.t.ppf(0.975, 23) ** 2
    expected = (0, t2 / (24 + t2)) if count == 0 else (24 / (24 + t2), 1)
    for rate in ("rate", "mean_response"):
        assert (row[f"{rate}_low"], row[f"{rate}_high"]) == pytest.approx(expected, abs=1e-9)


def test_a_certain_rate_counts_the_originals_it_is_of():
    """Two models of nine originals, but one of them was decided on six only."""
    other = {f"b/{n}": "ccc" if n < 6 else "cd-" for n in range(9)}
    found = rates_of(votes_of({**{f"a/{n}": "cdd" for n in range(9)}, **other}))
    nine, six = stats.t.ppf(0.975, 8) ** 2, stats.t.ppf(0.975, 5) ** 2
    ends = found[["rate_low", "rate_high"]]
    assert ends.loc["a"].tolist() == pytest.approx((0, nine / (9 + nine)))
    assert ends.loc["b"].tolist() == pytest.approx((6 / (6 + six), 1))
    shares = found.loc["a", ["mean_response_low", "mean_response_high"]].tolist()
    assert 0.05 < shares[0] < 1 / 3 < shares[1] < 0.8  # every original has a share of one third


def test_without_votes_there_are_only_columns():
    assert list(rate_table(ballots(votes_of({})), 5).columns) == list(RATE_COLUMNS)


def test_clear_ranks_are_certain_and_close_ones_are_not():
    votes = random_votes(models=3, originals=60, right=(0.95, 0.05))
    clear = rates_of(votes, k=5)
    assert (clear["rank_low"] == clear["rank"]).all()
    assert (clear["rank_high"] == clear["rank"]).all()
    close = rates_of(random_votes(models=3, originals=60, right=(0.5, 0.5)), k=5)
    assert (close["rank_high"] - close["rank_low"]).max() >= 1


def test_the_interval_of_independent_items_is_that_of_a_proportion():
    """One model, one item an original: its width is the binomial one, within 10%."""
    votes = random_votes(models=1, originals=400, annotators=1, right=(0.6, 0.6))
    row = rates_of(votes, k=1).iloc[0]
    width = 2 * 1.96 * np.sqrt(row["rate"] * (1 - row["rate"]) / 400)
    assert row["rate_high"] - row["rate_low"] == pytest.approx(width, rel=0.1)


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1))
def test_order_does_not_matter(seed):
    votes = random_votes(missing=0.2)
    mixed = votes.sample(frac=1, random_state=seed)
    assert rates_of(votes, bootstraps=30).equals(rates_of(mixed, bootstraps=30))


def test_ranks_share_ties_and_skip_what_has_no_rate():
    rates = np.array([[0.5, 0.9, np.nan, 0.5], [0.1, np.nan, 0.2, 0.3], [0.1, 0.2, 0.3, 0.4]])
    expected = [[2.5, 1, np.nan, 2.5], [np.nan] * 4, [3, 2, np.nan, 1]]
    np.testing.assert_array_equal(rank_rows(rates), expected)


def test_models_are_named_with_their_attack_where_there_are_several():
    one, other = vote("a/1", "p", "cat"), vote("a/2", "p", "cat", attack="dlg")
    assert model_names(table([one])).tolist() == ["a"]
    assert model_names(table([one, other])).tolist() == ["a · a", "a · dlg"]


def test_confusions_count_votes_by_truth_and_answer():
    votes = table(
        [
            *[vote(f"{n}", "p", "dog", truth="cat") for n in range(3)],
            *[vote(f"{n}", "q", "none", truth="cat") for n in range(3)],
            vote("3", "p", "cat", truth="dog"),
            vote("4", "p", "dog", truth="dog"),
        ]
    )
    counts = confusion_table(ballots(votes), Recognition())
    assert list(counts.columns) == ["cat", "dog", "none"]
    assert counts.loc["cat"].tolist() == [0, 3, 3]
    assert counts.loc["dog"].tolist() == [1, 1, 0]
    found = likely_confusions(counts)
    assert found.to_numpy().tolist() == [["cat", "dog", 3, 0.5], ["dog", "cat", 1, 0.5]]
    assert len(likely_confusions(counts, most=1)) == 1


def test_pairs_are_counted_by_what_was_shown():
    votes = table(
        [
            vote("1", "p", "same"),
            vote("2", "p", "different"),
            vote("3", "p", "different", kind="decoy"),
        ]
    )
    found = ballots(votes, kinds=("reconstruction", "decoy"))
    counts = confusion_table(found, Pair())
    assert counts.loc["decoy"].to_dict() == {"different": 1, "same": 0}
    assert counts.loc["reconstruction"].to_dict() == {"different": 1, "same": 1}


@pytest.mark.parametrize("task", list(Task))
def test_without_votes_nothing_is_confused(task):
    assert confusion_table(ballots(votes_of({})), KINDS[task]()).empty


def test_a_model_of_two_data_sets_is_two_models_and_each_is_resampled_by_itself():
    of_cars = votes_of({f"m/{i}": "ccc" for i in range(6)}, dataset="cars")
    of_faces = votes_of({f"m/{i}": "nnn" for i in range(6)}, dataset="faces")
    of_faces = of_faces.assign(item="f" + of_faces["item"])
    made = ballots_of(pd.concat([of_cars, of_faces]), np.random.default_rng(0), bootstraps=50)
    assert (made.drawn.reshape(50, 2, 6).sum(axis=2) == 6).all()
    found = rate_table(made, 3).set_index("model")
    assert found["rate"].to_dict() == {"m · cars": 1.0, "m · faces": 0.0}
