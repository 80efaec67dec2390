"""Which votes count, and the weights all statistics share."""

import numpy as np
import pytest
from made_ballots import ballots, random_votes, table, vote

from annotation.votes.aggregate import few
from semsim.base.stats.intervals import too_few
from semsim.base.stats.votes import ratio


def test_only_counted_votes_on_the_kinds_asked_for_are_in():
    rows = [
        vote("a", "p", "cat"),
        vote("b", "p", "cat", status="superseded"),
        vote("c", "p", "cat", status="surplus"),
        vote("d", "p", "same", kind="decoy"),
    ]
    assert ballots(table(rows)).votes["item"].tolist() == ["a"]
    both = ballots(table(rows), kinds=("reconstruction", "decoy"))
    assert both.votes["item"].tolist() == ["a", "d"]


def test_arrays_describe_the_rows():
    found = ballots(random_votes(missing=0.3))
    items = found.votes["item"].iloc[found.first].to_numpy()
    assert (items[found.item] == found.votes["item"]).all()
    names = np.array(found.annotators)
    assert (names[found.annotator] == found.votes["annotator"]).all()
    together = found.votes.groupby(found.original)["image_id"].nunique()
    assert (together == 1).all()
    originals = found.votes["image_id"].nunique()
    assert found.weights.shape == (1 + originals, originals)
    assert found.drawn.shape == (1000, originals)


def test_resamples_draw_as_many_originals_as_there_are_and_follow_the_seed():
    found = ballots(random_votes())
    assert (found.drawn.sum(axis=1) == 20).all()
    assert (ballots(random_votes(), seed=0).drawn == found.drawn).all()
    assert (ballots(random_votes(), seed=1).drawn != found.drawn).any()


@pytest.mark.parametrize("originals", [0, 1, 5])
def test_few_originals_have_no_resamples(originals):
    assert ballots(random_votes(originals=originals)).drawn.shape == (0, originals)
    assert few(np.array([originals, 6])).tolist() == [too_few(originals), ""]


def test_nothing_divided_by_nothing_is_not_known():
    assert np.isnan(ratio(np.array([1.0]), np.array([0.0]))).all()
    assert ratio(np.array([1.0]), np.array([4])) == [0.25]
