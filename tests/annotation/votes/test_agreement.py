"""Agreement: values known by hand, reasons for missing ones, and what must not matter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_ballots import ballots, random_votes, table, vote, votes_of
from scipy import stats

from annotation.tasks.pair import Pair
from annotation.tasks.recognition import Recognition
from annotation.votes.agreement import (
    AGREEMENT_COLUMNS,
    FEWEST_SHARED,
    PAIR_COLUMNS,
    Coding,
    agreement_table,
    codes,
    codings_of,
    pair_table,
    pairs_of,
)
from semsim.base.stats.intervals import too_few

RAW, FLEISS, ALPHA, COHEN = "raw agreement", "Fleiss' κ", "Krippendorff's α", "mean Cohen's κ"


def table_of(votes, coding=Coding.ANSWER, **more):
    found = ballots(votes, **more)
    return agreement_table(found, [pairs_of(found, coding)]).set_index("statistic")


def items(marks):
    """Every string of marks as an item of its own original."""
    return votes_of({f"{number:03}": said for number, said in enumerate(marks)})


def test_the_pair_task_has_no_none():
    assert codings_of(Recognition()) == (Coding.ANSWER, Coding.RECOGNISED, Coding.NONE)
    assert codings_of(Pair()) == (Coding.RECOGNISED,)


def test_codings_take_their_part_of_an_answer():
    found = ballots(items(["c", "d", "n"]))
    assert codes(found, Coding.ANSWER).tolist() == [0, 1, 2]
    assert codes(found, Coding.RECOGNISED).tolist() == [1, 0, 0]
    assert codes(found, Coding.NONE).tolist() == [0, 0, 1]


def test_two_annotators_by_hand():
    # 20 items: both cat 8, both dog 6, cat-dog 4, dog-cat 2.
    found = table_of(items(["cc"] * 8 + ["dd"] * 6 + ["cd"] * 4 + ["dc"] * 2))["value"]
    assert found[RAW] == pytest.approx(0.7)
    chance = (12 / 20) * (10 / 20) + (8 / 20) * (10 / 20)
    assert found[COHEN] == pytest.approx((0.7 - chance) / (1 - chance))
    pooled = (22 / 40) ** 2 + (18 / 40) ** 2
    assert found[FLEISS] == pytest.approx((0.7 - pooled) / (1 - pooled))
    without = (22 * 21 + 18 * 17) / (40 * 39)
    assert found[ALPHA] == pytest.approx((0.7 - without) / (1 - without))


def test_agreement_on_everything_is_not_certain():
    found = table_of(items(["cc"] * 8 + ["dd"] * 6 + ["c-"] * 3))
    t2 = stats.t.ppf(0.975, 13) ** 2  # Wilson's of 14 of 14, with Student's t
    assert found.loc[RAW, ["low", "high"]].tolist() == pytest.approx((14 / (14 + t2), 1))
    assert found.loc[COHEN, ["low", "high"]].isna().all()  # not a share
    assert "changes it" in found.loc[COHEN, "reason"]


def test_items_with_one_vote_say_nothing():
    two = ["cc"] * 8 + ["dd"] * 6 + ["cd"] * 6
    more = table_of(items([*two, "c-", "-d", "c-"]))
    for statistic in (RAW, ALPHA, COHEN):
        assert more["value"][statistic] == table_of(items(two))["value"][statistic]
    assert more["n_items"].tolist() == [20] * 4


@pytest.mark.parametrize("coding", list(Coding))
@settings(max_examples=10)
@given(answers=st.lists(st.sampled_from("bcdn"), min_size=12, max_size=30))
def test_perfect_agreement_is_one(coding, answers):
    found = table_of(items([mark * 3 for mark in answers]), coding)
    assert found["value"][RAW] == 1
    several = len(set(codes(ballots(items(answers)), coding))) > 1
    for statistic in (FLEISS, ALPHA, COHEN):
        if several:
            assert found["value"][statistic] == pytest.approx(1, abs=1e-12)
        else:
            assert "all votes are equal" in found["reason"][statistic]
            assert np.isnan(found["value"][statistic])


@pytest.mark.parametrize(
    ("marks", "reasons"),
    [
        ([], dict.fromkeys([RAW, FLEISS, ALPHA, COHEN], "no votes")),
        (["c", "d"], dict.fromkeys([RAW, FLEISS, ALPHA, COHEN], "only one annotator")),
        (["c-", "-d"], dict.fromkeys([RAW, FLEISS, ALPHA, COHEN], "no item has two votes")),
        (["cc"] * 12, dict.fromkeys([FLEISS, ALPHA, COHEN], "all votes are equal")),
        (["cc-"] * 9 + ["cdd"] * 9, {FLEISS: "2 to 3", RAW: "", ALPHA: "", COHEN: ""}),
        (["cd", "cc"], {COHEN: "no two annotators share 10", RAW: "", FLEISS: "", ALPHA: ""}),
    ],
)
def test_what_is_undefined_is_explained(marks, reasons):
    found = table_of(items(marks))
    for statistic, words in reasons.items():
        row = found.loc[statistic]
        assert words in row["reason"]
        assert np.isnan([row["value"], row["low"], row["high"]]).all() == bool(words)


@pytest.mark.parametrize("originals", [1, 5])
def test_few_originals_have_a_value_but_no_interval(originals):
    votes = table(
        vote(f"m{model}/{model % originals}", f"p{who}", said)
        for model in range(12)
        for who, said in enumerate(["cat", "cat" if model % 3 else "dog"])
    )
    row = table_of(votes).loc[RAW]
    assert row["value"] == pytest.approx(8 / 12)
    assert np.isnan(row["low"])
    assert row["reason"] == too_few(originals)


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.permutations(range(5)))
def test_neither_order_nor_names_matter(seed, names):
    votes = random_votes(missing=0.2)
    mixed = votes.sample(frac=1, random_state=seed)
    mixed["annotator"] = mixed["annotator"].map(lambda name: f"q{names[int(name[1])]}")
    for one, other in zip(
        table_of(votes, bootstraps=3).itertuples(),
        table_of(mixed, bootstraps=3).itertuples(),
        strict=True,
    ):
        assert other.reason == one.reason
        assert other[3:6] == pytest.approx(one[3:6], abs=1e-12, nan_ok=True)


def test_intervals_hold_the_value_and_need_no_seed():
    votes = random_votes()
    first = table_of(votes)
    assert (first["low"] < first["value"]).all()
    assert (first["value"] < first["high"]).all()
    assert first.equals(table_of(votes, seed=1))


def test_intervals_are_of_originals_not_of_items():
    """Ten models that repeat the same answers know no more than one."""
    one = random_votes(models=1, originals=40)
    ten = table(
        {**row, "item": f"m{copy}/{row['image_id']}", "model": f"m{copy}"}
        for copy in range(10)
        for row in one.to_dict("records")
    )
    narrow, wide = table_of(ten), table_of(one)
    for statistic in (RAW, FLEISS, COHEN):
        assert narrow["low"][statistic] == pytest.approx(wide["low"][statistic], abs=1e-9)
        assert narrow["high"][statistic] == pytest.approx(wide["high"][statistic], abs=1e-9)


def test_pairs_share_enough_items_or_say_so():
    marks = ["ccc"] * (FEWEST_SHARED - 1) + ["cd-"] * 3
    found = ballots(items(marks))
    pairs = pair_table(found, pairs_of(found, Coding.ANSWER))
    assert list(pairs.columns) == list(PAIR_COLUMNS)
    assert pairs[["first", "second", "n_items"]].to_numpy().tolist() == [
        ["p0", "p1", 12],
        ["p0", "p2", 9],
        ["p1", "p2", 9],
    ]
    alike, *few = pairs["reason"]
    assert few == ["fewer than 10 shared items"] * 2
    assert alike == "no interval: no original that is left out changes it"  # κ is 0 in all
    assert pairs["value"].notna().tolist() == [True, False, False]


def test_annotators_who_share_nothing_are_no_pair():
    found = ballots(items(["cc--"] * 12 + ["--dd"] * 12))
    pairs = pair_table(found, pairs_of(found, Coding.ANSWER))
    assert list(zip(pairs["first"], pairs["second"], strict=True)) == [("p0", "p1"), ("p2", "p3")]
    assert pairs["reason"].str.contains("all votes are equal").all()


def test_the_columns_are_there_without_votes():
    found = ballots(items([]))
    pairs = [pairs_of(found, coding) for coding in Coding]
    assert list(agreement_table(found, pairs).columns) == list(AGREEMENT_COLUMNS)
    assert list(pair_table(found, pairs[0]).columns) == list(PAIR_COLUMNS)
