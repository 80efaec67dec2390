"""Binary votes, then the majority; oracle: count by hand, vote by vote."""

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.votes.aggregate import labels
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


@given(st.lists(st.lists(st.booleans(), max_size=5), min_size=1, max_size=6), st.just(5))
def test_labels_are_those_counted_by_hand(answers, k):
    names = [f"item{i}" for i in range(len(answers))]
    rows = [
        (name, "counted", answer)
        for name, of_item in zip(names, answers, strict=True)
        for answer in of_item
    ]
    table = labels(items(names), votes(rows), votes_per_item=k)
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
                   voter="jury")  # fmt: skip
    assert table[["n_votes", "n_recognised"]].iloc[0].tolist() == [1, 1]
    assert bool(table["recognisable"][0]) is True
    assert table["simulated"].tolist() == [True]


@pytest.mark.parametrize("names", [[], ["a", "b"]])
def test_types_do_not_depend_on_there_being_votes(names):
    none = votes([]).astype({"recognised": "bool"})
    table = labels(items(names), none, votes_per_item=5)
    assert list(table.columns) == list(LABEL_COLUMNS)
    types = {column: str(kind) for column, kind in table.dtypes.items()}
    assert types["recognisable"] == "boolean"
    assert types["mean_response"] == "float64"
    assert types["n_votes"] == types["n_recognised"] == types["votes_per_item"] == "int64"
    assert types["simulated"] == "bool"
    assert table["recognisable"].isna().all()
