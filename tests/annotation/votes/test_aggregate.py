"""Binary votes, then the majority; oracle: count by hand, vote by vote."""

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.votes.aggregate import labels, majority
from semsim.base.columns import ITEM_COLUMNS, LABEL_COLUMNS


def by_hand(answers: list[bool], k: int) -> object:
    """True or False as soon as whatever comes next cannot change it, None before and on a tie."""
    rest = k - len(answers)
    yes, no = sum(answers), len(answers) - sum(answers)
    if yes > no + rest:
        return True
    if no > yes + rest:
        return False
    return None


def items(names):
    return pd.DataFrame(dict.fromkeys(ITEM_COLUMNS, names), dtype="str")


def votes(rows):
    return pd.DataFrame(rows, columns=["item", "status", "recognised"])


@pytest.mark.parametrize(
    ("yes", "no", "k", "verdict"),
    [
        (3, 2, 5, True), (2, 3, 5, False), (3, 0, 5, True), (0, 3, 5, False), (2, 2, 5, None),
        (0, 0, 5, None), (2, 2, 4, None), (3, 1, 4, True), (1, 3, 4, False), (1, 0, 1, True),
        (0, 1, 1, False), (1, 1, 2, None), (2, 0, 2, True), (1, 0, 2, None),
        (3, 3, 5, None), (4, 2, 5, True), (2, 4, 5, False), (2, 2, 3, None),
    ],
)  # fmt: skip
def test_majority(yes, no, k, verdict):
    got = majority(pd.Series([yes]), pd.Series([yes + no]), k)
    assert got.dtype == "boolean"
    assert (None if got.isna()[0] else bool(got[0])) == verdict


@given(st.lists(st.lists(st.booleans(), max_size=5), min_size=1, max_size=6), st.just(5))
def test_labels_are_those_counted_by_hand(answers, k):
    names = [f"item{i}" for i in range(len(answers))]
    rows = [
        (name, "counted", answer)
        for name, of_item in zip(names, answers, strict=True)
        for answer in of_item
    ]
    table = labels(items(names), votes(rows), votes_per_item=k, simulated=False)
    for of_item, row in zip(answers, table.itertuples(), strict=True):
        assert (row.n_votes, row.n_recognised) == (len(of_item), sum(of_item))
        verdict = None if row.recognisable is pd.NA else bool(row.recognisable)
        assert verdict is by_hand(of_item, k)
        if of_item:
            assert row.mean_response == pytest.approx(sum(of_item) / len(of_item))
        else:
            assert math.isnan(row.mean_response)


def test_only_counted_votes_of_listed_items_matter():
    rows = [("a", "counted", True), ("a", "superseded", False), ("a", "surplus", False)]
    table = labels(items(["a"]), votes([*rows, ("decoy", "counted", True)]), votes_per_item=1,
                   simulated=True)  # fmt: skip
    assert table[["n_votes", "n_recognised"]].iloc[0].tolist() == [1, 1]
    assert bool(table["recognisable"][0]) is True
    assert table["simulated"].tolist() == [True]


@pytest.mark.parametrize("names", [[], ["a", "b"]])
def test_types_do_not_depend_on_there_being_votes(names):
    none = votes([]).astype({"recognised": "bool"})
    table = labels(items(names), none, votes_per_item=5, simulated=False)
    assert list(table.columns) == list(LABEL_COLUMNS)
    types = {column: str(kind) for column, kind in table.dtypes.items()}
    assert types["recognisable"] == "boolean"
    assert types["mean_response"] == "float64"
    assert types["n_votes"] == types["n_recognised"] == types["votes_per_item"] == "int64"
    assert types["simulated"] == "bool"
    assert table["recognisable"].isna().all()
