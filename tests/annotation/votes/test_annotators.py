"""Each annotator beside the others, by hand; a loop over votes is in tests/oracles."""

import numpy as np
import pytest
from made_ballots import ballots, random_votes, table, vote, votes_of

from annotation.spec import Task
from annotation.tasks import KINDS
from annotation.tasks.recognition import Recognition
from annotation.votes.agreement import Coding, pairs_of
from annotation.votes.annotators import (
    ANNOTATOR_COLUMNS,
    NOT_ANSWERED,
    SAME_ANSWER,
    Check,
    annotator_table,
    check_table,
    repeat_table,
    with_trials,
)


def people(votes, task=Task.RECOGNITION):
    found = ballots(votes, bootstraps=5)
    shown = annotator_table(found, KINDS[task](), pairs_of(found, Coding.RECOGNISED))
    return shown.set_index("annotator")


def test_counts_times_and_none():
    votes = table(
        [
            vote("1", "Ada", "cat", rt_ms=100.0),
            vote("2", "Ada", "none", rt_ms=300.0),
            vote("3", "Ada", "dog", rt_ms=np.nan),
            vote("1", "Ben", "cat", rt_ms=np.nan, simulated=True),
        ]
    )
    found = people(votes)
    assert found["n_votes"].tolist() == [3, 1]
    assert found["median_rt_ms"].iloc[0] == 200
    assert np.isnan(found["median_rt_ms"].iloc[1])
    assert found["none_rate"].tolist() == pytest.approx([1 / 3, 0])
    assert found["simulated"].tolist() == [False, True]
    assert people(votes, Task.PAIR)["none_rate"].isna().all()


def test_the_majority_is_that_of_the_others_and_ties_do_not_count():
    # Others of p0: cc → recognised, in line; dd → not, out of line; cd → a tie.
    found = people(votes_of({"1": "ccc", "2": "cdd", "3": "ccd"})).loc["p0"]
    assert found["n_compared"] == 2
    assert found["agreement"] == 0.5


def test_the_odd_one_out_is_seen():
    good = random_votes(annotators=4, originals=40)
    lazy = table(
        {**row, "annotator": "lazy", "answer": "none", "recognised": False}
        for row in good[good["annotator"] == "p0"].to_dict("records")
    )
    found = people(table([*good.to_dict("records"), *lazy.to_dict("records")]))
    for column in ("agreement", "mean_kappa"):
        assert found[column].idxmin() == "lazy"
    for column in ("none_rate", "largest_change"):
        assert found[column].idxmax() == "lazy"


def test_leaving_out_who_turned_the_ranking_shows():
    # Two against one on every item: without p2 (b is better) the models change places.
    votes = votes_of({"a/1": "cdd", "a/2": "cdd", "b/1": "ddc", "b/2": "ddc", "b/3": "dcc"})
    found = people(votes)
    assert found.loc["p2", "tau_without"] == -1
    assert found.loc["p0", "tau_without"] == 1
    assert found.loc["p2", "largest_change"] == pytest.approx((1 / 3 + 1 / 3 + 2 / 3) / 3 - 0.5 / 3)


def test_where_names_of_originals_decide_annotators_are_compared_by_them():
    answers = {"a/1": "cdd", "a/2": "cdd", "b/1": "ddc", "b/2": "ddc", "b/3": "dcc"}
    more = votes_of({**answers, "b/4": "ccc"})
    names = more["image_id"].map({"1": "cat", "2": "cat", "3": "cat"})  # 4 has none
    named = {"headline": "as-original-named", "original_answer": names}
    by_names = people(more.assign(recognised=False, **named))
    by_class = people(votes_of(answers))
    for column in ("n_compared", "agreement", "tau_without", "largest_change"):
        expected = by_class[column].tolist()
        assert by_names[column].tolist() == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"a/1": "c", "b/1": "d"}, "nobody else has voted"),
        ({"a/1": "cc", "b/1": "d-"}, "a ranking needs two models"),
        ({"a/1": "cc", "b/1": "cc"}, "all models have the same mean response"),
        ({"a/1": "c-", "b/1": "cc", "c/1": "dd"}, "a model has no votes of others"),
    ],
)
def test_what_is_undefined_is_explained(answers, words):
    row = people(votes_of(answers)).loc["p0"]
    assert words in row["reason"]
    assert np.isnan(row["tau_without"])


def test_a_model_that_is_left_without_votes_is_no_model_that_does_not_move():
    found = people(votes_of({"a/1": "c-", "b/1": "cc", "c/1": "dd"}))
    assert np.isnan(found.loc["p0", "largest_change"])
    assert found.loc["p1", "largest_change"] == 0


def test_names_and_order_do_not_matter():
    votes = random_votes(missing=0.3)
    other = votes.assign(annotator=votes["annotator"].map(lambda name: f"z{9 - int(name[1])}"))
    found = people(votes)
    renamed = people(other.sample(frac=1, random_state=0)).iloc[::-1]
    numbers = [name for name in found.columns if name not in ("reason", "simulated")]
    np.testing.assert_allclose(
        found[numbers].to_numpy(float), renamed[numbers].to_numpy(float), atol=1e-12
    )


def test_without_votes_there_are_only_columns():
    found = ballots(votes_of({}))
    shown = annotator_table(found, Recognition(), pairs_of(found, Coding.RECOGNISED))
    assert list(shown.columns) == list(ANNOTATOR_COLUMNS)
    assert len(shown) == 0
    everything = with_trials(
        shown,
        check_table(votes_of({}), Recognition()),
        repeat_table(votes_of({}), Recognition()),
    )
    assert list(everything.columns) == [
        *ANNOTATOR_COLUMNS,
        *(f"{check.value}_accuracy" for check in Check),
        "repeat_kappa",
        "repeat_reason",
    ]
    assert len(everything) == 0


def test_trials_stand_beside_the_votes_and_alone_where_no_vote_counts():
    def trial(kind, annotator, answer, expected=None, item="x/1"):
        return vote(item, annotator, answer, kind=kind, status="quality", expected=expected)

    votes = table(
        [
            vote("m/1", "Ben", "cat"),
            vote("m/2", "Ben", "dog"),
            trial("repeat", "Ben", "cat", item="m/1"),
            trial("repeat", "Ben", "cat", item="m/2"),
            trial("catch", "Ben", "cat", "cat"),
            trial("catch", "Ben", "dog", "cat"),
            trial("catch", "Ben", "none", "none"),
            vote("m/1", "Ada", "cat", status="excluded"),
            trial("repeat", "Ada", "cat", item="m/1"),
            trial("gold", "Ada", "dog", "cow"),
            vote("m/1", "Cleo", "cow"),
        ]
    )
    checks, repeats = (
        check_table(votes, Recognition()),
        repeat_table(votes, Recognition()),
    )
    found = with_trials(people(votes).reset_index(), checks, repeats).set_index("annotator")
    assert list(found.index) == ["Ada", "Ben", "Cleo"]
    assert found["n_votes"].tolist() == [0, 2, 1]
    assert found.loc["Ada", "reason"] == "no vote counts"
    assert np.isnan(
        found.loc["Ada", ["median_rt_ms", "none_rate", "tau_without"]].astype(float)
    ).all()
    shares = found[["clear_accuracy", "nothing_accuracy", "gold_accuracy", "repeat_kappa"]]
    nan = float("nan")
    # Ben's κ: one of two the same, as by chance, (1·2 + 1·0) / 4.
    expected = [[nan, nan, 0, nan], [0.5, 1, nan, 0], [nan] * 4]
    np.testing.assert_allclose(shares.to_numpy(float), expected)
    assert found["repeat_reason"].tolist() == [SAME_ANSWER, "", NOT_ANSWERED]
