"""Ratings: the verdict of their mean, ordinal agreement, and tables that have further columns."""

from itertools import combinations

import krippendorff
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_ballots import ballots, table, vote
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from annotation.tasks.rating import Rating
from annotation.votes.aggregate import labels, summary_table
from annotation.votes.agreement import Coding, agreement_table, codings_of, pair_table, pairs_of
from annotation.votes.annotators import annotator_table, check_table, repeat_table
from annotation.votes.rates import confusion_table, rate_table
from annotation.votes.reliability import reliability
from semsim.base.columns import ITEM_COLUMNS, RATED

ALPHA, KAPPA = "Krippendorff's ordinal α", "mean weighted κ"
# Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", C: four observers, twelve units.
PUBLISHED = ("123321412---", "1233224125-3", "-3332342251-", "12332441251-")


def rated(marks, *, levels=5, threshold=3.0, **more):
    """{"m/0": "13-5"}: the ratings of the annotators p0, p1, …; "-" is no vote."""
    rows = [
        vote(item, f"p{who}", mark, recognised=float(mark) >= threshold, **more)
        for item, given in marks.items()
        for who, mark in enumerate(given)
        if mark != "-"
    ]
    return table(rows).assign(rating_levels=levels, rating_threshold=threshold)


def random_ratings(seed=0, *, missing=0.0, originals=30, annotators=4):
    draw = np.random.default_rng(seed)
    marks = {}
    for model in range(3):
        for original in range(originals):
            true = draw.normal(4 - model, 1)
            said = np.clip(np.rint(true + draw.normal(0, 0.8, annotators)), 1, 5).astype(int)
            gone = draw.random(annotators) < missing
            marks[f"m{model}/{original:03}"] = "".join(
                "-" if g else str(s) for s, g in zip(said, gone, strict=True)
            )
    return rated(marks)


def statistics(votes, **more):
    found = ballots(votes, **{"bootstraps": 1, **more})
    return agreement_table(found, [pairs_of(found, Coding.ANSWER)]).set_index("statistic")


def matrix(votes):
    """(annotators, items) of ratings, NaN for no vote."""
    wide = votes.pivot(index="annotator", columns="item", values="answer")
    return wide.astype(float).to_numpy()


def test_ordinal_alpha_of_a_published_example():
    marks = {f"m/{unit:02}": "".join(one[unit] for one in PUBLISHED) for unit in range(12)}
    found = statistics(rated(marks))
    assert found.loc[ALPHA, "value"] == pytest.approx(0.815, abs=5e-4)


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("seed", range(4))
def test_ordinal_alpha_equals_krippendorff(seed, missing):
    votes = random_ratings(seed, missing=missing)
    expected = krippendorff.alpha(matrix(votes), level_of_measurement="ordinal")
    assert statistics(votes).loc[ALPHA, "value"] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_weighted_kappa_equals_scikit_learn(missing):
    votes = random_ratings(missing=missing)
    found, answers = ballots(votes, bootstraps=1), matrix(votes)
    pairs = pair_table(found, pairs_of(found, Coding.ANSWER))
    kappas = []
    for row, (a, b) in zip(pairs.itertuples(), combinations(range(4), 2), strict=True):
        both = ~np.isnan(answers[[a, b]]).any(axis=0)
        kappas.append(cohen_kappa_score(answers[a, both], answers[b, both], weights="quadratic"))
        assert row.value == pytest.approx(kappas[-1], abs=1e-12)
    assert statistics(votes).loc[KAPPA, "value"] == pytest.approx(np.mean(kappas))


def test_the_error_of_ordinal_alpha_is_of_the_votes_without_each_original():
    votes = random_ratings(originals=8)
    value = statistics(votes).loc[ALPHA, "value"]
    without = [
        statistics(votes[votes["image_id"] != one]).loc[ALPHA, "value"]
        for one in votes["image_id"].unique()
    ]
    reach = stats.t.ppf(0.975, 7) * np.sqrt(7 / 8 * ((np.array(without) - value) ** 2).sum())
    row = statistics(votes).loc[ALPHA]
    expected = [value - reach, min(value + reach, 1)]
    np.testing.assert_allclose([row["low"], row["high"]], expected, atol=1e-12)


def test_the_order_of_ratings_counts_and_alike_ones_are_not_defined():
    near = {f"m/{n}": said for n, said in enumerate(["12", "21", "45", "54"] * 3)}
    far = {f"m/{n}": said for n, said in enumerate(["15", "51", "24", "42"] * 3)}
    assert statistics(rated(near)).loc[KAPPA, "value"] == pytest.approx(0.8)
    assert statistics(rated(far)).loc[KAPPA, "value"] < 0
    assert statistics(rated(near)).loc[ALPHA, "value"] > 0.6
    assert statistics(rated(far)).loc[ALPHA, "value"] < 0
    alike = statistics(rated({f"m/{n}": "33" for n in range(12)}))
    assert alike.loc[[ALPHA, KAPPA], "value"].isna().all()
    assert alike.loc[ALPHA, "reason"].startswith("all votes are equal")
    assert "Fleiss' κ" not in alike.index
    assert codings_of(Rating()) == (Coding.ANSWER, Coding.RECOGNISED)


def verdict_by_hand(ratings, k, levels, threshold):
    """What every way to fill the missing votes agrees on, the ends being enough."""
    missing = [0] * max(0, k - len(ratings))
    ends = {
        sum([*ratings, *(end for _ in missing)]) / max(k, len(ratings)) >= threshold - 1e-9
        for end in (1, levels)
    }
    return ends.pop() if len(ends) == 1 else None


@given(
    ratings=st.lists(st.integers(1, 4), max_size=6),
    k=st.integers(1, 5),
    threshold=st.sampled_from([1.5, 2.0, 2.3, 2.5, 3.0, 3.6, 4.0]),
)
def test_the_verdict_is_what_no_missing_vote_can_change(ratings, k, threshold):
    marks = {"m/0": "".join(map(str, ratings)), "m/1": "4"}
    votes = rated(marks, levels=4, threshold=threshold)
    items = pd.DataFrame([dict.fromkeys(ITEM_COLUMNS, "x") | {"item": name} for name in marks])
    found = labels(items, votes, votes_per_item=k).iloc[0]
    expected = verdict_by_hand(ratings, k, 4, threshold)
    assert (None if pd.isna(found["recognisable"]) else bool(found["recognisable"])) == expected
    np.testing.assert_equal(found["mean_rating"], np.mean(ratings) if ratings else np.nan)
    assert found["n_recognised"] == sum(one >= threshold for one in ratings)
    if ratings:
        summary = summary_table(ballots(votes, bootstraps=1), k).set_index("item")
        said = summary.loc["m/0", "recognisable"]
        assert (None if pd.isna(said) else bool(said)) == expected


def test_the_mean_of_the_ratings_decides_and_not_the_majority_of_them():
    found = summary_table(ballots(rated({"m/0": "55522", "m/1": "33311", "m/2": "44411"})), 5)
    assert found["n_recognised"].tolist() == [3, 3, 3]
    assert found["recognisable"].tolist() == [True, False, False]
    half = summary_table(ballots(rated({"m/0": "33", "m/1": "3"}, threshold=3.0)), 2)
    assert half["recognisable"].tolist() == [True, pd.NA]


def test_models_are_ranked_by_their_mean_rating():
    votes = random_ratings()
    found = rate_table(ballots(votes), 4).set_index("model")
    means = votes.assign(rating=votes["answer"].astype(float)).groupby("model")["rating"].mean()
    np.testing.assert_allclose(found["mean_rating"], means[found.index])
    assert found["rank"].tolist() == [1, 2, 3]
    assert (found["mean_rating_low"] < found["mean_rating"]).all()
    assert (found["mean_rating"] < found["mean_rating_high"]).all()


def test_the_distribution_has_every_rating_of_the_scale():
    votes = rated({"a/0": "112", "b/0": "333"}, levels=4)
    found = confusion_table(ballots(votes), Rating())
    assert found.loc["a"].tolist() == [2, 1, 0, 0]
    assert found.loc["b"].tolist() == [0, 0, 3, 0]


def trial(kind, answer, expected, number, who="p0"):
    return vote(f"m/{number}", who, answer, kind=kind, status="quality", expected=expected)


def test_known_ratings_are_right_as_the_kind_says():
    said = [("4", "4"), ("3", "4"), ("1", "1"), ("2", "1"), ("3", "1")]
    votes = table([trial("catch", one, known, n) for n, (one, known) in enumerate(said)])
    found = check_table(votes, Rating()).set_index("check")["n_right"]
    assert found.to_dict() == {"clear": 1, "nothing": 2}


def test_repeats_of_ratings_have_a_weighted_kappa():
    draw = np.random.default_rng(1)
    first = draw.integers(1, 5, 40)
    again = np.clip(first + draw.integers(-1, 2, 40), 1, 4)
    rows = [vote(f"m/{n}", "p0", str(one)) for n, one in enumerate(first)]
    rows += [trial("repeat", str(one), None, n) for n, one in enumerate(again)]
    found = repeat_table(table(rows), Rating()).set_index(["annotator", "coding"])
    kappa = found.loc[("p0", "answer"), "kappa"]
    assert kappa == pytest.approx(cohen_kappa_score(first, again, weights="quadratic"))


def test_the_other_tables_take_ratings():
    votes = random_ratings(missing=0.2)
    found, kind = ballots(votes, bootstraps=5), Rating(levels=5)
    people = annotator_table(found, kind, pairs_of(found, Coding.RECOGNISED))
    assert people["none_rate"].isna().all()
    assert people["agreement"].notna().all()
    models = reliability(found, summary_table(found, 4), kind)
    assert models.n_compared > 0


def test_annotators_of_ratings_move_the_means_that_models_are_ranked_by():
    # Both models have a mean of 2; without p2 the one falls to 1, of four steps.
    votes = rated({"a/1": "114", "a/2": "114", "b/1": "222", "b/2": "222"}, threshold=5.0)
    found = ballots(votes, bootstraps=5)
    people = annotator_table(found, Rating(levels=5), pairs_of(found, Coding.RECOGNISED))
    people = people.set_index("annotator")
    assert people.loc["p2", "largest_change"] == pytest.approx(1 / 4)
    assert people.loc["p0", "largest_change"] == pytest.approx(0.5 / 4)


def test_a_study_of_ratings_without_votes_has_its_columns():
    nobody = rated({"m/0": "1"}).iloc[:0]
    assert set(RATED) <= set(nobody)
    items = pd.DataFrame([dict.fromkeys(ITEM_COLUMNS, "x")])
    found = labels(items, nobody, votes_per_item=2)
    assert found["recognisable"].isna().all()
    assert found["mean_rating"].isna().all()
