from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_measures import error_of
from made_votes import MSE, PSNR, SPECS, evidence, scores_of, voted, votes_of
from scipy import stats

from semsim.base.stats.correlation import weighted_kendall
from semsim.base.stats.evidence import Ratings, gather
from semsim.base.stats.grouping import layout_of
from semsim.base.stats.intervals import pairs_ends
from semsim.base.stats.roc import (
    AUC_COLUMNS,
    AUC_DIFFERENCE_COLUMNS,
    PICTURE_COLUMNS,
    WITHIN,
    auc_differences,
    auc_table,
    contest_of,
    picture_agreement,
    scale_differs,
    scale_note,
    weighted_auc,
)
from semsim.base.stats.verdict import human_score, verdict

IMAGES = st.lists(
    st.tuples(st.integers(0, 4), st.booleans(), st.integers(0, 2), st.integers(0, 3)), min_size=1
)


def by_loop(values, recognised, weights):
    """The weighted share of pairs that are in order; NaN without a pair."""
    won = pairs = 0.0
    for a, w in zip(values[recognised], weights[recognised], strict=True):
        for b, v in zip(values[~recognised], weights[~recognised], strict=True):
            pairs += w * v
            won += w * v * ((a > b) + (a == b) / 2)
    return won / pairs if pairs else np.nan


@given(IMAGES, st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_equal_to_a_loop_over_pairs_with_ties_groups_and_weights(images, weights):
    columns = (np.array(column) for column in zip(*images, strict=True))
    values, recognised, groups, original = columns
    weights = np.array([weights], dtype=float)
    expected = [
        by_loop(values[own], recognised[own], weights[0, original[own]])
        for own in (groups == group for group in range(3))
        if len(set(recognised[own])) == 2
    ]
    found = weighted_auc(contest_of(values, recognised, groups, original), weights)
    np.testing.assert_allclose(found, np.array([expected]).reshape(1, -1))


FOUND = evidence(n_models=4, n_originals=15)
LAYOUT = layout_of(FOUND.images)
HUMAN = human_score(FOUND, "majority")


def auc(found, human=HUMAN, specs=SPECS):
    table = auc_table(specs, found, human, layout_of(found.images))
    assert tuple(table.columns) == AUC_COLUMNS
    return table.set_index(["metric", "scope"])


def mean_over(groups, values, recognised, weights):
    each = [
        (by_loop(values[groups == g], recognised[groups == g], weights[groups == g]), g)
        for g in np.unique(groups)
    ]
    return np.array([(value, group) for value, group in each if not np.isnan(value)])


def test_scopes_are_means_over_groups_with_both_kinds():
    table = auc(FOUND)
    yes, once = HUMAN > 0.5, np.ones(len(HUMAN))
    for spec, sign in ((PSNR, 1), (MSE, -1)):
        values = sign * FOUND.scores[spec.name]
        for scope, groups in (
            ("pooled", np.zeros(len(yes))),
            ("within model", LAYOUT.model),
            ("within original", LAYOUT.original),
        ):
            each = mean_over(groups, values, yes, once)
            row = table.loc[(spec.name, scope)]
            assert row["auc"] == pytest.approx(each[:, 0].mean())
            assert row["n_groups"] == len(each)
            used = np.isin(groups, each[:, 1])
            assert (row["n_positive"], row["n_negative"]) == (
                (yes & used).sum(),
                (~yes & used).sum(),
            )
    assert "fid" not in table.index


def test_intervals_are_of_the_images_without_each_original():
    table = auc(FOUND)
    yes, values = HUMAN > 0.5, FOUND.scores["psnr"]
    groups = {"pooled": 0 * LAYOUT.model, "within model": LAYOUT.model}
    for scope, group in {**groups, "within original": LAYOUT.original}.items():
        row, without = table.loc[("psnr", scope)], []
        for one in range(15):
            kept = one != LAYOUT.original
            each = mean_over(group[kept], values[kept], yes[kept], np.ones(kept.sum()))
            without.append(each[:, 0].mean())
        used = np.isin(group, [one for one in set(group) if len(set(yes[group == one])) == 2])
        units = min(len(set(LAYOUT.original[used & side])) for side in (yes, ~yes))
        expected = pairs_ends(row["auc"], error_of(row["auc"], without, units), units)
        assert (row["low"], row["high"]) == pytest.approx(tuple(map(float, expected)))


def test_infinite_scores_rank_first_and_exact_halves_are_left_out():
    votes = {("m", str(i)): said for i, said in enumerate(["11", "10", "00", "00"])}
    found = gather(
        votes_of(votes),
        scores_of({("psnr", "m"): {"0": np.inf, "1": -np.inf, "2": 5.0, "3": 6.0}}),
        [PSNR],
    )
    table = auc(found, human_score(found, "mean-response"), [PSNR])
    assert table.loc[("psnr", "pooled"), ["auc", "n_positive", "n_negative"]].tolist() == [1, 1, 2]


def test_undefined_with_a_reason():
    table = auc(FOUND, human=np.ones(len(HUMAN)))
    assert table["auc"].isna().all()
    assert table["low"].isna().all()
    assert (table["n_groups"] == 0).all()
    assert table.loc[("psnr", "within model"), "undefined"] == (
        "no model has both images that people recognise and images that they do not"
    )


def test_a_perfect_metric_has_an_interval_with_width():
    """Without any original it is 1, which is not to say that no image can be ranked wrongly."""
    perfect = replace(FOUND, scores={"psnr": HUMAN, "mse": HUMAN})
    table = auc(perfect)
    for scope in ("pooled", "within model", "within original"):
        best, worst = table.loc[("psnr", scope)], table.loc[("mse", scope)]
        assert (best["auc"], best["high"]) == (1, 1)
        assert 0.2 < best["low"] < 0.99
        assert (worst["low"], worst["high"]) == pytest.approx((0, 1 - best["low"]))
    n = min(len(set(LAYOUT.original[side])) for side in (HUMAN > 0.5, HUMAN < 0.5))
    t2 = stats.t.ppf(0.975, n - 1) ** 2
    assert table.loc[("psnr", "pooled"), "low"] == pytest.approx(n / (n + t2))


@pytest.mark.parametrize(("originals", "told"), [(1, False), (5, False), (6, True), (8, True)])
def test_no_interval_where_recognised_images_are_of_fewer_than_six_originals(originals, told):
    human = (LAYOUT.original < originals).astype(float)
    found = auc(FOUND, human).drop("within original", level="scope")
    assert found["auc"].between(0.01, 0.99).all()
    assert (found[["low", "high"]].notna() == told).all(axis=None)


def test_rho_with_mean_ratings_is_scipys_and_its_interval_is_over_originals():
    given = FOUND.recognised.of(1 + np.arange(len(FOUND.recognised.values)) * 7 % 4)
    rated = replace(FOUND, ratings=Ratings(values=given, levels=4, threshold=2.5))
    row = auc_table([PSNR], rated, HUMAN, LAYOUT).set_index("scope").loc["pooled"]
    values, means = FOUND.scores["psnr"], rated.response.means
    assert row["rho"] == pytest.approx(stats.spearmanr(values, means).statistic)
    without = [
        stats.spearmanr(values[LAYOUT.original != one], means[LAYOUT.original != one]).statistic
        for one in range(15)
    ]
    reach = stats.t.ppf(0.975, 14) * error_of(row["rho"], without, 15) / (1 - row["rho"] ** 2)
    expected = np.tanh(np.arctanh(row["rho"]) + reach * np.array([-1, 1]))
    assert (row["rho_low"], row["rho_high"]) == pytest.approx(tuple(expected))


def test_a_metric_with_a_scale_for_each_original_is_named():
    """Within an original it is right, between originals nothing but noise."""
    own = np.random.default_rng(0).normal(0, 50, 15)[LAYOUT.original]
    human = (LAYOUT.model > 1).astype(float)
    found = replace(FOUND, scores={"psnr": human + own, "mse": -human})
    table = auc_table([PSNR, MSE], found, human, LAYOUT)
    assert scale_differs(table) == [PSNR.title]
    assert scale_differs(table[table["metric"] == "mse"]) == []
    assert scale_differs(table.iloc[:0]) == []
    assert "PSNR differs by original" in scale_note(scale_differs(table))
    for metric in ("psnr", "mse"):  # one order for all, so that they are compared alike
        scopes = table.loc[table["metric"] == metric, "scope"].tolist()
        assert scopes == ["within original", "pooled", "within model"]
    plain = auc_table([PSNR, MSE], FOUND, HUMAN, LAYOUT)
    assert plain["scope"].tolist() == 2 * ["pooled", "within model", "within original"]
    assert scale_note(scale_differs(plain)) == ""


def test_the_difference_is_that_of_the_table_of_aucs_and_its_ends_are_of_a_loop():
    table = auc_differences(PSNR, [MSE], FOUND, "majority")
    assert tuple(table.columns) == AUC_DIFFERENCE_COLUMNS
    (row,) = table.to_dict("records")
    layout, human = layout_of(FOUND.images), verdict(FOUND, "majority")
    pooled = auc_table([PSNR, MSE], FOUND, human, layout).query("scope == 'pooled'")
    a, b = pooled["auc"]
    assert row["difference"] == pytest.approx(a - b, abs=1e-12)

    def auc(values, kept):
        yes, no = (values[kept & side] for side in (human > 0.5, human < 0.5))
        return (np.sign(yes[:, None] - no[None]) / 2 + 0.5).mean()

    without = [
        auc(FOUND.scores["psnr"], layout.original != one)
        - auc(-FOUND.scores["mse"], layout.original != one)
        for one in range(15)
    ]
    fewer = min(len(set(layout.original[side])) for side in (human > 0.5, human < 0.5))
    reach = stats.t.ppf(0.975, fewer - 1) * error_of(row["difference"], without, fewer)
    assert row["high"] - row["difference"] == pytest.approx(reach, abs=1e-9)
    assert row["difference"] - row["low"] == pytest.approx(reach, abs=1e-9)


def test_within_originals_it_is_the_difference_of_their_means_and_ends_are_of_a_loop():
    (row,) = auc_differences(PSNR, [MSE], FOUND, "majority", WITHIN).to_dict("records")
    assert row["scope"] == WITHIN
    layout, human = layout_of(FOUND.images), verdict(FOUND, "majority")

    def auc(values, one):
        own = layout.original == one
        yes, no = (values[own & side] for side in (human > 0.5, human < 0.5))
        return (np.sign(yes[:, None] - no[None]) / 2 + 0.5).mean() if len(yes) * len(no) else None

    each = [
        auc(FOUND.scores["psnr"], one) - auc(-FOUND.scores["mse"], one)
        for one in range(15)
        if auc(FOUND.scores["psnr"], one) is not None
    ]
    n = len(each)
    assert n > 6
    assert row["difference"] == pytest.approx(np.mean(each), abs=1e-12)
    without = [(sum(each) - one) / (n - 1) for one in each]
    reach = stats.t.ppf(0.975, n - 1) * error_of(row["difference"], without, n)
    assert row["high"] - row["difference"] == pytest.approx(reach, abs=1e-9)


def test_a_difference_that_hangs_on_five_originals_has_no_interval_and_says_why():
    first = np.isin(layout_of(FOUND.images).original, range(5))
    said = FOUND.recognised
    few = replace(FOUND, recognised=said.of(np.where(first[said.image], 1.0, 0.0)))
    (row,) = auc_differences(PSNR, [MSE], few, "majority").to_dict("records")
    assert row["interval_undefined"] == "no interval: 5 originals, fewer than 6"
    assert np.isnan(row["low"])


def test_a_metric_is_no_better_than_itself_and_no_interval_is_made_up():
    (row,) = auc_differences(MSE, [MSE], FOUND, "majority").to_dict("records")
    assert row["difference"] == 0
    assert np.isnan(row["low"])
    assert "changes it" in row["interval_undefined"]


def test_images_of_one_kind_have_no_difference_and_say_why():
    every = voted(FOUND, np.ones(FOUND.recognised.shape))
    (row,) = auc_differences(PSNR, [MSE], every, "majority").to_dict("records")
    assert np.isnan(row["difference"])
    assert "both kinds" in row["undefined"]


ASKED = "mean-response"
RATED = evidence(n_models=3, n_originals=15)
PAIRED = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0, 2.0, np.inf]), st.integers(0, 3), st.integers(0, 3)),
    min_size=3,
    max_size=10,
)


def over_pictures(found, asked=ASKED):
    table = picture_agreement(found, SPECS, asked)
    assert tuple(table.columns) == PICTURE_COLUMNS
    return table.set_index("metric")


@given(PAIRED)
def test_weighted_tau_is_scipys_of_values_that_are_repeated(rows):
    x, y, times = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    (found,) = weighted_kendall(x, y, times[None])
    first, second = (np.repeat(side, times.astype(int)) for side in (x, y))
    if len(set(first)) < 2 or len(set(second)) < 2:
        assert np.isnan(found)
        return
    # Ranks, since scipy takes a difference of infinities for a missing value.
    expected = stats.kendalltau(stats.rankdata(first), stats.rankdata(second)).statistic
    assert found == pytest.approx(expected)


def test_both_numbers_are_those_of_all_pictures_as_people_and_the_metric_rank_them():
    human, table = human_score(RATED, "mean-response"), over_pictures(RATED)
    assert table.index.tolist() == ["psnr", "mse"]  # FID is of sets
    for name, sign in (("psnr", 1), ("mse", -1)):
        values = sign * RATED.scores[name]
        assert table.loc[name, "rho"] == pytest.approx(stats.spearmanr(values, human).statistic)
        assert table.loc[name, "tau"] == pytest.approx(stats.kendalltau(values, human).statistic)
    assert (table["n"] == 45).all()
    assert (table["n_originals"] == 15).all()
    for sign in ("rho", "tau"):
        inside = table[sign].between(table[f"{sign}_low"], table[f"{sign}_high"])
        assert inside.all()


def test_the_interval_is_of_the_rankings_without_each_original():
    human, layout = human_score(RATED, "mean-response"), layout_of(RATED.images)
    values, row = RATED.scores["psnr"], over_pictures(RATED).loc["psnr"]
    without = [
        stats.spearmanr(values[layout.original != one], human[layout.original != one]).statistic
        for one in range(15)
    ]
    reach = stats.t.ppf(0.975, 14) * error_of(row["rho"], without, 15) / (1 - row["rho"] ** 2)
    expected = np.tanh(np.arctanh(row["rho"]) + reach * np.array([-1, 1]))
    assert row[["rho_low", "rho_high"]].tolist() == pytest.approx(expected.tolist())


def test_few_originals_give_no_interval_and_say_so():
    table = over_pictures(evidence(n_models=20, n_originals=5))
    assert table["rho"].notna().all()
    assert table[["rho_low", "rho_high", "tau_low", "tau_high"]].isna().all(axis=None)
    why = "no interval: 5 originals, fewer than 6"
    assert set(table["interval_undefined"]) == {why}


def test_pictures_of_one_original_are_left_out_together():
    """Copies of a study's pictures add nothing: the range stays what it was."""
    single = evidence(n_models=1, n_originals=15)
    again = single.images.assign(model="again")
    said = single.recognised
    twice = replace(
        single,
        images=pd.concat([single.images, again], ignore_index=True),
        recognised=replace(
            said,
            image=np.concatenate([said.image, said.image + 15]),
            annotator=np.tile(said.annotator, 2),
            values=np.tile(said.values, 2),
            shape=(30, said.shape[1]),
        ),
        scores={name: np.tile(values, 2) for name, values in single.scores.items()},
    )
    once, both = over_pictures(single), over_pictures(twice)
    for name in ("rho", "rho_low", "rho_high"):
        assert both[name].tolist() == pytest.approx(once[name].tolist())


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"scores": {"psnr": np.full(45, 3.0)}}, "metric: the same value for every picture"),
        (
            {"recognised": RATED.recognised.of(np.zeros(len(RATED.recognised.values)))},
            "people: the same value for every picture",
        ),
        (
            {"scores": {"psnr": np.r_[1.0, 2.0, np.full(43, np.nan)]}},
            "a ranking needs at least 3 pictures; there are 2",
        ),
    ],
)
def test_what_cannot_be_ranked_says_why_and_has_no_number(changed, why):
    row = over_pictures(replace(RATED, **changed)).loc["psnr"]
    assert row["undefined"] == why
    assert row[["rho", "tau", "rho_low", "tau_high"]].isna().all()


def test_a_ranking_that_hangs_on_one_original_has_no_range():
    """Without that original there is none."""
    said = RATED.recognised
    first = RATED.images["image_id"].eq(RATED.images["image_id"].iloc[0]).to_numpy()
    only = replace(RATED, recognised=said.of(np.where(first[said.image], 1.0, 0.0)))
    row = over_pictures(only).loc["psnr"]
    assert -1 <= row["rho"] <= 1
    assert row["interval_undefined"] == "no interval: without some original there is no number"
    assert row[["rho_low", "rho_high", "tau_low", "tau_high"]].isna().all()
