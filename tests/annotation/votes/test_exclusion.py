"""What an exclusion would do, on tables small enough to count by hand."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_ballots import table, vote

from annotation.votes import aggregate
from annotation.votes.exclusion import ModelRate, effect_of_excluding
from semsim.base.columns import ITEM_COLUMNS

K = 3


def votes_of(answers):
    """`answers` by item: (annotator, recognised) pairs; a third value is the status."""
    return pd.DataFrame(
        [
            {
                "item": item,
                "annotator": who,
                "recognised": recognised,
                "status": status[0] if status else "counted",
                "votes_per_item": K,
            }
            for item, given in answers.items()
            for who, recognised, *status in given
        ],
        columns=["item", "annotator", "recognised", "status", "votes_per_item"],
    )


def labels_of(models, votes):
    """`models` by item."""
    items = pd.DataFrame(
        [{**dict.fromkeys(ITEM_COLUMNS, "x"), "item": i, "model": m} for i, m in models.items()]
    )
    return aggregate.labels(items, votes, votes_per_item=K)


def effect(answers, models, who="Anna"):
    votes = votes_of(answers)
    return effect_of_excluding(who, votes, labels_of(models, votes))


def test_ratings_are_ranked_by_their_mean_and_not_by_what_reaches_the_threshold():
    """All reach it, before and after; only means part the two models."""
    marks = {"X/0": "544", "X/1": "544", "Y/0": "355", "Y/1": "355"}
    votes = table(
        vote(item, who, mark, recognised=True, votes_per_item=K)
        for item, given in marks.items()
        for who, mark in zip(("Anna", "Ben", "Cleo"), given, strict=True)
    ).assign(rating_levels=5, rating_threshold=3.0)
    items = votes.drop_duplicates("item").reindex(columns=list(ITEM_COLUMNS))
    labels = aggregate.labels(items, votes, votes_per_item=K)
    found = effect_of_excluding("Anna", votes, labels)
    assert [(one.before, one.after) for one in found.models] == [(1.0, 1.0), (1.0, 1.0)]
    assert [one.ranked_by for one in found.models] == [
        (pytest.approx(13 / 3), 4.0),
        (pytest.approx(13 / 3), 5.0),
    ]
    assert found.ranking == "The ranking of the models would change: 1 of 2 would move."


ALL_THREE = [("Anna", True), ("Ben", True), ("Cleo", True)]
DECIDED_BY_ANNA = [("Anna", True), ("Ben", True), ("Cleo", False)]
ONLY_TWO = [("Ben", False), ("Cleo", False)]
MODELS = {"1": "m", "2": "m", "3": "n", "4": "n"}
ANSWERS = {"1": ALL_THREE, "2": DECIDED_BY_ANNA, "3": ONLY_TWO, "4": DECIDED_BY_ANNA}


def test_everything_is_counted():
    found = effect(ANSWERS, MODELS)
    assert (found.n_votes, found.n_short, found.n_flipped, found.n_undecided) == (3, 3, 0, 2)
    assert found.models == (
        ModelRate(model="m", before=1.0, after=1.0, decided_before=2, decided_after=1),
        ModelRate(model="n", before=0.5, after=0.0, decided_before=2, decided_after=1),
    )
    assert found.ranking is None


def test_items_that_lacked_votes_already_do_not_fall_short():
    found = effect({"1": [("Anna", True), ("Ben", True)]}, {"1": "m"})
    assert (found.n_votes, found.n_short) == (1, 0)


def test_an_item_with_a_vote_more_than_it_needs_does_not_fall_short():
    found = effect({"1": [*DECIDED_BY_ANNA, ("Dora", False)]}, {"1": "m"})
    assert (found.n_votes, found.n_short) == (1, 0)


def test_a_changed_ranking_is_said():
    found = effect(ANSWERS | {"1": [("Ben", False), ("Cleo", False)]}, MODELS)
    assert [model.before for model in found.models] == [0.5, 0.5]
    assert found.ranking is None  # both fall to 0
    swapped = effect(ANSWERS | {"1": ONLY_TWO, "3": ALL_THREE}, MODELS)
    assert [(m.before, m.after) for m in swapped.models] == [(0.5, 0.0), (1.0, 1.0)]
    tied = effect({"1": DECIDED_BY_ANNA, "2": ONLY_TWO, "3": ALL_THREE, "4": ONLY_TWO}, MODELS)
    assert [(m.before, m.after) for m in tied.models] == [(0.5, 0.0), (0.5, 0.5)]
    assert tied.ranking == "The ranking of the models would change: 1 of 2 would move."


def test_a_model_that_loses_its_rate_has_no_rank():
    found = effect({"1": DECIDED_BY_ANNA}, {"1": "m"})
    assert (found.models[0].before, found.models[0].after) == (1.0, None)
    assert "no decided item left" in found.ranking


def test_votes_that_do_not_count_anyway_change_nothing():
    answers = {"1": [("Anna", False, "excluded"), *ALL_THREE[1:]], "2": [("Anna", True, "surplus")]}
    found = effect(answers, {"1": "m", "2": "m"})
    assert (found.n_votes, found.n_short, found.n_undecided) == (0, 0, 0)
    assert found.models[0].before == found.models[0].after == 1.0


def test_decoys_fall_short_too_but_have_no_label():
    votes = votes_of({"1": ALL_THREE, "decoy": ALL_THREE})
    found = effect_of_excluding("Anna", votes, labels_of({"1": "m"}, votes))
    assert (found.n_votes, found.n_short) == (2, 2)
    assert found.models[0].decided_before == 1


def test_a_study_without_votes():
    found = effect({}, {"1": "m"})
    assert (found.n_votes, found.n_short) == (0, 0)
    assert found.models[0].before is None
    assert found.ranking is None


given_votes = st.dictionaries(
    st.sampled_from("1234"),
    st.lists(st.tuples(st.sampled_from(["Anna", "Ben", "Cleo"]), st.booleans()),
             max_size=K, unique_by=lambda vote: vote[0]),
)  # fmt: skip


@given(given_votes)
def test_the_preview_is_what_happens(answers):
    votes = votes_of(answers)
    before = labels_of(MODELS, votes)
    found = effect_of_excluding("Anna", votes, before)
    after = labels_of(MODELS, votes.assign(
        status=votes["status"].where(votes["annotator"] != "Anna", "excluded")
    ))  # fmt: skip
    for model in found.models:
        for labels, rate in ((before, model.before), (after, model.after)):
            decided = labels.loc[labels["model"] == model.model, "recognisable"].dropna()
            assert rate == (pytest.approx(decided.mean()) if len(decided) else None)
    lost = before["recognisable"].notna() & after["recognisable"].isna()
    assert found.n_undecided == lost.sum()
    assert found.n_short == ((before["n_votes"] == K) & (after["n_votes"] < K)).sum()
