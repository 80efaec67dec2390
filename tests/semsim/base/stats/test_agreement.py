from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from made_measures import measure
from made_votes import FID, MSE, PSNR, SPECS, evidence, scores_of, voted, votes_of
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from semsim.base.stats.agreement import (
    AGREEMENT_COLUMNS,
    BACKBONE_COLUMNS,
    DIFFERENCE_COLUMNS,
    DISAGREEMENT_COLUMNS,
    MODEL_COLUMNS,
    RULE_COLUMNS,
    STABILITY_COLUMNS,
    agreement_row,
    agreement_table,
    backbone_table,
    difference_table,
    disagreement_table,
    holm,
    leave_one_out,
    matrix_table,
    model_table,
    permutation_p,
    rule_table,
    stability_table,
)
from semsim.base.stats.correlation import difference_interval, difference_p
from semsim.base.stats.evidence import gather
from semsim.base.stats.grouping import layout_of
from semsim.base.stats.measures import People, metric_measure, people_measure
from semsim.base.stats.resampling import resample
from semsim.base.stats.verdict import RULES, human_score
from semsim.metrics import find_metric

N, B = 9, 300
LAYOUT = layout_of(evidence(n_models=N).images)
DRAWN = resample(LAYOUT, B, 199, 0)
SIX = np.array([1.0, 2, 3, 4, 5, 6])
SPOILT = np.array([1.0, 2, 3, 4, 6, -9])
LABELS = [f"m{i}" for i in range(N)]
DRAW = np.random.default_rng(0)
X = np.arange(float(N))
Y = X + 2 * DRAW.normal(size=N)


def cloud(means, spread):
    return means + DRAW.normal(0, spread, (B, N))


PEOPLE = measure("people", X, cloud(X, 0.3))
METRIC = measure("psnr", Y, cloud(Y, 0.5))


def test_the_numbers_are_scipys_and_oriented():
    turned = measure("mse", -Y, -METRIC.resampled, sign=-1)
    table = agreement_table(PEOPLE, [METRIC, turned], LABELS, DRAWN)
    assert tuple(table.columns) == AGREEMENT_COLUMNS
    assert table["rho"].tolist() == pytest.approx([stats.spearmanr(X, Y).statistic] * 2)
    assert table["tau"].tolist() == pytest.approx([stats.kendalltau(X, Y).statistic] * 2)
    row = table.iloc[0]
    assert (row["n"], row["p_kind"], row["left_out_models"]) == (N, "Monte Carlo", 0)
    for name in ("rho_bw", "tau_score", "rho_models", "rho_images", "loo_rho"):
        low, high = ("min", "max") if name == "loo_rho" else ("low", "high")
        assert (
            row[f"{name}_{low}"] <= row[name.split("_")[name == "loo_rho"]] <= row[f"{name}_{high}"]
        )
    why = ["rho_note", "interval_undefined", "models_undefined", "images_undefined", "undefined"]
    assert row[why].isna().all()


def test_the_cluster_interval_is_of_the_resampled_means_by_a_loop():
    row = agreement_row(PEOPLE, METRIC, LABELS, DRAWN)
    for name, function in (("rho", stats.spearmanr), ("tau", stats.kendalltau)):
        draws = [
            function(x, y).statistic
            for x, y in zip(PEOPLE.resampled, METRIC.resampled, strict=True)
        ]
        expected = np.percentile(draws, [2.5, 97.5])
        found = row[f"{name}_images_low"], row[f"{name}_images_high"]
        assert found == pytest.approx(tuple(expected))


def test_the_interval_over_models_is_of_drawn_models_by_a_loop():
    row = agreement_row(PEOPLE, METRIC, LABELS, DRAWN)
    draws = [stats.spearmanr(X[pick], Y[pick]).statistic for pick in DRAWN.picks(N)]
    expected = np.percentile(draws, [2.5, 97.5])
    assert (row["rho_models_low"], row["rho_models_high"]) == pytest.approx(tuple(expected))


def test_resamples_without_a_ranking_are_left_out_and_counted():
    resampled = PEOPLE.resampled.copy()
    resampled[:10] = 1.0
    tied = np.array([0.0] * 7 + [1.0, 2.0])  # often one value alone is drawn
    drawn = resample(layout_of(evidence(n_models=N).images), B, 9, 0)
    row = agreement_row(
        measure("people", tied, resampled), measure("psnr", Y, METRIC.resampled), LABELS, drawn
    )
    assert row["left_out_images"] == 10
    alike = sum(len(set(tied[pick])) == 1 for pick in drawn.picks(N))
    assert row["left_out_models"] == alike > 0


@pytest.mark.parametrize(("n", "defined"), [(7, False), (8, True)])
def test_a_bootstrap_over_too_few_models_is_not_given(n, defined):
    few = slice(0, n)
    people, metric = (
        measure(one.name, one.means[few], one.resampled[:, few]) for one in (PEOPLE, METRIC)
    )
    row = agreement_table(people, [metric], LABELS, DRAWN).iloc[0]
    assert pd.notna(row["rho_models_low"]) == pd.notna(row["tau_models_low"]) == defined
    assert pd.notna(row["left_out_models"]) == defined
    assert row["p_kind"] == "exact"
    if not defined:
        assert row["models_undefined"] == "7 models; a bootstrap over models needs at least 8"
    assert pd.notna([row["rho_bw_low"], row["tau_score_low"]]).all()


def test_resamples_that_all_say_the_same_make_no_interval():
    same = measure("same", X, PEOPLE.resampled)
    row = agreement_row(PEOPLE, same, LABELS, DRAWN)
    for kind in ("models", "images"):
        assert np.isnan([row[f"rho_{kind}_low"], row[f"tau_{kind}_high"]]).all()
        assert row[f"{kind}_undefined"] == "every resample gives the same number"
    assert (row["rho"], row["rho_bw_high"], row["tau_score_high"]) == (1, 1, 1)
    assert row["rho_bw_low"] < 1
    assert row["tau_score_low"] < 1


@pytest.mark.parametrize("n", [3, 5])
def test_few_models_have_a_correlation_and_no_interval(n):
    people, metric = (measure(one.name, one.means[:n]) for one in (PEOPLE, METRIC))
    row = agreement_table(people, [metric], LABELS, DRAWN).iloc[0]
    assert pd.notna(row["rho"])
    assert pd.isna(row[["rho_bw_low", "rho_bw_high", "tau_score_low", "tau_score_high"]]).all()
    assert row["interval_undefined"] == f"no interval: {n} models, fewer than 6"


def test_a_set_metric_stays_and_people_move():
    fixed = measure("fid", Y, np.broadcast_to(Y, (B, N)), of_images=False)
    row = agreement_row(PEOPLE, fixed, LABELS, DRAWN)
    draws = [stats.spearmanr(x, Y).statistic for x in PEOPLE.resampled]
    assert row["rho_images_low"] == pytest.approx(np.percentile(draws, 2.5))


def test_best_first_and_undefined_last_without_numbers():
    flat, worst = measure("flat", np.ones(N)), measure("worst", -X, cloud(-X, 0.1))
    table = agreement_table(PEOPLE, [flat, worst, METRIC], LABELS, DRAWN)
    assert table["metric"].tolist() == ["psnr", "worst", "flat"]
    assert table.loc[2, "undefined"] == "metric: the same value for every model"
    numbers = set(AGREEMENT_COLUMNS) - {"metric", "title", "n", "undefined", "mark"}
    assert table.loc[2, list(numbers)].isna().all()


def test_models_without_a_value_are_not_counted():
    people = X.copy()
    people[0] = np.nan
    metric = Y.copy()
    metric[1] = np.nan
    row = agreement_row(measure("people", people), measure("psnr", metric), LABELS, DRAWN)
    assert row["n"] == N - 2
    assert row["rho"] == pytest.approx(stats.spearmanr(X[2:], Y[2:]).statistic)


@pytest.mark.parametrize(("n", "kind"), [(8, "exact"), (9, "Monte Carlo")])
def test_exact_as_long_as_it_is_short(n, kind):
    found = permutation_p(np.arange(n), np.arange(n)[::-1], resample(LAYOUT, 0, 99, 0))
    assert found.kind == kind


def test_a_perfect_ranking_of_four_models_by_hand():
    found = permutation_p(np.arange(4), np.arange(4), resample(LAYOUT, 0, 0, 0))
    assert (found.rho, found.tau) == (2 / 24, 2 / 24)  # this order and its reverse


def test_a_p_by_shuffles_is_never_zero():
    found = permutation_p(np.arange(12), np.arange(12), resample(LAYOUT, 0, 99, 0))
    assert (found.rho, found.tau) == (0.01, 0.01)


def test_both_signs_count():
    up, down = np.array([1, 3, 2, 5, 4, 6]), np.array([6, 4, 5, 2, 3, 1])
    none = resample(LAYOUT, 0, 0, 0)
    assert permutation_p(up, np.arange(6), none) == permutation_p(down, np.arange(6), none)


def test_the_model_that_spoils_a_ranking_is_named():
    found = leave_one_out(SIX, SPOILT, list("abcdef"))
    rho = [stats.spearmanr(np.delete(SIX, i), np.delete(SPOILT, i)).statistic for i in range(6)]
    tau = [stats.kendalltau(np.delete(SIX, i), np.delete(SPOILT, i)).statistic for i in range(6)]
    assert found["loo_model_max"] == "f"
    assert found["loo_model_min"] == "abcdef"[int(np.argmin(rho))]
    assert (found["loo_rho_min"], found["loo_rho_max"]) == pytest.approx((min(rho), max(rho)))
    assert (found["loo_tau_min"], found["loo_tau_max"]) == pytest.approx((min(tau), max(tau)))


def test_three_models_have_no_range():
    assert leave_one_out(SIX[:3], SPOILT[:3], list("abc")) == {}


def test_a_ranking_that_hangs_on_one_model_keeps_the_others():
    found = leave_one_out(np.array([1.0, 1, 1, 2]), np.array([1.0, 2, 3, 4]), list("abcd"))
    assert not np.isnan([found["loo_rho_min"], found["loo_rho_max"]]).any()
    assert found["loo_undefined"] == "d"
    assert leave_one_out(SIX, SPOILT, list("abcdef"))["loo_undefined"] is None


MODELS = np.arange(12.0)
NOISE = np.random.default_rng(0).normal(size=(2, 12))
TWELVE = measure("people", MODELS)
GOOD, BAD = measure("good", MODELS + NOISE[0]), measure("bad", 5 * NOISE[1], sign=-1.0)


def test_a_difference_is_of_oriented_correlations():
    table = difference_table(TWELVE, [GOOD, BAD])
    assert tuple(table.columns) == DIFFERENCE_COLUMNS
    row = table.iloc[0]
    first = stats.spearmanr(MODELS, GOOD.means).statistic
    second = -stats.spearmanr(MODELS, BAD.means).statistic
    assert row["difference"] == pytest.approx(first - second)
    assert row["low"] < row["difference"] < row["high"]


def test_the_interval_and_p_are_those_of_the_three_correlations():
    row = difference_table(TWELVE, [GOOD, BAD]).iloc[0]
    sides = MODELS, GOOD.oriented, BAD.oriented
    pairs = ((0, 1), (0, 2), (1, 2))
    rhos = [stats.spearmanr(sides[i], sides[j]).statistic for i, j in pairs]
    assert (row["low"], row["high"]) == pytest.approx(difference_interval(*rhos, 12))
    assert row["p"] == pytest.approx(difference_p(*rhos, 12))
    assert row["interval_undefined"] is None


def test_perfectly_apart_is_beyond_chance_from_six_models_on():
    for n in (12, 6):
        sides = [measure("best", MODELS[:n]), measure("worst", -MODELS[:n])]
        row = difference_table(measure("people", MODELS[:n]), sides).iloc[0]
        assert (row["difference"], row["high"]) == pytest.approx((2, 2))
        assert row["low"] > 0
        assert row["p"] < 0.05


def test_a_metric_does_not_differ_from_one_that_ranks_alike():
    row = difference_table(TWELVE, [GOOD, measure("again", np.exp(GOOD.means))]).iloc[0]
    assert (row["difference"], row["p"]) == (0, 1)
    assert row["low"] < 0 < row["high"]  # on other models they might


def test_metrics_alike_are_told_apart_more_sharply():
    """Count for neither what both share with each other."""
    swapped = MODELS.copy()
    swapped[[5, 6]] = swapped[[6, 5]]
    close = measure("a", swapped + 4 * NOISE[0]), measure("b", swapped + 4.1 * NOISE[0])
    row = difference_table(TWELVE, list(close)).iloc[0]
    apart = difference_interval(
        *[stats.spearmanr(MODELS, one.means).statistic for one in close], 0, 12
    )
    assert row["high"] - row["low"] < apart[1] - apart[0]


@pytest.mark.parametrize("n", [3, 5])
def test_few_models_have_a_difference_and_no_test_of_it(n):
    sides = [measure(one.name, one.means[:n]) for one in (GOOD, BAD)]
    row = difference_table(measure("people", MODELS[:n]), sides).iloc[0]
    assert np.isfinite(row["difference"])
    assert np.isnan([row["low"], row["high"], row["p"], row["p_holm"]]).all()
    assert row["interval_undefined"] == f"no interval: {n} models, fewer than 6"


@pytest.mark.parametrize("r", [0.0, 0.7])
def test_of_six_models_metrics_that_are_alike_rarely_differ(r):
    """Normal scores, two metrics that follow people equally well: 5% of p below 0.05 at most.

    200 studies: where the truth is 5%, more than 20 of them come up once in 1,000 times.
    """
    draw = np.random.default_rng(0)
    small = 0
    for _ in range(200):
        people, *noise = draw.normal(size=(3, 6))
        sides = [measure(name, r * people + e) for name, e in zip("ab", noise, strict=True)]
        small += difference_table(measure("people", people), sides).loc[0, "p"] <= 0.05
    assert small <= 20


def test_undefined_with_a_reason_and_outside_the_correction():
    flat = measure("flat", np.ones(12))
    table = difference_table(TWELVE, [GOOD, flat, BAD])
    assert (table.loc[[0, 2], "undefined"] == "metric: the same value for every model").all()
    assert table["undefined"].isna().tolist() == [False, True, False]
    assert table["p_holm"].isna().tolist() == [True, False, True]
    assert table.loc[1, "p_holm"] == table.loc[1, "p"]


def test_one_metric_has_nothing_to_differ_from():
    table = difference_table(TWELVE, [GOOD])
    assert table.empty
    assert tuple(table.columns) == DIFFERENCE_COLUMNS


@pytest.mark.parametrize(
    ("p", "expected"),
    [
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),  # Holm's own steps: ×3, ×1 raised, ×2
        ([0.5, 0.9], [1.0, 1.0]),
        ([0.02, np.nan, 0.02], [0.04, np.nan, 0.04]),
        ([], []),
    ],
)
def test_holm_by_hand(p, expected):
    np.testing.assert_allclose(holm(np.array(p)), expected)


TABLED = evidence(n_models=5, n_originals=10)
TABLED_LAYOUT = layout_of(TABLED.images)
TABLED_DRAWS = resample(TABLED_LAYOUT, 60, 0, 0)


def test_models_with_people_metrics_and_intervals():
    human = human_score(TABLED, "majority")
    human[0] = np.nan
    people = people_measure(People(scores=human), TABLED_LAYOUT, TABLED_DRAWS)
    metrics = [
        metric_measure(spec, TABLED, human, TABLED_LAYOUT, TABLED_DRAWS) for spec in (PSNR, FID)
    ]
    table = model_table(people, metrics, human, TABLED_LAYOUT)
    sides = [f"{name}{end}" for name in ("psnr", "fid") for end in ("", ":low", ":high", ":n_inf")]
    assert tuple(table.columns) == (*MODEL_COLUMNS, *sides)
    assert table.loc[0, ["n_images", "n_decided", "n_undecided"]].tolist() == [10, 9, 1]
    assert table["human"].tolist() == people.means.tolist()
    values = TABLED.scores["psnr"][TABLED_LAYOUT.model == 2]
    expected = stats.t.interval(0.95, 9, values.mean(), stats.sem(values))
    assert table.loc[2, ["psnr:low", "psnr:high"]].tolist() == pytest.approx(expected)
    assert table[["fid:low", "fid:high"]].isna().all(axis=None)


def test_rates_of_nothing_and_of_everything_are_not_certain():
    """No original varies them, so each is a trial of Wilson's."""
    human = np.tile(np.repeat([0.0, 1.0], 5), 5)  # every model half recognised, but for three
    for model, same in ((0, 0.0), (1, 1.0), (2, 0.25)):
        human[TABLED_LAYOUT.model == model] = same
    human[np.flatnonzero(TABLED_LAYOUT.model == 1)[:3]] = np.nan
    recogniser = find_metric("recogniser").spec
    scores = {**TABLED.scores, "recogniser": (human > 0.9).astype(float), "mse": np.ones(50)}
    found = replace(TABLED, scores=scores)
    people = people_measure(People(scores=human), TABLED_LAYOUT, TABLED_DRAWS)
    metrics = [
        metric_measure(spec, found, human, TABLED_LAYOUT, TABLED_DRAWS)
        for spec in (recogniser, MSE)
    ]
    table = model_table(people, metrics, human, TABLED_LAYOUT)
    none, every = stats.t.ppf(0.975, 9) ** 2, stats.t.ppf(0.975, 6) ** 2
    expected = [(0, none / (10 + none)), (7 / (7 + every), 1)]
    for name in ("human_low", "human_high"), ("recogniser:low", "recogniser:high"):
        np.testing.assert_allclose(table.loc[:1, list(name)].to_numpy(), expected, atol=1e-9)
    level = 2 * stats.norm.sf(np.sqrt(none))  # half of ten, one image an original
    half = proportion_confint(5, 10, alpha=level, method="wilson")
    assert table.loc[3, ["human_low", "human_high"]].tolist() == pytest.approx(half)
    assert table[["mse:low", "mse:high"]].isna().all(axis=None)  # an error is no rate


def test_every_human_score_beside_every_metric():
    label = np.where(np.arange(50) % 7 == 0, np.nan, (np.arange(50) % 3 == 0) * 1.0)
    found = replace(TABLED, given={"folder": label})
    table = rule_table(SPECS, found, TABLED_LAYOUT)
    assert tuple(table.columns) == RULE_COLUMNS
    assert list(dict.fromkeys(table["rule"])) == [*RULES, "folder"]
    row = table.set_index(["rule", "metric"]).loc[("folder", "mse")]
    used = ~np.isnan(label)
    people = [label[used & (TABLED_LAYOUT.model == m)].mean() for m in range(5)]
    errors = [-TABLED.scores["mse"][used & (TABLED_LAYOUT.model == m)].mean() for m in range(5)]
    assert row["rho"] == pytest.approx(stats.spearmanr(people, errors).statistic)
    assert row["tau"] == pytest.approx(stats.kendalltau(people, errors).statistic)
    assert (row["n_images"], row["n_left_out"]) == (used.sum(), (~used).sum())


def test_a_rule_without_an_answer_says_why():
    silent = voted(TABLED, np.ones((50, 5)))
    table = rule_table([MSE], silent, TABLED_LAYOUT).set_index("rule")
    assert table.loc["dawid-skene", "undefined"] == "Dawid-Skene: all votes are equal"
    assert table.loc["majority", "undefined"] == "people: the same value for every model"
    assert table["rho"].isna().all()


def test_the_matrix_is_oriented_symmetric_and_leaves_out_what_is_undefined():
    measures = [
        measure("people", [1, 2, 3, 4]),
        measure("mse", [4, 3, 1, 2], sign=-1),
        measure("flat", [1, 1, 1, 1]),
    ]
    table = matrix_table(measures)
    assert table.index.tolist() == table.columns.tolist() == ["PEOPLE", "MSE", "FLAT"]
    nan = np.nan
    np.testing.assert_allclose(table, [[1, 0.8, nan], [0.8, 1, nan], [nan, nan, nan]])


def test_each_backbone_is_left_out_in_turn():
    people, metric = measure("people", SIX), measure("psnr", SPOILT)
    table = backbone_table(people, [metric], ["r", "r", "r", "c", "c", "c"])
    assert tuple(table.columns) == BACKBONE_COLUMNS
    assert table[["left_out", "n"]].to_numpy().tolist() == [["c", 3], ["r", 3]]
    assert table["rho"].tolist() == pytest.approx(
        [1.0, stats.spearmanr(SIX[3:], SPOILT[3:]).statistic]
    )


def test_what_is_left_may_be_too_few():
    table = backbone_table(
        measure("people", SIX[:4]), [measure("p", SPOILT[:4])], ["r", "r", "c", "c"]
    )
    assert table["undefined"].tolist() == ["2 models; a ranking needs at least 3"] * 2
    assert table["rho"].isna().all()


def test_one_backbone_cannot_be_left_out():
    assert backbone_table(measure("people", SIX), [measure("psnr", SPOILT)], ["r"] * 6).empty


THREE = layout_of(evidence(n_models=3).images)


def test_rank_one_leaks_most_and_ranges_are_of_resampled_ranks():
    resampled = np.array([[3, 2, 1]] * 90 + [[1, 2, 3]] * 10)
    measures = [measure("people", [3, 2, 1], resampled), measure("mse", [1, 2, 2], sign=-1)]
    table = stability_table(measures, THREE)
    assert tuple(table.columns) == STABILITY_COLUMNS
    people, mse = table[table["measure"] == "people"], table[table["measure"] == "mse"]
    assert people["rank"].tolist() == [1, 2, 3]
    assert people[["low", "high"]].to_numpy().tolist() == [[1, 3], [2, 2], [1, 3]]
    assert mse["rank"].tolist() == [1, 2.5, 2.5]
    assert mse["low"].isna().all()  # nothing was resampled


def test_a_model_without_a_value_has_no_rank_and_takes_no_place():
    table = stability_table([measure("psnr", [1, np.nan, 2], [[1, np.nan, 2]] * 5)], THREE)
    np.testing.assert_equal(table["rank"].to_numpy(), [2, np.nan, 1])
    np.testing.assert_equal(table["low"].to_numpy(), [2, np.nan, 1])


def test_of_one_original_ranks_have_no_range():
    """Its every resample is itself, so that no width is not certainty."""
    alone = layout_of(evidence(n_models=3, n_originals=1).images)
    table = stability_table([measure("people", [3, 2, 1], [[3, 2, 1]] * 5)], alone)
    assert table["rank"].tolist() == [1, 2, 3]
    assert table[["low", "high"]].isna().all(axis=None)


def test_ranks_by_a_metric_of_sets_have_no_range():
    """No resample of images changes its value, so that no width is not certainty."""
    fixed = np.broadcast_to([3.0, 2.0, 1.0], (5, 3))
    table = stability_table([measure("fid", [3, 2, 1], fixed, of_images=False)], THREE)
    assert table["rank"].tolist() == [1, 2, 3]
    assert table[["low", "high"]].isna().all(axis=None)


def test_where_a_metric_and_people_differ():
    votes = {("m", "1"): "11", ("m", "2"): "10", ("m", "3"): "00", ("m", "4"): "00"}
    values = {"1": 1.0, "2": 2.0, "3": np.inf, "4": np.nan}
    scores = scores_of({("mse", "m"): values, ("psnr", "m"): values})
    found = gather(votes_of(votes), scores, [PSNR, MSE])
    table = disagreement_table([PSNR, MSE], found, found.response.means).set_index(
        ["metric", "row"]
    )
    assert tuple(table.reset_index().columns) == DISAGREEMENT_COLUMNS
    assert table.loc["psnr"].index.tolist() == [0, 1, 2]  # the fourth has no score
    assert table.loc["psnr", "human"].tolist() == [1, 0.5, 0]
    assert table.loc["psnr", "human_share"].tolist() == [1, 0.5, 0]
    assert table.loc["psnr", "metric_share"].tolist() == [0, 0.5, 1]
    assert table.loc["psnr", "gap"].tolist() == [-1, 0, 1]
    assert table.loc["mse", "gap"].tolist() == [0, 0, 0]  # a small error is a leak


def test_a_metric_of_sets_has_no_images_to_differ_on():
    found = evidence()
    human = found.response.means
    assert set(disagreement_table(SPECS, found, human)["metric"]) == {"psnr", "mse"}
    assert disagreement_table([], found, human).empty


def test_ties_share_their_rank():
    votes = {("m", str(i)): "1" if i < 2 else "0" for i in range(4)}
    scores = scores_of({("psnr", "m"): dict.fromkeys("0123", 1.0)})
    found = gather(votes_of(votes), scores, [PSNR])
    table = disagreement_table([PSNR], found, found.response.means)
    assert table["metric_share"].tolist() == [0.5] * 4
    assert table["human_share"].tolist() == pytest.approx([5 / 6, 5 / 6, 1 / 6, 1 / 6])
