"""Dawid and Skene beside the majority; what is not settled is counted."""

import numpy as np
import pytest
from made_ballots import ballots, random_votes, table, vote, votes_of

from annotation.spec import Task
from annotation.tasks import KINDS
from annotation.votes import reliability as module
from annotation.votes.aggregate import summary_table
from annotation.votes.reliability import (
    DISAGREEMENT_COLUMNS,
    RELIABILITY_COLUMNS,
    model_of,
    open_questions,
    reliability,
)

BOTH = pytest.mark.parametrize("even", [True, False], ids=["one coin", "full"])


def found(votes, task=Task.RECOGNITION, k=5):
    made = ballots(votes, bootstraps=5)
    return reliability(made, summary_table(made, k), KINDS[task]())


def test_people_are_as_reliable_as_the_models_say():
    votes = random_votes()
    shown = found(votes)
    made = ballots(votes, bootstraps=5)
    assert list(shown.people.columns) == list(RELIABILITY_COLUMNS)
    for column, even in (("one_coin", True), ("full", False)):
        model = model_of(made, even=even)
        assert shown.people[column].tolist() == pytest.approx(model.reliability)
    assert shown.people["n_votes"].tolist() == [60] * 5
    assert shown.n_compared == 60
    assert not shown.reasons


def test_two_who_are_always_right_outweigh_three_who_guess():
    draw = np.random.default_rng(3)
    classes = ("bear", "cat", "cow", "dog")
    rows = []
    for number in range(60):
        truth = classes[number % 4]
        for who in range(5):
            said = truth if who < 2 else str(draw.choice(classes))
            rows.append(vote(f"m/{number:02}", f"p{who}", said, truth=truth))
    shown = found(table(rows))
    assert shown.people["one_coin"].idxmin() >= 2
    assert (shown.people["one_coin"][:2] > 0.95).all()
    assert list(shown.disagreements.columns) == list(DISAGREEMENT_COLUMNS)
    assert len(shown.disagreements) > 5
    # All are recognised by the two, and too few of the three for a majority.
    assert not shown.disagreements["majority"].any()
    assert (shown.disagreements["one_coin"] == shown.disagreements["class_name"]).all()
    assert shown.disagreements["posterior"].is_monotonic_decreasing


def test_in_pairs_the_truth_is_same():
    answers = {"same": "same", "different": "different"}
    rows = [
        vote(f"m/{n}", f"p{who}", answers["same" if (n + (who == 2)) % 2 else "different"])
        for n in range(20)
        for who in range(3)
    ]
    shown = found(table(rows), Task.PAIR, k=3)
    assert shown.n_compared == 20
    assert len(shown.disagreements) == 0


def test_what_cannot_be_said_is_explained():
    assert "no votes" in found(votes_of({})).reasons["one coin"]
    shown = found(votes_of({"m/1": "ccc", "m/2": "ccc"}), k=3)
    assert shown.reasons["full"] == "all votes are equal"
    assert (shown.n_compared, len(shown.disagreements)) == (0, 0)
    assert shown.people["one_coin"].isna().all()


def test_open_questions_are_counted_by_their_reason():
    votes = votes_of({"m/1": "cd", "m/2": "ccdd", "m/3": "cccdd", "m/4": "ccd", "m/5": "ccc"})
    made = ballots(votes, bootstraps=5)
    counts = open_questions(summary_table(made, 4), 4)
    # 1 and 4 lack votes, 2 is split two to two, 3 has a fifth vote, 5 is decided already.
    assert counts == {"unnamed": 0, "too_few": 2, "split": 1, "extra": 1, "answer_tie": 2}


def test_items_whose_original_has_no_name_are_counted_as_such():
    votes = votes_of({"m/1": "cccc", "m/2": "cd", "m/3": "ccdd"})
    names = votes["image_id"].map({"3": "cat"})
    by_names = votes.assign(headline="as-original-named", original_answer=names)
    counts = open_questions(summary_table(ballots(by_names, bootstraps=5), 4), 4)
    assert (counts["unnamed"], counts["too_few"], counts["split"]) == (2, 0, 1)


def test_the_one_coin_model_is_compared_with_the_name_of_the_original_where_that_decides():
    votes = votes_of({"m/1": "ddd", "m/2": "ddd", "m/3": "ccc", "m/4": "ccc"})
    by_names = votes.assign(headline="as-original-named", original_answer=votes["answer"])
    shown = found(by_names, k=3)
    assert shown.n_compared == 4
    assert len(shown.disagreements) == 0


def test_a_full_model_that_is_too_large_is_left_out_and_said_so(monkeypatch):
    monkeypatch.setattr(module, "MOST_CELLS", 100)
    shown = found(random_votes())
    assert "60 items by 5 answers" in shown.reasons["full"]
    assert shown.people["full"].isna().all()
    assert shown.people["one_coin"].notna().all()


@BOTH
def test_unanimous_votes_stand(even):
    found = ballots(votes_of({f"m/{n}": mark * 3 for n, mark in enumerate("bcdnbcdn")}))
    model = model_of(found, even=even)
    assert [label[0] for label in model.labels()] == list("bcdnbcdn")
    assert model.reliability == pytest.approx(1)


@BOTH
def test_what_cannot_be_told_apart_has_no_label(even):
    """One annotator always says cat, the other dog: nothing speaks for either."""
    found = ballots(votes_of({f"m/{n}": "cd" for n in range(6)}))
    assert model_of(found, even=even).labels().isna().all()


@BOTH
@pytest.mark.parametrize(
    ("answers", "words"), [({}, "no votes yet"), ({"m/1": "cc", "m/2": "c"}, "votes are equal")]
)
def test_what_is_undefined_is_explained(even, answers, words):
    model = model_of(ballots(votes_of(answers)), even=even)
    assert words in model.reason
    assert np.isnan(model.posterior).all()
    assert np.isnan(model.reliability).all()
    assert model.labels().isna().all()


def test_the_posterior_is_what_it_always_was():
    marks = ("bbc", "bcc", "ddd", "bbb", "cdc", "dbd", "bcb", "cc-")
    found = ballots(votes_of({f"m/{n}": said for n, said in enumerate(marks)}), bootstraps=1)
    coin, matrices = (model_of(found, even=even) for even in (True, False))
    before = [0.999995818279, 0.999984666993, 5.57543e-07, 0.999999721224]
    before += [1.115083e-06, 2.230196e-06, 0.999999163662, 2.787714e-06]
    np.testing.assert_allclose(coin.posterior[:, 0], before, atol=1e-9)
    before = [0, 9.179979e-06, 0, 0, 1, 0, 0, 0.999999998]
    np.testing.assert_allclose(matrices.posterior[:, 1], before, atol=2e-9)
