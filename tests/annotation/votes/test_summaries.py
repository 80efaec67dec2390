"""What the votes on each item come to; oracle: count by hand, item by item."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_ballots import ballots, votes_of

from annotation.votes.aggregate import SUMMARY_COLUMNS, summary_table


def summaries(answers, k=5):
    return summary_table(ballots(votes_of(answers), bootstraps=1), k).set_index("item")


@given(st.lists(st.text("bcdn", min_size=1, max_size=5), min_size=1, max_size=8))
def test_summaries_are_those_counted_by_hand(marks):
    answers = {f"m/{number}": said for number, said in enumerate(marks)}
    found = summaries(answers)
    for item, said in answers.items():
        row, right = found.loc[item], said.count("c")
        ordered = Counter(said).most_common()
        tie = len(ordered) > 1 and ordered[0][1] == ordered[1][1]
        assert (row["n_votes"], row["n_recognised"]) == (len(said), right)
        assert row["mean_response"] == pytest.approx(right / len(said))
        assert row["n_plurality"] == ordered[0][1]
        assert row["tie"] == tie
        if not tie:
            assert row["plurality"][0] == ordered[0][0]
        else:
            assert row.isna()["plurality"]
        assert row["too_few_votes"] == (len(said) < 5)
        assert row["undecided"] == (max(right, len(said) - right) < 3)
        assert row.isna()["recognisable"] == row["undecided"]


def test_an_even_split_is_never_a_coin_flip():
    row = summaries({"m/1": "ccdd"}, k=4).loc["m/1"]
    assert (row["undecided"], row["tie"], row["too_few_votes"]) == (True, True, False)
    assert row["mean_response"] == 0.5


def test_the_columns_and_their_types_are_there_without_votes():
    found, some = (summary_table(ballots(votes_of(a)), 5) for a in ({}, {"m/1": "c"}))
    assert list(found.columns) == list(SUMMARY_COLUMNS)
    for column in ("n_votes", "n_recognised", "mean_response", "recognisable", "tie"):
        assert found[column].dtype == some[column].dtype
