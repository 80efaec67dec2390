from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_measures import widened
from made_votes import MSE, PSNR, SPECS, evidence, scores_of, votes_of
from scipy import stats

from semsim.analysis.evidence import Ratings, gather
from semsim.analysis.human import human_score
from semsim.analysis.layout import layout_of
from semsim.analysis.resampling import (
    FEWEST_ORIGINALS,
    RANKED,
    Resamples,
    interval,
    resample,
)
from semsim.analysis.result import AUC_COLUMNS
from semsim.analysis.roc import (
    auc_table,
    contest_of,
    originals_of_kinds,
    pooled_auc,
    weighted_auc,
)
from semsim.analysis.shares import newcombe

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
DRAWN = resample(LAYOUT, 40, 0, 0)


def auc(found, human=HUMAN, drawn=DRAWN, specs=SPECS):
    table = auc_table(specs, found, human, layout_of(found.images), drawn)
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


def test_the_bootstrap_equals_drawing_originals_and_computing_again():
    table = auc(FOUND)
    yes, values = HUMAN > 0.5, FOUND.scores["psnr"]
    draws = {"pooled": [], "within model": [], "within original": []}
    hangs_on = {}
    for scope, group in (("pooled", 0 * LAYOUT.model), ("within model", LAYOUT.model)):
        used = np.isin(group, [one for one in set(group) if len(set(yes[group == one])) == 2])
        hangs_on[scope] = min(len(set(LAYOUT.original[used & side])) for side in (yes, ~yes))
    hangs_on["within original"] = table.loc[("psnr", "within original"), "n_groups"]
    for weights in DRAWN.originals:
        chosen = np.repeat(np.arange(15), weights.astype(int))
        rows = np.concatenate([np.flatnonzero(LAYOUT.original == one) for one in chosen])
        again = np.repeat(np.arange(15), [4] * 15)  # each draw of an original is one of its own
        groups = {
            "pooled": np.zeros(60),
            "within model": LAYOUT.model[rows],
            "within original": again,
        }
        for scope, group in groups.items():
            each = mean_over(group, values[rows], yes[rows], np.ones(60))
            draws[scope].append(each[:, 0].mean())
    for scope, drawn in draws.items():
        row = table.loc[("psnr", scope)]
        assert (row["low"], row["high"]) == pytest.approx(widened(drawn, hangs_on[scope]))


def test_infinite_scores_rank_first_and_exact_halves_are_left_out():
    votes = {("m", str(i)): said for i, said in enumerate(["11", "10", "00", "00"])}
    found = gather(
        votes_of(votes),
        scores_of({("psnr", "m"): {"0": np.inf, "1": -np.inf, "2": 5.0, "3": 6.0}}),
        [PSNR],
    )
    drawn = resample(layout_of(found.images), 9, 0, 0)
    table = auc(found, human_score(found, "mean-response"), drawn, [PSNR])
    assert table.loc[("psnr", "pooled"), ["auc", "n_positive", "n_negative"]].tolist() == [1, 1, 2]


def test_undefined_with_a_reason():
    table = auc(FOUND, human=np.ones(len(HUMAN)))
    assert table["auc"].isna().all()
    assert table["low"].isna().all()
    assert (table["n_groups"] == 0).all()
    assert table.loc[("psnr", "within model"), "undefined"] == (
        "no model has both images that people recognise and images that they do not"
    )


def test_without_bootstraps_there_is_no_interval():
    nothing = Resamples(
        originals=np.empty((0, 15)), models=np.empty((0, 4)), permutations=0, seed=0
    )
    table = auc(FOUND, drawn=nothing)
    assert table["auc"].notna().all()
    assert table[["low", "high"]].isna().all(axis=None)


def test_a_perfect_metric_has_an_interval_with_width():
    """Every resample says 1, which is not to say that no image can be ranked wrongly."""
    perfect = replace(FOUND, scores={"psnr": HUMAN, "mse": HUMAN})
    table = auc(perfect)
    for scope in ("pooled", "within model", "within original"):
        best, worst = table.loc[("psnr", scope)], table.loc[("mse", scope)]
        assert (best["auc"], best["high"]) == (1, 1)
        assert 0.2 < best["low"] < 0.99
        assert (worst["low"], worst["high"]) == pytest.approx((0, 1 - best["low"]))
    groups = [set(LAYOUT.original[HUMAN > 0.5]), set(LAYOUT.original[HUMAN < 0.5])]
    assert table.loc[("psnr", "pooled"), "low"] == newcombe(1.0, *map(len, groups))[0]


@pytest.mark.parametrize(("originals", "told"), [(1, False), (3, False), (4, True), (8, True)])
def test_no_interval_where_recognised_images_are_of_fewer_than_four_originals(originals, told):
    human = (LAYOUT.original < originals).astype(float)
    drawn = resample(LAYOUT, 400, 0, 0)
    found = auc(FOUND, human, drawn).drop("within original", level="scope")
    assert found["auc"].between(0.01, 0.99).all()
    assert (found[["low", "high"]].notna() == told).all(axis=None)


@pytest.mark.parametrize("recognised", [3, 4, 6, 10])
def test_intervals_hold_the_true_auc_however_few_originals_have_recognised_images(recognised):
    """Of 600 studies of twelve originals, four images each; plain percentiles do not.

    What is true is the mean over the studies: what a metric says of images of one original goes
    together.
    """
    draw = np.random.default_rng(0)
    original, one_group = np.repeat(np.arange(12), 4), np.zeros(48, dtype=int)
    yes = (original < recognised) & (np.arange(48) % 4 == 0)
    once, found = np.ones((1, 12)), []
    for _ in range(600):
        values = 1.5 * yes + draw.normal(size=12)[original] + draw.normal(size=48)
        contest = contest_of(values, yes, one_group, original)
        drawn = draw.multinomial(12, np.full(12, 1 / 12), 300)
        auc, *draws = pooled_auc(contest, np.vstack([once, drawn]))
        widened = interval(np.array(draws), RANKED, min(originals_of_kinds(contest)))
        found.append([auc, *interval(np.array(draws)), *widened])
    true, *_ = np.mean(found, axis=0)
    _, low, high, least, most = np.transpose(found)
    plain = ((low <= true) & (true <= high)).mean()
    assert plain < 0.92
    if recognised < FEWEST_ORIGINALS:
        assert np.isnan([least, most]).all()
    else:
        held = ((least <= true) & (true <= most)).mean()
        assert held >= 0.91


def test_rho_with_mean_ratings_is_scipys_and_its_interval_is_as_wide_as_that_of_an_auc():
    given = FOUND.recognised.of(1 + np.arange(len(FOUND.recognised.values)) * 7 % 4)
    rated = replace(FOUND, ratings=Ratings(values=given, levels=4, threshold=2.5))
    table = auc_table([PSNR], rated, HUMAN, LAYOUT, DRAWN).set_index("scope")
    values, means = FOUND.scores["psnr"], rated.response.means
    row = table.loc["pooled"]
    assert row["rho"] == pytest.approx(stats.spearmanr(values, means).statistic)
    draws = []
    for weights in DRAWN.originals:
        rows = np.repeat(np.arange(60), weights.astype(int)[LAYOUT.original])
        draws.append(stats.spearmanr(values[rows], means[rows]).statistic)
    assert (row["rho_low"], row["rho_high"]) == pytest.approx(widened(draws, 15))
