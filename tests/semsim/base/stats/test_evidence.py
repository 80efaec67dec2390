import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_votes import FID, KEY, MSE, PSNR, SPECS, scores_of, study, table_of, vote, votes_of

from semsim.base.errors import DataError
from semsim.base.stats.evidence import gather, model_key, short_labels

NO_SCORES = scores_of({})


def test_votes_and_scores_are_brought_in_step():
    votes = votes_of({("b", "2"): "1n-", ("a", "1"): "011", ("a", "2"): "0--"})
    scores = scores_of(
        {
            ("psnr", "b"): {"2": 9.0},
            ("psnr", "a"): {"1": np.inf, "2": 5.0},
            ("fid", "a"): 3.0,
            ("fid", "b"): 4.0,
        }
    )
    found = gather(votes, scores, SPECS)
    assert found.images[["model", "image_id"]].to_numpy().tolist() == [
        ["a", "1"],
        ["a", "2"],
        ["b", "2"],
    ]
    assert found.annotators == ("p0", "p1", "p2")
    nan = np.nan
    np.testing.assert_equal(table_of(found.recognised), [[0, 1, 1], [0, nan, nan], [1, 0, nan]])
    np.testing.assert_equal(table_of(found.none), [[0, 0, 0], [0, nan, nan], [0, 1, nan]])
    np.testing.assert_equal(found.scores["psnr"], [np.inf, 5, 9])
    assert found.set_scores["fid"]["value"].tolist() == [3.0, 4.0]
    assert found.votes_per_item == 3
    assert found.notes == (
        "No table says how many votes an image was to get; taken as 3, the most.",
    )


def test_scores_may_come_with_their_names_as_categories():
    votes, scores = study(n_models=3, n_originals=4)
    names = ["dataset", "attack", "model", "metric", "image_id"]
    few = scores.astype(dict.fromkeys(names, "category"))
    few["dataset"] = pd.Series([1.0] * len(few)).astype("category")  # a 1 beside an absent value
    first, again = (
        gather(votes.assign(dataset="1"), table, SPECS)
        for table in (scores.assign(dataset="1"), few)
    )
    for name, values in first.scores.items():
        np.testing.assert_equal(again.scores[name], values)
    pd.testing.assert_frame_equal(first.set_scores["fid"], again.set_scores["fid"])
    assert first.notes == again.notes


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1))
def test_the_order_of_rows_does_not_matter(seed):
    votes, scores = study(n_models=3, n_originals=4)
    first = gather(votes, scores, SPECS)
    again = gather(
        votes.sample(frac=1, random_state=seed), scores.sample(frac=1, random_state=seed), SPECS
    )
    pd.testing.assert_frame_equal(first.images, again.images)
    np.testing.assert_equal(table_of(first.recognised), table_of(again.recognised))
    assert first.annotators == again.annotators
    for name in first.scores:
        np.testing.assert_equal(first.scores[name], again.scores[name])
    pd.testing.assert_frame_equal(first.set_scores["fid"], again.set_scores["fid"])


def test_only_counted_votes_on_reconstructions_count():
    facts = [
        ("counted", "reconstruction", True),
        ("superseded", "reconstruction", False),
        ("counted", "decoy", False),
    ]
    votes = pd.DataFrame(
        [vote("m", "1", "p", said, status=status, kind=kind) for status, kind, said in facts]
    )
    assert table_of(gather(votes, NO_SCORES, ()).recognised).tolist() == [[1.0]]


def test_numbers_are_good_keys_on_either_side():
    votes = pd.DataFrame([vote("m", 7, 1, 1)])
    scores = scores_of({("psnr", "m"): {"7": 5.0}})
    found = gather(votes, scores, [PSNR])
    assert found.scores["psnr"].tolist() == [5.0]
    assert found.images.loc[0, "image_id"] == "7"
    assert found.annotators == ("1",)


def test_numbers_beside_a_missing_one_are_the_same_keys():
    votes = pd.DataFrame([vote("m", 7, "p", True)])
    scores = scores_of({("psnr", "m"): {7: 5.0}, ("fid", "m"): 3.0})
    scores["image_id"] = scores["image_id"].astype(float)  # as a CSV file comes back
    assert gather(votes, scores, SPECS).scores["psnr"].tolist() == [5.0]


def test_what_only_one_side_has_is_counted_and_told():
    votes = votes_of({("m", "1"): "1", ("m", "2"): "0"}).assign(votes_per_item=5)
    scores = scores_of(
        {
            ("psnr", "m"): {"1": 5.0, "2": np.nan, "3": 1.0},
            ("mse", "m"): {"1": 1.0, "2": 2.0},
            ("fid", "other"): 3.0,
        }
    )
    found = gather(votes, scores, [PSNR, FID])
    assert found.notes == (
        "Scores of mse are left out: not asked for.",
        "PSNR: 1 score is of images nobody was asked about.",
        "PSNR: 1 of 2 images has no score.",
        "FID: 1 score is of models nobody was asked about.",
        "FID: 1 of 1 model has no score.",
    )
    assert found.votes_per_item == 5


def test_labels_bring_images_without_votes_files_and_labels_of_their_own():
    labels = pd.DataFrame(
        [
            {**KEY, "model": "m", "image_id": 1, "original": "o1", "human:folder": True},
            {**KEY, "model": "m", "image_id": 2, "original": "o2", "human:folder": pd.NA},
        ]
    ).assign(votes_per_item=3, study="named", simulated=True)
    found = gather(votes_of({("m", "1"): "1"}), NO_SCORES, (), labels=labels)
    np.testing.assert_equal(table_of(found.recognised), [[1], [np.nan]])
    np.testing.assert_equal(found.given["folder"], [1, np.nan])
    assert found.images["original"].tolist() == ["o1", "o2"]
    assert found.images["class_name"].tolist() == ["", ""]
    assert (found.name, found.simulated, found.votes_per_item) == ("named", True, 3)
    alone = gather(votes_of({}), NO_SCORES, (), labels=labels)
    assert (alone.annotators, alone.recognised.shape) == ((), (2, 0))


def test_a_class_name_beats_none():
    votes = votes_of({("m", "1"): "10"}).assign(class_name=[None, "cat"])
    assert gather(votes, NO_SCORES, ()).images["class_name"].tolist() == ["cat"]


VOTES = votes_of({("m", "1"): "10"})
SCORES = scores_of({("psnr", "m"): {"1": 5.0}})


@pytest.mark.parametrize(
    ("votes", "scores", "message"),
    [
        (VOTES.drop(columns=["answer", "model"]), SCORES, "votes lacks the columns model, answer"),
        (VOTES, SCORES.drop(columns="value"), "scores lacks the columns value"),
        (VOTES.assign(model=[None, "m"]), SCORES, "1 row of the votes has no model"),
        (
            VOTES.assign(recognised=["yes", "perhaps"]),
            SCORES,
            "1 or 0; got 'perhaps' in row 2",
        ),
        (VOTES.assign(recognised=[pd.NA, True]), SCORES, "1 counted vote does not say"),
        (
            VOTES.assign(annotator="p0"),
            SCORES,
            "p0 gave .* 'cat' .row 1. and 'dog' .row 2.",
        ),
        (
            VOTES,
            pd.concat([SCORES, SCORES.assign(value=6.0)]),
            "Two scores of PSNR are of the",
        ),
        (VOTES, SCORES.assign(image_id=None), "PSNR: every score has an image_id; got 1"),
        (VOTES, SCORES.assign(metric="fid"), "FID: no score has an image_id; got 1 of 1"),
        (VOTES, SCORES.assign(value="high"), "is no number. Write one with a point"),
        (VOTES.assign(study=["a", "b"]), SCORES, "study must be one for a study; got a, b"),
        (VOTES.assign(votes_per_item=[3, 5]), SCORES, "votes_per_item must be one"),
        (VOTES.iloc[:0], SCORES, "nothing to compare"),
    ],
)
def test_tables_that_do_not_fit_are_refused(votes, scores, message):
    with pytest.raises(DataError, match=message):
        gather(votes, scores, SPECS)


def test_two_scores_of_a_set_are_refused():
    scores = scores_of({("fid", "m"): 1.0})
    with pytest.raises(DataError, match="Two scores of FID are of the same dataset d"):
        gather(VOTES, pd.concat([scores, scores]), SPECS)


@pytest.mark.parametrize(("value", "why"), [(1.5, "must lie in"), ("maybe", "true, false or a")])
def test_labels_that_are_no_shares_are_refused(value, why):
    labels = pd.DataFrame([{**KEY, "model": "m", "image_id": "1", "human:x": value}])
    with pytest.raises(DataError, match=why):
        gather(VOTES, SCORES, [PSNR, MSE], labels=labels)


def test_models_are_called_by_data_set_and_attack_only_where_there_are_several():
    images = pd.DataFrame([{**KEY, "model": name} for name in "ba"])
    assert short_labels(images) == {"d\na\na": "a", "d\na\nb": "b"}
    several = pd.concat([images, images.assign(dataset="e")])
    assert short_labels(several)["e\na\nb"] == "b · e"
    assert model_key(images.iloc[0]) == "d\na\nb"


def test_rows_that_were_sent_twice_count_once():
    once, twice = (gather(pd.concat([VOTES] * n), pd.concat([SCORES] * n), ()) for n in (1, 2))
    assert twice.recognised.counts.tolist() == once.recognised.counts.tolist() == [2]


@pytest.mark.parametrize("words", [("yes", "no"), ("Ja", "NEIN "), (1, 0), ("1", "0.0")])
def test_recognised_may_be_said_in_words_or_numbers(words):
    said = gather(VOTES.assign(recognised=list(words)), SCORES, ())
    assert said.recognised.values.tolist() == [1.0, 0.0]


def test_none_is_none_however_it_is_written():
    votes = VOTES.assign(answer=["cat", " None"])
    assert gather(votes, SCORES, ()).none.values.tolist() == [0.0, 1.0]
