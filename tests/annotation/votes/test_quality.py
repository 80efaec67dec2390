"""What trials say, by hand and by statsmodels and scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from made_ballots import random_votes, table, vote, votes_of
from sklearn.metrics import cohen_kappa_score

from annotation.tasks.pair import Pair
from annotation.tasks.recognition import Recognition
from annotation.votes.annotators import (
    CARRY_OVER_COLUMNS,
    CHECK_COLUMNS,
    EVERYBODY,
    NO_REPEATS,
    REPEAT_COLUMNS,
    SAME_ANSWER,
    carry_over_table,
    check_table,
    none_bias_table,
    repeat_table,
)


def trial(kind, annotator, answer, expected=None, item="x/1", **more):
    made = {"kind": kind, "status": "quality", "expected": expected, **more}
    return vote(item, annotator, answer, **made)


CHECKS = table(
    [
        trial("catch", "Ada", "cat", "cat"),
        trial("catch", "Ada", "none", "cat"),
        trial("catch", "Ada", "none", "none"),
        trial("catch", "Ada", "dog", "none"),
        trial("catch", "Ada", "dog", "none"),
        trial("catch", "Ada", "dog", "dog", status="superseded"),
        trial("gold", "Ada", "cow", "cow"),
        trial("gold", "Ben", "cow", "none"),
        trial("practice", "Ben", "cow", "cow"),
        trial("gold", "Cleo", "", "cow"),
        vote("m/1", "Ben", "cat"),
    ]
)


def test_known_answers_are_counted_apart():
    found = check_table(CHECKS, Recognition()).set_index(["annotator", "check"])
    assert list(check_table(CHECKS, Recognition()).columns) == list(CHECK_COLUMNS)
    assert found[["n", "n_right"]].to_dict("index") == {
        ("Ada", "clear"): {"n": 2, "n_right": 1},
        ("Ada", "gold"): {"n": 1, "n_right": 1},
        ("Ada", "nothing"): {"n": 3, "n_right": 1},
        ("Ben", "gold"): {"n": 1, "n_right": 0},
    }
    assert found.loc[("Ada", "nothing"), "accuracy"] == pytest.approx(1 / 3)


def test_none_of_a_clear_picture_is_the_bias_towards_none():
    (row,) = none_bias_table(CHECKS, Recognition()).to_dict("records")
    assert (row["annotator"], row["n"], row["n_right"], row["accuracy"]) == ("Ada", 2, 1, 0.5)


def test_pairs_that_are_the_same_and_that_differ():
    votes = table(
        [
            trial("catch", "Ada", "same", "same"),
            trial("catch", "Ada", "same", "different"),
        ]
    )
    found = check_table(votes, Pair()).set_index("check")["accuracy"]
    assert found.to_dict() == {"clear": 1.0, "nothing": 0.0}


def repeats(first, again, annotator="Ada"):
    """Letters of the classes named at first and again, one item each."""
    named = {"c": "cat", "d": "dog", "n": "none"}
    rows = []
    for number, (one, other) in enumerate(zip(first, again, strict=True)):
        rows.append(vote(f"m/{number}", annotator, named[one]))
        rows.append(trial("repeat", annotator, named[other], item=f"m/{number}"))
    return rows


def test_repeats_by_hand():
    # 5 of 6 the same; by chance (3·2 + 2·3 + 1·1) / 36 = 13/36.
    found = repeat_table(table(repeats("cccddn", "ccdddn")), Recognition())
    row = found[(found["annotator"] == "Ada") & (found["coding"] == "answer")].iloc[0]
    assert (row["n"], row["n_same"]) == (6, 5)
    assert row["kappa"] == pytest.approx((5 / 6 - 13 / 36) / (1 - 13 / 36))


def test_repeats_of_everybody_and_in_both_codings():
    draw = np.random.default_rng(0)
    rows, pairs = [], []
    people = ("Ada", "all annotators")  # which is a name like any other
    for name in people:
        first = draw.choice(list("cdn"), 30)
        again = np.where(draw.random(30) < 0.6, first, draw.choice(list("cdn"), 30))
        rows += [dict(row, item=f"{name}{row['item']}") for row in repeats(first, again, name)]
        pairs.append((first, again))
    found = repeat_table(table(rows), Recognition()).set_index(["annotator", "coding"])["kappa"]
    whole = [np.concatenate([pair[side] for pair in pairs]) for side in (0, 1)]
    for name, (first, again) in zip((*people, EVERYBODY), [*pairs, whole], strict=True):
        assert found[name, "answer"] == pytest.approx(cohen_kappa_score(first, again))
        seen = cohen_kappa_score(first == "c", again == "c")
        assert found[name, "recognised"] == pytest.approx(seen)
    assert list(repeat_table(table(rows), Pair())["coding"].unique()) == ["answer"]


def test_a_kappa_that_is_not_defined_is_explained():
    same = repeat_table(table(repeats("ccc", "ccc")), Pair())
    assert same["kappa"].isna().all()
    assert same["reason"].tolist() == [SAME_ANSWER] * 2
    assert same["agreement"].tolist() == [1, 1]
    none = repeat_table(random_votes(originals=2), Recognition())
    assert none["reason"].tolist() == [NO_REPEATS] * 2
    assert none["n"].tolist() == [0, 0]


def test_repeats_of_the_excluded_count_and_of_the_undone_do_not():
    rows = repeats("cd", "cc")
    rows[0]["status"] = "excluded"
    rows[2]["status"] = "superseded"
    found = repeat_table(table(rows), Pair())
    assert found["n"].tolist() == [1, 1]


def test_views_of_an_original_are_counted_for_each_annotator():
    votes = table(
        [
            vote("a/1", "Ada", "dog"),  # view 1
            vote("b/1", "Ada", "cat"),  # view 2
            trial("repeat", "Ada", "cat", item="a/1"),  # view 3, not counted
            vote("c/1", "Ada", "dog", status="superseded"),
            vote("c/1", "Ada", "cat"),  # view 4
            trial("catch", "Ada", "cat", "cat", item="/1"),
            vote("d/1", "Ada", "cat", status="surplus"),  # view 5, not counted
            vote("e/1", "Ada", "dog"),  # view 6
            vote("a/2", "Ada", "cat"),
            vote("b/1", "Ben", "cat"),
        ]
    )
    found = carry_over_table(votes)
    assert list(found.columns) == list(CARRY_OVER_COLUMNS)
    assert found["view"].tolist() == [1, 2, 4, 6]
    assert found["n_votes"].tolist() == [3, 1, 1, 1]
    assert found["n_originals"].tolist() == [2, 1, 1, 1]
    assert found["share"].tolist() == pytest.approx([2 / 3, 1, 1, 0])


def test_views_are_judged_as_the_headline_has_it():
    votes = votes_of({"a/1": "ddd", "b/1": "ddd", "a/2": "ccc"})  # the class is cat
    names = votes["image_id"].map({"1": "dog"})  # the second original has none yet
    by_names = votes.assign(headline="as-original-named", original_answer=names)
    found = carry_over_table(by_names)
    assert found["share"].tolist() == [1, 1]
    assert found["n_votes"].tolist() == [3, 3]


def test_where_none_is_no_answer_nobody_leans_towards_it():
    assert len(none_bias_table(CHECKS, Recognition()))
    assert not len(none_bias_table(CHECKS, Pair()))


def test_intervals_of_views_are_of_originals():
    # All votes on one original agree, so an interval must not shrink with the votes on it.
    rows = [
        vote(f"m/{original}", f"p{who}", "cat" if original % 2 else "dog")
        for original in range(20)
        for who in range(50)
    ]
    (row,) = carry_over_table(table(rows)).to_dict("records")
    assert row["share"] == 0.5
    half = (row["high"] - row["low"]) / 2
    assert half == pytest.approx(1.96 * np.sqrt(0.25 / 20), rel=0.1)
    alone = carry_over_table(votes_of({"a/1": "ccd"}))
    assert alone["low"].isna().all()
    assert (alone["reason"] == "no interval: 1 original, fewer than 6").all()


def test_without_votes_there_are_only_columns():
    empty = votes_of({})
    for found, columns in (
        (check_table(empty, Recognition()), CHECK_COLUMNS),
        (none_bias_table(empty, Recognition()), CHECK_COLUMNS),
        (carry_over_table(empty), CARRY_OVER_COLUMNS),
    ):
        assert isinstance(found, pd.DataFrame)
        assert list(found.columns) == list(columns)
        assert len(found) == 0
    assert list(repeat_table(empty, Pair()).columns) == list(REPEAT_COLUMNS)
